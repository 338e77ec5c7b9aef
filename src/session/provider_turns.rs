//! History providers of the application (R33): they are asked before the first request of a run, and given what was
//! stored, the turn of a run that is over and what an append has added (R34).

use super::open_session::OpenSession;
use super::run_driver::RunDriver;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::{
    History, HistoryEntry, Incoming, JoinBase, MessageFormat, MessageWriter, NO_ALTERNATIVES, Origin, ProvidedMessages,
    join,
};
use crate::json::{ArrayWriter, Json, ObjectWriter};
use crate::message::{Message, Role, SourceKind};
use crate::replay::Callback;
use crate::run::RunStatus;
use std::collections::BTreeSet;

/// The messages that an append has added, and the calls that it has given a result.
#[derive(Default)]
pub struct AppendedContent {
    /// The ids of the messages.
    pub message_ids: Vec<String>,
    /// The calls that got a result.
    pub invocations: Vec<String>,
}

impl AppendedContent {
    /// Returns what entries add.
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

impl OpenSession {
    /// Asks the providers for messages that precede this input.
    ///
    /// # Errors
    /// `callback_failed`, which names the provider; `closed` if the wait for it was ended.
    pub async fn ask_providers(&self, provide: Option<&Callback>, input: &[Incoming]) -> Result<Vec<ProvidedMessages>> {
        let Some(provide) = provide else { return Ok(Vec::new()) };
        let asked = self.context.host.provide(provide, self.messages_of_input(input));
        let provided = self.context.callbacks.answered(asked).await??;
        ProvidedMessages::read_all(provided.view())
    }

    fn messages_of_input(&self, input: &[Incoming]) -> Json {
        let now = self.context.now();
        self.context.host.draw_ids();
        let log = self.log.borrow();
        let mut live = History::new(self.context.settings.seed);
        let origin = Origin { at: now, ..Origin::default() };
        let joined = join(JoinBase::live(&log.history, &live), input.to_vec(), &origin, self.context.ids());
        joined.entries.into_iter().for_each(|entry| live.apply(entry));
        let mut text = String::new();
        let mut list = ArrayWriter::new(&mut text);
        live.messages().iter().for_each(|message| write_message(&mut list, &live, &self.id, message));
        list.end();
        Json::trusted(text)
    }

    /// Gives what an append has stored to the providers. What fails is reported as a warning: the append is stored.
    pub async fn give_to_providers(&self, store: Option<&Callback>, content: &AppendedContent) {
        let Some(store) = store else { return };
        let turn = {
            let log = self.log.borrow();
            let messages = content.messages(&log.history);
            if messages.is_empty() {
                return;
            }
            ObjectWriter::build(|out| {
                out.array("context", |_| {});
                write_input_and_output(out, &log.history, &self.id, &messages);
            })
        };
        let given = self.context.host.give_to_providers(store, turn);
        let findings = match self.context.callbacks.answered(given).await {
            Ok(failures) => failures,
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
    let writer = MessageWriter { history, session, format: MessageFormat::WithCalls, alternatives: &NO_ALTERNATIVES };
    list.object(|out| writer.write(out, message, None));
}

fn unanswered(reason: &str) -> Finding {
    let sentence = format!(
        "{reason} while `store` of its history providers had not answered, so whether they have the messages is not known; the session has them"
    );
    Finding::warning(FindingCode::CallbackFailed, sentence)
}

impl RunDriver {
    /// Gives the turn of a run that is over to the providers, once. What fails is reported as a warning.
    ///
    /// # Errors
    /// `closed` if the store is closed before they answer.
    pub async fn store_in_providers(&self) -> Result<()> {
        let Some(store) = self.store_hook.take() else { return Ok(()) };
        let given = self.session.context.host.give_to_providers(&store, self.turn_for_providers());
        let Ok(failures) = self.callbacks.answered(given).await else {
            self.session.context.check_open()?;
            self.session.context.warn(&[unanswered("the run was cancelled or disposed")]);
            return Ok(());
        };
        for finding in failures {
            self.machine.borrow_mut().warn_before_end(finding);
        }
        Ok(())
    }

    /// Returns what history has of the turn, as redacted there, and the error of a run that stored nothing.
    fn turn_for_providers(&self) -> Json {
        let machine = self.machine.borrow();
        let outcome = machine.outcome();
        let log = self.session.log.borrow();
        let is_finished = outcome.status == RunStatus::Finished;
        // A run that was stopped may have an incomplete answer, too.
        let count = if outcome.saved { outcome.message_ids.len() + usize::from(!is_finished) } else { 0 };
        let stored = stored_turn(&log.history, &self.id, count);
        ObjectWriter::build(|out| {
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
