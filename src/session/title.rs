//! Asks the application for the title of a session, after its first exchange (R79).
//!
//! Nothing waits for the answer: neither the turn, nor the next one, nor the end of the store. A question that is lost
//! with its process is asked again after the next run that finishes, as long as the session has no title.

use super::open_session::OpenSession;
use super::signal::Signal;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::History;
use crate::json::{Json, ObjectWriter};
use crate::message::{Message, PartBody, Role};
use crate::replay::Callback;
use crate::session_head::{Preview, SessionHead, one_line};
use crate::store::Change;

/// The most characters of a title that a function returned. The title is part of each record.
const MAX_TITLE_CHARS: usize = 200;

/// Longest wait for a title, in milliseconds; the session stays in memory meanwhile.
const TITLE_TIMEOUT: Ms = 300_000;

/// Identifies the history that a title was made of. A title of another one is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ExchangeState {
    born: u64,
    erasures: u64,
}

impl ExchangeState {
    fn of(head: &SessionHead) -> Self {
        Self { born: head.born, erasures: head.erasures }
    }
}

impl OpenSession {
    /// Asks for a title after a turn, unless the session has one, or is being asked for one here.
    pub fn ask_for_title(&self) {
        let Some(callback) = self.context.settings.title_session.clone() else { return };
        let Some(session) = self.weak_self.upgrade() else { return };
        if self.is_being_titled.get() || !needs_title(&self.log.borrow().head) {
            return;
        }
        let Some(exchange) = self.first_exchange() else { return };
        let state = ExchangeState::of(&self.log.borrow().head);
        self.is_being_titled.set(true);
        self.context.spawn(async move {
            let outcome = session.title_of(&callback, exchange).await;
            let stored = match outcome {
                Ok(Some(title)) => session.store_title(title, state).await.map_err(|error| {
                    let message = format!("the title could not be stored; the next run asks again: {}", error.message);
                    Error::new(error.code, message)
                }),
                outcome => outcome.map(drop),
            };
            session.is_being_titled.set(false);
            match stored {
                Err(error) if !matches!(error.code, ErrorCode::Closed | ErrorCode::NotFound | ErrorCode::Evicted) => {
                    session.context.warn(&[Finding::warning(FindingCode::CallbackFailed, error.into_message())]);
                }
                // Without its store or its history, a session needs no title.
                _ => {}
            }
        });
    }

    /// Calls the function, and waits for its answer for a limited time.
    async fn title_of(&self, callback: &Callback, exchange: Json) -> Result<Option<String>> {
        let late = Signal::default();
        let (limit, is_late) = (self.context.host.sleep(TITLE_TIMEOUT), late.clone());
        self.context.spawn(async move {
            // Without timers there is no limit.
            if limit.await {
                is_late.give();
            }
        });
        let asked = self.context.callbacks.answered(self.context.host.title(callback, exchange));
        let title = late.unless_given(asked).await.ok_or_else(|| {
            let sentence = "`titleSession` has not answered for 5 minutes; the next run that finishes asks again";
            Error::new(ErrorCode::CallbackFailed, sentence)
        })???;
        Ok(title.map(|title| one_line(&title, MAX_TITLE_CHARS)).filter(|title| !title.is_empty()))
    }

    /// Stores a title, if the session has none and the exchange is still there.
    async fn store_title(&self, title: String, state: ExchangeState) -> Result<()> {
        let takes_title = move |head: &SessionHead| needs_title(head) && ExchangeState::of(head) == state;
        if !takes_title(&self.log.borrow().head) {
            return Ok(());
        }
        let edit = move |head: &mut SessionHead| {
            if takes_title(head) {
                head.title = Some(title.clone());
            }
        };
        self.commit(Change { edit: Some(Box::new(edit)), ..self.new_change() }).await?;
        self.notify();
        Ok(())
    }

    /// Returns `FirstExchange` of the public types: the first text of the user, and the first of the assistant after
    /// it; none if the branch has no such texts.
    fn first_exchange(&self) -> Option<Json> {
        let log = self.log.borrow();
        let (input, answer) = first_texts(&log.history)?;
        Some(ObjectWriter::build(|out| {
            out.text("session", &self.id)
                .text_or_null("channel", log.head.channel.as_deref())
                .text("input", &input)
                .text("answer", &answer);
        }))
    }
}

/// Returns false for a session that has a title, or of which messages are still to be erased.
fn needs_title(head: &SessionHead) -> bool {
    head.title.is_none() && head.erasing.is_finished()
}

fn first_texts(history: &History) -> Option<(String, String)> {
    let mut messages = history.messages().iter();
    let mut next_of = |role: Role| messages.find(|message| message.role == role && Preview::of(message).is_some());
    Some((whole_text(next_of(Role::User)?), whole_text(next_of(Role::Assistant)?)))
}

fn whole_text(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match &part.body {
        PartBody::Text(text) => Some(text.decode()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}
