//! What the host and the binding tell a run, and the transitions of saves.

use super::context::RunContext;
use super::effect::{EffectReply, RunInput};
use super::event::RunEvent;
use super::outcome::RunStatus;
use super::state::{AfterAnswer, Run, RunState, wrong_state};
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};

impl Run {
    /// Handles an input of the host or the binding, and makes the transition that it causes.
    ///
    /// # Errors
    /// `unknown_effect` or `wrong_state`, if the input is not allowed; the run is unchanged.
    pub fn handle(&mut self, input: RunInput, context: &mut RunContext<'_>) -> Result<()> {
        match input {
            RunInput::Cancel => {
                self.cancel(context);
                Ok(())
            }
            RunInput::OwnershipLost(error) => {
                // A run that is ending learns it from its last save.
                if !matches!(self.state, RunState::AwaitingEndSave { .. } | RunState::Done(_)) {
                    self.done(RunStatus::Failed, Some(error), 0, false);
                }
                Ok(())
            }
            RunInput::RetrySave => {
                if self.unsaved.is_empty() {
                    return Err(wrong_state("no save has failed; `save` repeats a failed one only"));
                }
                // Failed saves come before later ones: a journal is read in its order.
                self.unsaved.append(&mut self.saves);
                std::mem::swap(&mut self.unsaved, &mut self.saves);
                Ok(())
            }
            RunInput::ReducerReply(reply) => {
                self.take_reply(reply, context);
                Ok(())
            }
            RunInput::PersistReply(question, reply) => {
                self.take_persist_reply(&question, reply);
                Ok(())
            }
            RunInput::Saved { save, outcome } => {
                self.saved(save, outcome, context);
                Ok(())
            }
            RunInput::Bytes { effect, bytes } => self.take_bytes(&effect, &bytes, context),
            RunInput::ResponseTooLarge { effect } => self.take_oversize(&effect, context),
            RunInput::Answer { effect, reply } => self.take_effect_reply(&effect, reply, context),
        }
    }

    fn take_effect_reply(&mut self, effect: &str, reply: EffectReply, context: &mut RunContext<'_>) -> Result<()> {
        if !self.is_open(effect)? {
            return Ok(());
        }
        match &mut self.state {
            RunState::AwaitingModel(_) => self.model_reply(reply, context),
            RunState::AwaitingRetry { .. } => match reply {
                EffectReply::Waited => {
                    self.ask_again(context);
                    Ok(())
                }
                _ => Err(wrong_state("a `wait` must be answered by `waited`")),
            },
            RunState::AwaitingTools(_) => self.tool_reply(effect, reply, context),
            RunState::AwaitingJournal { .. }
            | RunState::AwaitingReducer(_)
            | RunState::AwaitingAnswerSave { .. }
            | RunState::AwaitingEndSave { .. }
            | RunState::Done(_) => Ok(()),
        }
    }

    fn saved(&mut self, id: u64, outcome: Result<u64>, context: &mut RunContext<'_>) {
        match outcome {
            Ok(revision) => self.save_succeeded(id, revision, context),
            Err(error) => self.save_failed(id, error),
        }
    }

    fn save_succeeded(&mut self, id: u64, revision: u64, context: &mut RunContext<'_>) {
        match &mut self.state {
            RunState::AwaitingJournal { save, cancelled } if *save == id => {
                if *cancelled {
                    let error = Error::new(ErrorCode::Aborted, "the run was cancelled");
                    self.end_early(RunStatus::Cancelled, error, context);
                } else {
                    self.call_model(context);
                }
            }
            RunState::AwaitingAnswerSave { save, then } if *save == id => match then {
                AfterAnswer::Tools => self.begin_tools(None, context),
                AfterAnswer::CallAgain => self.call_model(context),
            },
            RunState::AwaitingTools(round) => {
                round.complete_save(id);
                self.tools_done(context);
            }
            RunState::AwaitingEndSave { save, status, error, appends } if *save == id => {
                let (status, error, appends) = (*status, error.take(), *appends);
                if appends {
                    self.events.push(RunEvent::Saved { revision });
                }
                self.done(status, error, revision, appends);
            }
            // The run does not wait for this save.
            RunState::AwaitingJournal { .. }
            | RunState::AwaitingReducer(_)
            | RunState::AwaitingModel(_)
            | RunState::AwaitingRetry { .. }
            | RunState::AwaitingAnswerSave { .. }
            | RunState::AwaitingEndSave { .. }
            | RunState::Done(_) => {}
        }
    }

    fn save_failed(&mut self, id: u64, failure: Error) {
        if !self.awaits(id) {
            return;
        }
        // Another owner took the run over; it alone may write now.
        let lost_ownership = matches!(failure.code, ErrorCode::Conflict | ErrorCode::NotFound);
        match &mut self.state {
            RunState::AwaitingJournal { .. } => self.done(RunStatus::Failed, Some(failure), 0, false),
            RunState::AwaitingEndSave { status, error, appends: false, .. } => {
                let (status, error) = (*status, error.take());
                // After a conflict the journal belongs to another owner, who removes it.
                if failure.code != ErrorCode::Conflict {
                    self.warn(Finding::warning(
                        FindingCode::JournalKept,
                        format!(
                            "the run's journal could not be removed, so the run is offered for resuming: {}",
                            failure.message
                        ),
                    ));
                }
                self.done(status, error, 0, false);
            }
            RunState::AwaitingEndSave { .. } | RunState::AwaitingAnswerSave { .. } | RunState::AwaitingTools(_)
                if lost_ownership =>
            {
                self.done(RunStatus::Failed, Some(failure), 0, false);
            }
            // A tool must not run unless its start is saved.
            RunState::AwaitingTools(round) if round.was_start(id) => {
                self.done(RunStatus::Failed, Some(failure), 0, false)
            }
            RunState::AwaitingEndSave { .. } | RunState::AwaitingAnswerSave { .. } | RunState::AwaitingTools(_) => {
                self.events.push(RunEvent::SaveFailed { error: failure });
            }
            RunState::AwaitingReducer(_)
            | RunState::AwaitingModel(_)
            | RunState::AwaitingRetry { .. }
            | RunState::Done(_) => {}
        }
    }
}
