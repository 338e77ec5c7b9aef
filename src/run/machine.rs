//! [`Run`], the state machine: it passes each input to the present state, and enters the state that this one returns.

use super::approval::{ApprovalDecision, ApprovalQuestion, WaitingCall};
use super::body_filter_question::BodyFilterQuestion;
use super::context::RunContext;
use super::effect::{Effect, EffectReply, RunInput, Save};
use super::event::RunEvent;
use super::handoff::Handoff;
use super::history_choice::HistoryChoice;
use super::incoming_answer::PartialAnswer;
use super::journal::JournalEntry;
use super::next_state::{CallAttempt, EarlyStop, FinalResult, NextState, is_run_lost, wrong_state};
use super::outcome::{RunOutcome, RunStatus};
use super::persist_question::PersistQuestion;
use super::replay_safety::RequestDelivery;
use super::retry::ReplayQuestion;
use super::setup::RunSetup;
use super::snapshot::{RunSnapshot, messages_with_calls};
use super::start::{TurnInput, join_input};
use super::state::{
    AwaitingAnswerSave, AwaitingBody, AwaitingEndSave, AwaitingJournal, AwaitingModel, AwaitingRetry, AwaitingTools,
    begin_call, build_body, no_waiting_call, repeat_unconfirmed, repeat_undelivered, replay_body, send,
};
use super::state_behavior::{AnsweredEffect, DoneSave, StateBehavior, no_model_call};
use super::stored_turn::StoredTurn;
use super::turn::RunData;
use crate::clock::Ms;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::history::History;
use crate::message::{Dialect, Message};
use crate::owner::{Delta, StateOwner};
use crate::render::replayed_messages;
use crate::replay::ReducerQuestion;

/// A run: one turn, from its input to the answer that ends it.
pub struct Run {
    pub(super) turn: RunData,
    pub(super) state: RunState,
}

/// The state of a run: what it waits for.
pub(super) enum RunState {
    AwaitingJournal(AwaitingJournal),
    AwaitingBody(Box<AwaitingBody>),
    AwaitingModel(Box<AwaitingModel>),
    AwaitingRetry(Box<AwaitingRetry>),
    AwaitingAnswerSave(AwaitingAnswerSave),
    AwaitingTools(AwaitingTools),
    AwaitingEndSave(AwaitingEndSave),
    /// Nothing: the run is over.
    Done(Box<RunOutcome>),
    /// Nothing: the run's data was dropped before its end.
    Released(Released),
}

/// The state of a run whose data was dropped.
pub(super) struct Released;

impl RunState {
    fn behavior(&self) -> &dyn StateBehavior {
        match self {
            Self::AwaitingJournal(state) => state,
            Self::AwaitingBody(state) => &**state,
            Self::AwaitingModel(state) => &**state,
            Self::AwaitingRetry(state) => &**state,
            Self::AwaitingAnswerSave(state) => state,
            Self::AwaitingTools(state) => state,
            Self::AwaitingEndSave(state) => state,
            Self::Done(outcome) => &**outcome,
            Self::Released(state) => state,
        }
    }

    fn behavior_mut(&mut self) -> &mut dyn StateBehavior {
        match self {
            Self::AwaitingJournal(state) => state,
            Self::AwaitingBody(state) => &mut **state,
            Self::AwaitingModel(state) => &mut **state,
            Self::AwaitingRetry(state) => &mut **state,
            Self::AwaitingAnswerSave(state) => state,
            Self::AwaitingTools(state) => state,
            Self::AwaitingEndSave(state) => state,
            Self::Done(outcome) => &mut **outcome,
            Self::Released(state) => state,
        }
    }

    /// Returns the round of tool calls, while the run waits for one.
    pub(super) fn tools(&self) -> Option<&AwaitingTools> {
        if let Self::AwaitingTools(tools) = self { Some(tools) } else { None }
    }

    /// Returns the state in which the application decides about the next body.
    fn awaiting_body_mut(&mut self) -> Option<&mut AwaitingBody> {
        if let Self::AwaitingBody(state) = self { Some(state) } else { None }
    }

    fn tools_mut(&mut self) -> Option<&mut AwaitingTools> {
        if let Self::AwaitingTools(tools) = self { Some(tools) } else { None }
    }

    /// Returns the model call, while the run waits for its answer.
    fn model_mut(&mut self) -> Option<&mut AwaitingModel> {
        if let Self::AwaitingModel(state) = self { Some(state) } else { None }
    }

    /// Returns the pause before the next attempt of a model call, while the run waits for its end.
    fn retry_mut(&mut self) -> Option<&mut AwaitingRetry> {
        if let Self::AwaitingRetry(state) = self { Some(state) } else { None }
    }
}

impl Run {
    /// Starts a run.
    ///
    /// # Errors
    /// `config_invalid` and `invalid_input`; nothing has happened then.
    pub fn start(setup: RunSetup, input: TurnInput, context: &mut RunContext<'_>) -> Result<Self> {
        let setup = setup.for_owner();
        setup.check()?;
        let (live, report) = join_input(&setup, input, context)?;
        let entries = JournalEntry::beginning(&setup, context.now, &live, context.history);
        let stored = StoredTurn::default();
        let mut turn = RunData::new(setup, live, stored, report);
        if let Some(JournalEntry::Began(start)) = entries.first() {
            *turn.history_choice_mut() = HistoryChoice::new(start, None);
        }
        let state = RunState::AwaitingJournal(AwaitingJournal::enter(&mut turn, entries));
        Ok(Self { turn, state })
    }

    /// Handles an input of the host or the binding, and makes the transition that it causes.
    ///
    /// # Errors
    /// `unknown_effect` or `wrong_state`, if the input is not allowed; the run is unchanged.
    pub fn handle(&mut self, input: RunInput, context: &mut RunContext<'_>) -> Result<()> {
        if let RunInput::Saved { save, outcome: Ok(_) } = &input {
            self.note_saved(*save, context);
        }
        let next = match input {
            RunInput::Answer { effect, reply } => self.take_effect_reply(&effect, reply, context)?,
            RunInput::Bytes { effect, bytes } => self.take_bytes(&effect, &bytes, context)?,
            RunInput::ResponseTooLarge { effect } => self.take_oversize(&effect, context)?,
            RunInput::Cancel => self.state.behavior_mut().cancel(&mut self.turn, context),
            RunInput::Lost(error) => self.state.behavior().lose(error),
            RunInput::AbandonSaves(error) => self.abandon_saves(error),
            RunInput::RetrySave => {
                self.retry_saves()?;
                None
            }
            // A late reply is ignored.
            RunInput::ReducerReply(reply) => {
                self.state.awaiting_body_mut().and_then(|state| state.reply_to_reducer(reply, context))
            }
            RunInput::BodyFilterReply(reply) => {
                let (turn, refused) = (&mut self.turn, context.refused);
                self.state.awaiting_body_mut().and_then(|state| state.reply_to_body_filter(turn, reply, refused))
            }
            RunInput::HandOff(handoff) => {
                self.state.behavior_mut().hand_off(&mut self.turn, *handoff, context.now).map(|()| None)?
            }
            RunInput::Decide { id, decision } => self.decide(&id, &decision, context).map(|()| None)?,
            RunInput::ApprovalReply(invocation, reply) => {
                // A late reply is ignored.
                if let Some(tools) = self.state.tools_mut() {
                    tools.take_approval_reply(&mut self.turn, &invocation, reply, context.now);
                }
                None
            }
            // A late reply is ignored.
            RunInput::ReplayReply(approved) => {
                self.state.retry_mut().and_then(|state| state.reply_to_question(&mut self.turn, approved))
            }
            RunInput::PersistReply(question, reply) => {
                self.turn.take_persist_reply(&question, reply);
                None
            }
            RunInput::Saved { save, outcome } if self.state.behavior().awaits(save) => match outcome {
                Ok(revision) => {
                    let done = DoneSave { id: save, revision };
                    self.state.behavior_mut().saved(done, &mut self.turn, context)
                }
                Err(error) => self.state.behavior().save_failed(save, &mut self.turn, error),
            },
            // The run does not wait for every save, but each one can show that another holder has the run.
            RunInput::Saved { outcome: Err(error), .. } if is_run_lost(&error) => self.state.behavior().lose(error),
            RunInput::Saved { save, outcome } => {
                let state = self.state.behavior_mut();
                outcome.err().iter().for_each(|error| state.note_unsaved(save, &mut self.turn, error));
                None
            }
        };
        if let Some(next) = next {
            self.state = enter(&mut self.turn, next, context);
        }
        Ok(())
    }

    fn retry_saves(&mut self) -> Result<()> {
        if !self.turn.has_failed_save() {
            return Err(wrong_state("no save has failed; `save` repeats a failed one only"));
        }
        self.turn.retry_failed_saves();
        Ok(())
    }

    /// Notes what is stored now, also by a save that the run does not wait for.
    fn note_saved(&mut self, save: u64, context: &mut RunContext<'_>) {
        self.turn.note_saved(save);
        if let Some(request) = self.turn.history_choice_mut().take_stored_request(save) {
            context.renderer.keep_stored_request(request);
        }
    }

    /// Ends the run because its saves fail. A snapshot of it has what they contain.
    fn abandon_saves(&mut self, error: Error) -> Option<NextState> {
        let state = self.state.behavior();
        if let Ok(mut journal) = self.turn.journal() {
            journal.extend(state.completion(&self.turn, &journal));
            self.turn.replace_journal(&journal);
        }
        state.abandon(error)
    }

    fn take_effect_reply(
        &mut self,
        effect: &str,
        reply: EffectReply,
        context: &RunContext<'_>,
    ) -> Result<Option<NextState>> {
        if !self.turn.is_open(effect)? {
            return Ok(None);
        }
        self.state.behavior_mut().reply(&mut self.turn, AnsweredEffect { effect, reply }, context)
    }

    /// Handles a person's decision about a call.
    fn decide(&mut self, id: &str, decision: &ApprovalDecision, context: &RunContext<'_>) -> Result<()> {
        if *decision == ApprovalDecision::Approve {
            // A tool does not run if its result could not be sent.
            Delta::new(
                &self.turn.setup().owner,
                self.turn.setup().provider.dialect,
                context.history,
                Some(self.turn.live()),
            )
            .check_calls_are_open()?;
        }
        match self.state.tools_mut() {
            Some(tools) => tools.decide(&mut self.turn, id, decision, context.now),
            None => Err(no_waiting_call(&self.turn, id)),
        }
    }

    /// Handles bytes of a response. Bytes of a call that is answered already change nothing.
    fn take_bytes(&mut self, effect: &str, bytes: &[u8], context: &RunContext<'_>) -> Result<Option<NextState>> {
        if !self.turn.is_open(effect)? {
            return Ok(None);
        }
        match self.state.model_mut() {
            Some(state) => state.receive(&mut self.turn, bytes, context),
            None => Err(wrong_state("this effect takes no bytes; feed them to a `call_model`")),
        }
    }

    /// Handles the host's report that a response has more bytes than the run allows.
    fn take_oversize(&mut self, effect: &str, context: &RunContext<'_>) -> Result<Option<NextState>> {
        if !self.turn.is_open(effect)? {
            return Ok(None);
        }
        match self.state.model_mut() {
            Some(state) => Ok(Some(state.too_large(&mut self.turn, context))),
            None => Err(wrong_state("this effect has no response; only a `call_model` has one")),
        }
    }

    /// Returns the highest number of bytes of a response.
    #[must_use]
    pub fn max_response_bytes(&self) -> u64 {
        self.turn.setup().max_response_bytes
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        self.state.behavior().status()
    }

    /// Returns the run's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.turn.setup().id
    }

    /// Returns what the run's requests are made for.
    #[must_use]
    pub fn setup(&self) -> &RunSetup {
        self.turn.setup()
    }

    /// Returns the dialect of its requests.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.turn.setup().provider.dialect
    }

    /// Returns the number of handoffs in effect: 0 while the run belongs to the agent that it began with.
    #[must_use]
    pub fn handoff_count(&self) -> usize {
        self.turn.handoffs().count()
    }

    /// Returns the turn so far. History has none of it yet in mode `run`, and a part of it in the others.
    #[must_use]
    pub fn live(&self) -> &History {
        self.turn.live()
    }

    /// Returns a snapshot of the unfinished run, of a session of this id.
    ///
    /// # Errors
    /// `wrong_state` for a run whose turn is in history, or that was cancelled or dropped: there is nothing to resume.
    pub fn snapshot(&self, session: &str, context: &RunContext<'_>) -> Result<RunSnapshot> {
        let mut journal = self.turn.journal()?;
        self.state.behavior().check_resumable()?;
        journal.extend(self.state.behavior().completion(&self.turn, &journal));
        let (history, live, run) = (context.history, self.live(), self.id());
        let policy = &self.turn.setup().policy;
        let is_earlier = |message: &Message| message.run_id.as_deref() != Some(run);
        let sent = if self.turn.setup().owner == StateOwner::Caller {
            // A request of a conversation that the application holds has nothing of history.
            Vec::new()
        } else if self.turn.handoffs().has_any() {
            (0..history.messages().len()).collect()
        } else {
            let choice = self.turn.history_choice();
            let chosen = choice.stored_messages(history);
            chosen.unwrap_or_else(|| replayed_messages(history, live, policy, choice.time(context.now)))
        };
        let sent = sent.into_iter().filter(|index| history.messages().get(*index).is_some_and(is_earlier));
        Ok(RunSnapshot {
            session: session.to_owned(),
            run: run.to_owned(),
            journal,
            base: history.messages().iter().rev().find(|message| is_earlier(message)).map(|message| message.id.clone()),
            history: messages_with_calls(history, sent),
            highest_source: history.highest_source().max(live.highest_source()),
            origin: None,
        })
    }

    /// Returns the received part of the current answer or, after a run that ended early, the incomplete answer.
    #[must_use]
    pub fn partial_answer(&self, now: Ms) -> Option<PartialAnswer<'_>> {
        match &self.state {
            RunState::AwaitingModel(state) => state.incoming(now).map(PartialAnswer::Incoming),
            _ => self.turn.cut_answer().map(PartialAnswer::Cut),
        }
    }

    /// Returns the open effects: what the host must do now.
    #[must_use]
    pub fn effects(&self) -> Vec<&Effect> {
        self.turn.effects().all()
    }

    /// Returns the open effects with numbers above `number`, and their numbers, which count from 1.
    #[must_use]
    pub fn effects_after(&self, number: u64) -> Vec<(u64, &Effect)> {
        self.turn.effects().after(number)
    }

    /// Returns the open effect of this number.
    pub fn effect(&self, number: u64) -> Option<&Effect> {
        self.turn.effects().get(number)
    }

    /// Takes the numbers of the effects that were closed since the last call: answered, or no longer needed.
    pub fn take_closed_effects(&mut self) -> Vec<u64> {
        self.turn.take_closed_effects()
    }

    /// Adds a finding to a run that is over and whose last event was not taken yet.
    pub fn warn_before_end(&mut self, finding: Finding) {
        if let RunState::Done(outcome) = &mut self.state {
            outcome.report.push(finding.clone());
            self.turn.warn_before_end(finding);
        }
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Vec<RunEvent> {
        self.turn.take_events()
    }

    /// Takes the question of a reducer, for the binding. Each question is returned once.
    pub fn take_reducer_question(&mut self) -> Option<ReducerQuestion> {
        self.state.awaiting_body_mut()?.take_reducer_question()
    }

    /// Takes the question to the application's filter of requests, for the binding. Each question is returned once.
    pub fn take_body_filter_question(&mut self) -> Option<BodyFilterQuestion> {
        self.state.awaiting_body_mut()?.take_body_filter_question()
    }

    /// Takes the next question whether a call needs an approval, for the binding. Each question is returned once.
    pub fn take_approval_question(&mut self) -> Option<ApprovalQuestion> {
        self.state.tools_mut()?.take_question()
    }

    /// Returns the calls that wait for an approval.
    #[must_use]
    pub fn approvals(&self) -> Vec<WaitingCall> {
        self.state.tools().map(|tools| tools.waiting_calls(&self.turn)).unwrap_or_default()
    }

    /// Checks that a call waits for an approval. `id`: its invocation id or its call id.
    ///
    /// # Errors `wrong_state` for another call of the turn, `invalid_input` for a call id of several calls, `not_found`
    /// for any other id.
    pub fn check_waiting(&self, id: &str) -> Result<()> {
        match self.state.tools() {
            Some(tools) => tools.find_waiting(&self.turn, id).map(|_| ()),
            None => Err(no_waiting_call(&self.turn, id)),
        }
    }

    /// Takes the question whether a failed request may be sent again, for the binding. Each question is returned once.
    pub fn take_replay_question(&mut self) -> Option<ReplayQuestion> {
        self.state.retry_mut()?.take_question()
    }

    /// Takes the next question about the next save. Of a call whose question is not answered, only its existence is
    /// stored.
    pub fn take_persist_question(&mut self) -> Option<PersistQuestion> {
        self.turn.take_persist_question()
    }

    /// Takes the next save, redacted. The binding answers the questions of
    /// [`take_persist_question`](Self::take_persist_question) first.
    pub fn take_save(&mut self) -> Option<Save> {
        self.turn.take_save()
    }

    /// Keeps a save that failed until [`RunInput::RetrySave`].
    pub fn keep_unsaved(&mut self, save: Save) {
        if self.state.behavior().awaits(save.id) {
            self.turn.keep_failed_save(save);
        }
    }

    /// Returns true if a failed save waits to be repeated.
    #[must_use]
    pub fn has_unsaved(&self) -> bool {
        self.turn.has_failed_save()
    }

    /// Returns the end of the pause, if the run pauses before it repeats a model call.
    #[must_use]
    pub fn retry_at(&self) -> Option<Ms> {
        match &self.state {
            RunState::AwaitingRetry(state) => state.retry_at(),
            RunState::AwaitingModel(state) => state.retry_at(),
            _ => None,
        }
    }

    /// Returns the outcome; of a run in progress, the outcome so far.
    #[must_use]
    pub fn outcome(&self) -> RunOutcome {
        match &self.state {
            RunState::Done(outcome) => (**outcome).clone(),
            _ => self.turn.outcome(self.status()),
        }
    }

    /// Drops the run's data. The run never finishes.
    pub fn release(&mut self) {
        self.turn.release();
        self.state = RunState::Released(Released);
    }
}

/// The run is over.
impl StateBehavior for RunOutcome {
    fn status(&self) -> RunStatus {
        self.status
    }

    fn hand_off(&mut self, _turn: &mut RunData, _handoff: Handoff, _now: Ms) -> Result<()> {
        Err(no_model_call())
    }

    fn cancel(&mut self, _turn: &mut RunData, _context: &RunContext<'_>) -> Option<NextState> {
        None
    }

    fn lose(&self, _error: Error) -> Option<NextState> {
        None
    }

    fn check_resumable(&self) -> Result<()> {
        if self.saved {
            return Err(wrong_state("the run is over and its turn is in history; there is nothing to resume"));
        }
        if self.status == RunStatus::Cancelled {
            return Err(wrong_state("the run was cancelled, which ended it; there is nothing to resume"));
        }
        Ok(())
    }
}

impl StateBehavior for Released {
    fn hand_off(&mut self, _turn: &mut RunData, _handoff: Handoff, _now: Ms) -> Result<()> {
        Err(no_model_call())
    }

    fn cancel(&mut self, _turn: &mut RunData, _context: &RunContext<'_>) -> Option<NextState> {
        None
    }

    fn lose(&self, _error: Error) -> Option<NextState> {
        None
    }

    fn check_resumable(&self) -> Result<()> {
        Err(wrong_state("the run was dropped; its journal is in the store"))
    }
}

/// Enters the next state. One that has nothing to wait for leads to another one.
pub(super) fn enter(turn: &mut RunData, mut next: NextState, context: &mut RunContext<'_>) -> RunState {
    loop {
        next = match next {
            NextState::CallModel => match turn.request_delivery() {
                RequestDelivery::Answered => begin_call(turn, CallAttempt::FIRST, context),
                RequestDelivery::Unconfirmed => repeat_unconfirmed(turn, context.now),
                RequestDelivery::NotDelivered => repeat_undelivered(turn, context.now),
            },
            NextState::ResumeCall(attempt) => begin_call(turn, attempt, context),
            NextState::Render(plan) => build_body(turn, plan, context),
            NextState::AskReducer(plan, question) => {
                return RunState::AwaitingBody(Box::new(AwaitingBody::ask_reducer(plan, question)));
            }
            NextState::AskBodyFilter(plan) => {
                return RunState::AwaitingBody(Box::new(AwaitingBody::ask_body_filter(plan)));
            }
            NextState::SaveChoice(next) => match turn.save_history_choice() {
                Some(save) => return RunState::AwaitingAnswerSave(AwaitingAnswerSave::of_choice(save, next)),
                None => *next,
            },
            NextState::SendComposed(composed) => send(turn, composed, Vec::new()),
            NextState::Send(request) => match AwaitingModel::enter(turn, request, context) {
                Ok(state) => return RunState::AwaitingModel(Box::new(state)),
                Err(error) => EarlyStop::failed(error).into(),
            },
            NextState::PickUp(answer, not_before) => {
                return RunState::AwaitingModel(Box::new(AwaitingModel::pick_up(turn, *answer, not_before, context)));
            }
            NextState::Pause(pause) => {
                return RunState::AwaitingRetry(Box::new(AwaitingRetry::enter(turn, pause, context.now)));
            }
            NextState::AskReplay(pause, question) => {
                return RunState::AwaitingRetry(Box::new(AwaitingRetry::ask(turn, pause, question)));
            }
            NextState::SaveAnswer(message, invocations) => {
                return RunState::AwaitingAnswerSave(AwaitingAnswerSave::enter(turn, message, invocations));
            }
            NextState::RunTools(resumed) => {
                let tools = AwaitingTools::enter(turn, &resumed, context);
                match tools.after_round(turn) {
                    Some(after) => after,
                    None => return RunState::AwaitingTools(tools),
                }
            }
            NextState::SaveTurn(end) => return RunState::AwaitingEndSave(AwaitingEndSave::finish(turn, end)),
            NextState::StopEarly(stop) => return RunState::AwaitingEndSave(AwaitingEndSave::stop(turn, stop)),
            NextState::Done(end) => return RunState::Done(Box::new(end_run(turn, end, context))),
        };
    }
}

/// Ends the run, and returns its outcome.
fn end_run(turn: &mut RunData, end: FinalResult, context: &RunContext<'_>) -> RunOutcome {
    turn.end();
    let FinalResult { status, error, revision, saved } = end;
    let is_held = turn.setup().owner == StateOwner::Caller && status == RunStatus::Finished;
    let replay = is_held.then(|| replay_body(turn, context.now)).flatten();
    let outcome = RunOutcome {
        error,
        revision,
        branch: context.branch,
        saved,
        replay,
        ..turn.outcome_without_answered_calls(status, context.history)
    };
    turn.emit(RunEvent::Finished(Box::new(outcome.clone())));
    outcome
}
