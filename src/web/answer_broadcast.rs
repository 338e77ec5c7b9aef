//! Sends the streamed answer of a run to other tabs over a BroadcastChannel. A tab that shows the run requests the answer so far from
//! its owner, which then sends each addition. Nothing is sent while no other tab shows the run, and nothing is stored.

use super::convert::{object_to_js, parse_json, set};
use super::foreign::{self, member};
use super::session_inner::SessionInner;
use super::store_context::StoreContext;
use crate::json::JsonStr;
use crate::message::{Message, PartBody};
use crate::provider::StreamEvent;
use crate::run::{JournalEntry, RunEvent, without_calls};
use crate::store::{RecordKind, open_record};
use js_sys::Uint8Array;
use std::cell::{Cell, RefCell};
use wasm_bindgen::prelude::*;

/// Requests the answer so far from the tab that drives a run.
pub fn request_answer(context: &StoreContext, session: &str, run: &str) {
    let request = object_to_js(&|out| {
        out.text("session", session).text("run", run).bool("ask", true);
    });
    context.post_answer(&request);
}

/// The run whose answer is sent.
pub struct AnswerSource<'r> {
    pub session: &'r SessionInner,
    pub run: &'r str,
    /// Returns the answer so far.
    pub partial: &'r dyn Fn() -> Option<Message>,
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
                if matches!(event, RunEvent::Retrying { .. }) && self.sent.take().is_some() {
                    self.post(run, None, "message", &JsValue::NULL);
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
        let bytes = JournalEntry::Partial(message).seal();
        self.post(run, None, "message", &Uint8Array::from(bytes.as_ref()));
    }

    fn send_piece(&self, run: &AnswerSource<'_>, piece: Option<(bool, JsonStr)>) {
        if let Some((reasoning, text)) = piece {
            let key = if reasoning { "reasoning" } else { "text" };
            let message = self.sent.borrow().clone();
            self.post(run, message.as_deref(), key, &parse_json(text.token()));
        }
    }

    fn post(&self, run: &AnswerSource<'_>, message: Option<&str>, key: &str, what: &JsValue) {
        let value = object_to_js(&|out| {
            out.text("session", &run.session.id).text("run", run.run);
            if let Some(message) = message {
                out.text("id", message);
            }
        });
        set(&value, key, what);
        run.session.context.post_answer(&value);
    }
}

/// Handles a message of another tab about an answer of the session.
pub fn receive_answer(session: &SessionInner, value: &JsValue) {
    let text = |key: &str| member(value, key).as_string();
    let Some(run) = text("run") else { return };
    if member(value, "ask").is_truthy() {
        if let Some(live) = session.live_run().filter(|live| live.id() == run) {
            live.send_answer();
        }
    } else if let Some(message) = text("id") {
        let text = text("text").map(|text| PartBody::Text(JsonStr::new(&text)));
        let more = text
            .or_else(|| member(value, "reasoning").as_string().map(|text| PartBody::Reasoning(JsonStr::new(&text))));
        if let Some(more) = more {
            session.extend_partial_answer(&run, &message, &more);
        }
    } else {
        session.set_partial_answer(&run, message_of(&member(value, "message")));
    }
}

/// The message that an owner sent; none if it says that there is none, or if its build writes messages otherwise.
fn message_of(value: &JsValue) -> Option<Message> {
    let bytes = foreign::bytes("an answer of another tab", value).ok()??;
    match open_record::<JournalEntry>(RecordKind::Journal, &bytes.into()).ok()? {
        JournalEntry::Partial(message) => Some(message),
        _ => None,
    }
}
