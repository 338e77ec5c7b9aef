//! The run waits for its last save: the append of the turn, or the end of the journal.

use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::message::{Message, MessageStatus, Role};
use crate::replay::CompletedTurns;
use crate::run::context::RunContext;
use crate::run::effect::SaveKind;
use crate::run::event::RunEvent;
use crate::run::handoff::Handoff;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{EarlyStop, FinalResult, NextState, TurnEnd, is_run_lost};
use crate::run::outcome::RunStatus;
use crate::run::replay_safety::RequestDelivery;
use crate::run::run_writes::{trim_last_results, without_calls};
use crate::run::setup::{OnStop, Persistence};
use crate::run::state_behavior::{DoneSave, StateBehavior, no_model_call};
use crate::run::turn::RunData;
use crate::tool::{InvocationStatus, ToolInvocation};

/// The run waits for its last save.
pub struct AwaitingEndSave {
    save: u64,
    status: RunStatus,
    error: Option<Error>,
    /// True if the save appends to history.
    appends: bool,
    /// True if the turn ends with the model's answer.
    has_answer: bool,
    /// The user cancelled the run while its turn was being saved: if that fails, nobody repeats it.
    is_cancelled: bool,
}

impl AwaitingEndSave {
    /// Ends the run with the whole turn.
    pub fn finish(turn: &mut RunData, end: TurnEnd) -> Self {
        turn.close_effects();
        let mut entries = turn.take_unstored();
        let setup = turn.setup();
        let trims_results = match setup.persistence {
            Persistence::Run => setup.trim_trailing_results,
            Persistence::Call => true,
            Persistence::Result => false,
        };
        if trims_results && end == TurnEnd::Results {
            trim_last_results(&mut entries, turn.live());
        }
        let mut report = Vec::new();
        // What `persist` has replaced stays as it returned it.
        let may_replace = |call: &ToolInvocation| !setup.persist.contains_key(&call.name) && !turn.is_provided(call);
        let completed = CompletedTurns { known: turn.live(), may_replace: &may_replace };
        completed.drop_uncited_sources(&mut entries, &setup.policy, &mut report);
        turn.add_to_report(&report);
        let save = turn.save(SaveKind::Append(entries));
        Self {
            save,
            status: RunStatus::Finished,
            error: None,
            appends: true,
            has_answer: end == TurnEnd::Answer,
            is_cancelled: false,
        }
    }

    /// Ends the run before its turn is complete.
    pub fn stop(turn: &mut RunData, stop: EarlyStop) -> Self {
        let message_status = stop.message_status();
        let EarlyStop { status, error, partial } = stop;
        turn.close_effects();
        // What failed to be stored cannot be appended to.
        let keeps = turn.setup().on_stop == OnStop::Keep || partial.as_ref().is_some_and(is_acknowledged);
        let appends = keeps && !turn.has_failed_history();
        turn.drop_failed_saves();
        let cut = partial.clone().and_then(without_calls);
        turn.keep_cut_answer(cut.clone());
        let save = if appends {
            let entries = turn.take_stopped(partial, message_status);
            turn.save(SaveKind::Append(entries))
        } else {
            turn.save_interruptions(match status {
                RunStatus::Cancelled => InvocationStatus::Aborted,
                RunStatus::Failed | RunStatus::Finished | RunStatus::WaitingApproval | RunStatus::Running => {
                    InvocationStatus::Interrupted
                }
            });
            if let Some(cut) = cut {
                turn.save(SaveKind::Write(vec![JournalEntry::Partial(cut)]));
            }
            let (code, message) = (error.code.as_str().to_owned(), error.message.clone());
            let is_replay_safe = turn.request_delivery() != RequestDelivery::Unconfirmed;
            turn.save(SaveKind::Fail(Box::new(JournalEntry::Failed { code, message, is_replay_safe })))
        };
        // Cancelling is not an error.
        let error = Some(error).filter(|_| status == RunStatus::Failed);
        Self { save, status, error, appends, has_answer: false, is_cancelled: false }
    }
}

impl StateBehavior for AwaitingEndSave {
    fn awaits(&self, save: u64) -> bool {
        self.save == save
    }

    fn saved(&mut self, done: DoneSave, turn: &mut RunData, _context: &RunContext<'_>) -> Option<NextState> {
        let revision = done.revision;
        if self.appends {
            turn.emit(RunEvent::Saved { revision });
        }
        let (status, error) = (self.status, self.error.clone());
        Some(NextState::Done(FinalResult { status, error, revision, saved: self.appends }))
    }

    fn save_failed(&self, _save: u64, turn: &mut RunData, failure: Error) -> Option<NextState> {
        if !self.appends {
            // After a conflict the journal belongs to another holder, who removes it.
            if failure.code != ErrorCode::Conflict {
                let message = format!(
                    "the run's journal could not be removed, so `pendingRuns()` lists the run again; call `discard` to remove it: {}",
                    failure.message
                );
                turn.warn(Finding::warning(FindingCode::JournalKept, message));
            }
            return Some(NextState::Done(FinalResult::unsaved(self.status, self.error.clone())));
        }
        if is_run_lost(&failure) {
            return Some(NextState::Done(FinalResult::failed(failure)));
        }
        turn.emit(RunEvent::SaveFailed { error: failure });
        self.is_cancelled.then(|| NextState::Done(FinalResult::unsaved(RunStatus::Cancelled, None)))
    }

    /// Ends a run that the user gives up, at once if its answer could not be saved. The journal stays, so the run can
    /// be resumed.
    fn cancel(&mut self, turn: &mut RunData, _context: &RunContext<'_>) -> Option<NextState> {
        // Without a failed save the turn is complete and being saved: `save_failed` ends the run if that fails.
        self.is_cancelled = true;
        turn.has_failed_save().then(|| NextState::Done(FinalResult::unsaved(RunStatus::Cancelled, None)))
    }

    /// A run that is ending learns it from its last save.
    fn lose(&self, _error: Error) -> Option<NextState> {
        None
    }

    fn abandon(&self, failure: Error) -> Option<NextState> {
        Some(NextState::Done(match self.status {
            _ if self.is_cancelled => FinalResult::unsaved(RunStatus::Cancelled, None),
            RunStatus::Cancelled => FinalResult::unsaved(RunStatus::Cancelled, None),
            RunStatus::Failed | RunStatus::Finished | RunStatus::WaitingApproval | RunStatus::Running => {
                FinalResult::failed(failure)
            }
        }))
    }

    fn completion(&self, turn: &RunData, journal: &[JournalEntry]) -> Option<JournalEntry> {
        let is_stored = |id: &String| {
            let is_same =
                |entry: &JournalEntry| matches!(entry, JournalEntry::Answered { message, .. } if message.id == *id);
            journal.iter().any(is_same)
        };
        let is_complete = journal.iter().any(|entry| matches!(entry, JournalEntry::Completed(_)));
        let is_answer = |last: &&Message| last.role == Role::Assistant && !last.source.is_of_provider();
        // The last message is an earlier one if the answer is empty.
        let last = turn.live().messages().last().filter(is_answer);
        // A part that was stored as one that goes on, and is truncated since its token was refused.
        let is_truncated = |last: &Message| last.is_unfinished() && last.status == MessageStatus::Truncated;
        let last = last.filter(|last| !is_stored(&last.id) || is_truncated(last));
        (self.has_answer && !is_complete).then(|| JournalEntry::Completed(last.cloned()))
    }

    fn hand_off(&mut self, _turn: &mut RunData, _handoff: Handoff, _now: Ms) -> Result<()> {
        Err(no_model_call())
    }
}

/// Returns true if a service has the incomplete answer and its request, so that history keeps them too.
fn is_acknowledged(partial: &Message) -> bool {
    partial.answer.as_ref().is_some_and(|answer| answer.service_mark.is_some())
}
