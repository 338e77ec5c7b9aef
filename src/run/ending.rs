//! The transitions that end a run.

use super::context::RunContext;
use super::effect::SaveKind;
use super::journal::JournalEntry;
use super::model_call::ModelResponse;
use super::outcome::RunStatus;
use super::persistence::{stopped_entries, turn_entries, without_calls};
use super::setup::OnStop;
use super::state::{Run, RunState};
use crate::error::{Error, ErrorCode};
use crate::message::{Message, MessageStatus};
use crate::replay::drop_uncited_sources;

impl Run {
    /// Ends the run with the whole turn.
    pub(super) fn finish(&mut self) {
        self.effects.clear();
        let mut entries = turn_entries(&self.live);
        drop_uncited_sources(&mut entries, &self.setup.policy, &mut self.report);
        let save = self.save(SaveKind::Append(entries));
        self.state = RunState::AwaitingEndSave { save, status: RunStatus::Finished, error: None, appends: true };
    }

    /// Ends the run by the user's wish.
    pub(super) fn cancel(&mut self, context: &mut RunContext<'_>) {
        match &mut self.state {
            // The answer could not be saved and the user gives up. The journal stays, so the run can be resumed.
            RunState::AwaitingEndSave { .. } if !self.unsaved.is_empty() => {
                self.done(RunStatus::Cancelled, None, 0, false);
            }
            // The turn is complete and being saved, or the run is over.
            RunState::AwaitingEndSave { .. } | RunState::Done(_) => {}
            RunState::AwaitingJournal { cancelled, .. } => *cancelled = true,
            RunState::AwaitingReducer(_)
            | RunState::AwaitingModel(_)
            | RunState::AwaitingRetry { .. }
            | RunState::AwaitingAnswerSave { .. }
            | RunState::AwaitingTools(_) => {
                let error = Error::new(ErrorCode::Aborted, "the run was cancelled");
                self.end_early(RunStatus::Cancelled, error, context);
            }
        }
    }

    /// Ends the run before its turn is complete. An incomplete streamed answer is kept.
    pub(super) fn end_early(&mut self, status: RunStatus, error: Error, context: &mut RunContext<'_>) {
        let message_status =
            if status == RunStatus::Cancelled { MessageStatus::Stopped } else { MessageStatus::Failed };
        let mut partial = None;
        if let RunState::AwaitingModel(call) = &self.state
            && let ModelResponse::Streaming(assembler) = &call.response
        {
            let assembled = assembler.partial();
            partial = self.message_of(&assembled, call.answered(), message_status, context).map(|(message, _)| message);
            self.text = assembled.text;
        }
        self.end_with(status, error, partial);
    }

    /// Ends the run with an incomplete answer, if there is one.
    pub(super) fn end_with(&mut self, status: RunStatus, error: Error, partial: Option<Message>) {
        self.effects.clear();
        self.unsaved.clear();
        self.cut_answer = partial.clone().and_then(without_calls);
        let message_status =
            if status == RunStatus::Cancelled { MessageStatus::Stopped } else { MessageStatus::Failed };
        let keep = self.setup.on_stop == OnStop::Keep;
        let save = if keep {
            self.save(SaveKind::Append(stopped_entries(&self.live, partial, message_status)))
        } else {
            if let Some(cut) = self.cut_answer.clone() {
                self.save(SaveKind::Write(vec![JournalEntry::Partial(cut)]));
            }
            let (code, message) = (error.code.as_str().to_owned(), error.message.clone());
            self.save(SaveKind::Fail(Box::new(JournalEntry::Failed { code, message })))
        };
        // Cancelling is not an error.
        let error = Some(error).filter(|_| status == RunStatus::Failed);
        self.state = RunState::AwaitingEndSave { save, status, error, appends: keep };
    }
}
