//! Gives what was stored to the history providers: the turn of a run that is over (R33), and what an append has added (R34).

use super::convert::object_to_js;
use super::foreign::{items, reason_of};
use super::run_inner::RunInner;
use super::session_inner::SessionInner;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::{History, HistoryEntry, MessageFormat, MessageWriter};
use crate::json::{ArrayWriter, ObjectWriter};
use crate::message::{Message, Role, SourceKind};
use crate::run::RunStatus;
use js_sys::Function;
use std::collections::BTreeSet;
use wasm_bindgen::JsValue;

/// Maximum number of warnings of the providers of one run.
const MAX_WARNINGS: u32 = 1000;

/// The messages that an append has added, and the calls that it has given a result.
#[derive(Default)]
pub struct AppendedContent {
    pub message_ids: Vec<String>,
    pub invocations: Vec<String>,
}

impl AppendedContent {
    pub fn of(entries: &[HistoryEntry]) -> Self {
        let mut content = Self::default();
        for entry in entries {
            match entry {
                HistoryEntry::Message(message) => content.message_ids.push(message.id.clone()),
                HistoryEntry::Result(entry) => content.invocations.push(entry.invocation.clone()),
                HistoryEntry::Invocation(_) | HistoryEntry::SetAside(_) => {}
            }
        }
        content
    }

    /// Returns the messages in their order: the new ones, and those whose calls have got a result.
    fn messages<'h>(&self, history: &'h History) -> Vec<&'h Message> {
        let answered = self.invocations.iter().filter_map(|id| history.invocation(id)).map(|call| &call.message_id);
        let ids = self.message_ids.iter().chain(answered);
        let places: BTreeSet<usize> = ids.filter_map(|id| history.message_index(id)).collect();
        places.iter().filter_map(|at| history.messages().get(*at)).collect()
    }
}

impl SessionInner {
    /// Gives what an append has stored to the providers. What fails is reported as a warning: the append is stored.
    pub async fn give_to_providers(&self, store: Option<&Function>, content: &AppendedContent) {
        let Some(store) = store else { return };
        let turn = {
            let log = self.log.borrow();
            let messages = content.messages(&log.history);
            if messages.is_empty() {
                return;
            }
            object_to_js(&|out| {
                out.array("context", |_| {});
                write_input_and_output(out, &log.history, &self.id, &messages);
            })
        };
        let called = store.call1(&JsValue::NULL, &turn);
        let findings = match self.context.callbacks.settled(called).await {
            Ok(returned) => failures(&returned),
            Err(_) => vec![unanswered("the store was closed")],
        };
        self.context.warn(&findings);
    }
}

fn write_input_and_output(out: &mut ObjectWriter<'_>, history: &History, session: &str, messages: &[&Message]) {
    for (key, is_output) in [("input", false), ("output", true)] {
        out.array(key, |list| {
            let messages = messages.iter().filter(|message| (message.role == Role::Assistant) == is_output);
            messages.for_each(|message| write_message(list, history, session, message));
        });
    }
}

fn write_message(list: &mut ArrayWriter<'_>, history: &History, session: &str, message: &Message) {
    let writer = MessageWriter { history, session, format: MessageFormat::WithCalls };
    list.object(|out| writer.write(out, message, None));
}

/// Returns a warning for each provider that failed.
fn failures(returned: &std::result::Result<JsValue, JsValue>) -> Vec<Finding> {
    let failures = match returned {
        Ok(failures) => items("the warnings", failures, MAX_WARNINGS).ok().flatten().unwrap_or_default(),
        Err(thrown) => vec![thrown.clone()],
    };
    failures.iter().map(|failure| Finding::warning(FindingCode::CallbackFailed, reason_of(failure))).collect()
}

fn unanswered(reason: &str) -> Finding {
    let sentence = format!(
        "{reason} while `store` of its history providers had not answered, so whether they have the messages is not known; the session has them"
    );
    Finding::warning(FindingCode::CallbackFailed, sentence)
}

impl RunInner {
    /// Gives the turn of a run that is over to the providers, once. What fails is reported as a warning.
    ///
    /// # Errors
    /// `closed` if the store is closed before they answer.
    pub async fn store_in_providers(&self) -> Result<()> {
        let Some(store) = self.store_hook.take() else { return Ok(()) };
        let called = store.call1(&JsValue::NULL, &self.turn_for_providers());
        let Ok(returned) = self.callbacks.settled(called).await else {
            self.session.context.check_open()?;
            self.session.context.warn(&[unanswered("the run was cancelled or disposed")]);
            return Ok(());
        };
        for finding in failures(&returned) {
            self.machine.borrow_mut().warn_before_end(finding);
        }
        Ok(())
    }

    /// Returns what history has of the turn, as redacted there, and the error of a run that stored nothing.
    fn turn_for_providers(&self) -> JsValue {
        let machine = self.machine.borrow();
        let outcome = machine.outcome();
        let log = self.session.log.borrow();
        let is_finished = outcome.status == RunStatus::Finished;
        // A run that was stopped may have an incomplete answer, too.
        let count = if outcome.saved { outcome.message_ids.len() + usize::from(!is_finished) } else { 0 };
        let stored = stored_turn(&log.history, &self.id, count);
        object_to_js(&|out| {
            out.array("context", |list| {
                // Loaded history is stored where it was loaded from.
                let messages = machine.live().messages().iter();
                let provided = messages.filter(|message| message.source.kind == SourceKind::Context && outcome.saved);
                provided.for_each(|message| write_message(list, machine.live(), &self.session.id, message));
            });
            write_input_and_output(out, &log.history, &self.session.id, &stored);
            let aborted = || Error::new(ErrorCode::Aborted, "the run was cancelled");
            if let Some(error) = outcome.error.clone().or_else(|| (!is_finished).then(aborted)) {
                out.object("error", |out| {
                    out.text("code", error.code.as_str()).text("message", &error.message);
                });
            }
        })
    }
}

/// Returns the messages of a run, `count` at most, which are among the newest ones.
fn stored_turn<'h>(history: &'h History, run: &str, count: usize) -> Vec<&'h Message> {
    let is_of_run = |message: &&Message| message.run_id.as_deref() == Some(run);
    let mut messages: Vec<&Message> = history.messages().iter().rev().filter(is_of_run).take(count).collect();
    messages.reverse();
    messages
}
