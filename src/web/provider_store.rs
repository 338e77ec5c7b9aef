//! Gives the turn of a run that is over to the history providers (R33).

use super::convert::object_to_js;
use super::foreign::{items, reason_of};
use super::run_inner::RunInner;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::{History, MessageFormat, MessageWriter};
use crate::json::ArrayWriter;
use crate::message::{Message, Role};
use crate::run::RunStatus;
use wasm_bindgen::JsValue;

/// Maximum number of warnings of the providers of one run.
const MAX_WARNINGS: u32 = 1000;

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
            let sentence = "the run was cancelled or disposed while `store` of its history providers had not answered, so whether they have the turn is not known";
            self.session.context.warn(&[Finding::warning(FindingCode::CallbackFailed, sentence)]);
            return Ok(());
        };
        let failures = match &returned {
            Ok(failures) => items("the warnings", failures, MAX_WARNINGS).ok().flatten().unwrap_or_default(),
            Err(thrown) => vec![thrown.clone()],
        };
        for failure in failures {
            let finding = Finding::warning(FindingCode::CallbackFailed, reason_of(&failure));
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
        let write = |history: &History, message: &Message, list: &mut ArrayWriter<'_>| {
            let writer = MessageWriter { history, session: &self.session.id, format: MessageFormat::WithCalls };
            list.object(|out| writer.write(out, message, None));
        };
        object_to_js(&|out| {
            out.array("context", |list| {
                let provided = machine.live().messages().iter().filter(|message| message.source.is_provided());
                provided.filter(|_| outcome.saved).for_each(|message| write(machine.live(), message, list));
            });
            for (key, is_output) in [("input", false), ("output", true)] {
                out.array(key, |list| {
                    let messages = stored.iter().filter(|message| (message.role == Role::Assistant) == is_output);
                    messages.for_each(|message| write(&log.history, message, list));
                });
            }
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
