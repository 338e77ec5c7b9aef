//! Sends the streamed answer of a run to other tabs. A tab that shows the run requests the answer so far from its
//! holder, which then sends each addition. Nothing is sent while no other tab shows the run, and nothing is stored.

use super::host::AnswerNews;
use super::open_session::OpenSession;
use crate::json::JsonStr;
use crate::message::Message;
use crate::provider::StreamEvent;
use crate::run::{RunEvent, without_calls};
use std::cell::{Cell, RefCell};

/// The run whose answer is sent.
pub struct AnswerSource<'r> {
    pub session: &'r OpenSession,
    pub run: &'r str,
    /// Returns the answer so far.
    pub partial: &'r dyn Fn() -> Option<Message>,
}

impl AnswerSource<'_> {
    fn send(&self, news: AnswerNews<'_>) {
        self.session.context.host.send_answer(&self.session.id, self.run, news);
    }
}

/// What the tab that drives a run knows of the tabs that show it.
#[derive(Default)]
pub struct AnswerBroadcast {
    /// Whether any tab has requested the answer.
    requested: Cell<bool>,
    /// The id of the message whose text so far was sent.
    sent: RefCell<Option<String>>,
}

impl AnswerBroadcast {
    /// Sends the additions to the answer in `events`.
    pub fn send_events(&self, run: &AnswerSource<'_>, events: &[RunEvent]) {
        if !self.requested.get() {
            return;
        }
        let mut text: Option<(bool, JsonStr)> = None;
        for event in events {
            let RunEvent::Stream { message_id, event } = event else {
                // An answer that is picked up where it broke off stays.
                let is_lost = matches!(event, RunEvent::Retrying { .. }) && (run.partial)().is_none();
                if is_lost && self.sent.take().is_some() {
                    run.send(AnswerNews::Whole(None));
                }
                continue;
            };
            let (reasoning, more) = match event {
                StreamEvent::TextDelta(more) => (false, more),
                StreamEvent::ReasoningDelta(more) => (true, more),
                _ => continue,
            };
            if self.sent.borrow().as_deref() != Some(message_id) {
                // All that came so far, this piece and those after it included.
                return self.send_all(run);
            }
            match &mut text {
                Some((kind, text)) if *kind == reasoning => text.push(more),
                _ => {
                    self.send_piece(run, text.take());
                    text = Some((reasoning, more.clone()));
                }
            }
        }
        self.send_piece(run, text);
    }

    /// Sends the answer so far, and from now on each addition.
    pub fn start(&self, run: &AnswerSource<'_>) {
        self.requested.set(true);
        self.send_all(run);
    }

    /// Sends the answer so far.
    fn send_all(&self, run: &AnswerSource<'_>) {
        let Some(message) = (run.partial)().and_then(without_calls) else { return };
        *self.sent.borrow_mut() = Some(message.id.clone());
        run.send(AnswerNews::Whole(Some(&message)));
    }

    fn send_piece(&self, run: &AnswerSource<'_>, piece: Option<(bool, JsonStr)>) {
        // Another tab may ask for the answer while it is sent.
        let message = self.sent.borrow().clone();
        if let (Some((is_reasoning, text)), Some(message)) = (piece, &message) {
            run.send(AnswerNews::Text { message, text: &text, is_reasoning });
        }
    }
}
