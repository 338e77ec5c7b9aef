//! The run waits for the results of a round of tool calls, and for the approvals that they need (R29).

use super::call_plan::{CallPlan, parse_arguments};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::{HistoryEntry, ResultEntry, stored_result};
use crate::id::IdMap;
use crate::json::Json;
use crate::message::ResultPlaces;
use crate::run::approval::{ApprovalDecision, ApprovalQuestion, ApprovalReply, ResumedCalls, WaitingCall, rejection};
use crate::run::context::RunContext;
use crate::run::effect::{EffectKind, EffectReply, SaveKind};
use crate::run::event::RunEvent;
use crate::run::handoff::Handoff;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{FinalResult, NextState, TurnEnd, is_permanent, wrong_state};
use crate::run::outcome::RunStatus;
use crate::run::setup::{Persistence, ToolTiming};
use crate::run::state_behavior::{AnsweredEffect, DoneSave, StateBehavior};
use crate::run::turn::RunData;
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult};
use std::collections::{BTreeMap, VecDeque};

/// The run waits for the results of a round of tool calls, and for their saves.
pub struct AwaitingTools {
    tasks: Vec<ToolTask>,
    /// The index in `tasks`, by effect id.
    by_effect: IdMap<usize>,
    /// The number of tasks that have their result.
    answered: usize,
    /// The number of tasks that wait for an approval.
    waiting: usize,
    /// Questions to the application that were not taken yet.
    questions: VecDeque<ApprovalQuestion>,
    /// Saves in progress.
    saves: BTreeMap<u64, ToolSave>,
}

/// A call whose tool runs, or runs if it is approved.
struct ToolTask {
    invocation: String,
    phase: ToolPhase,
    attempt: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolPhase {
    /// The application is asked whether the call needs an approval.
    Undecided,
    /// The call waits for an approval.
    AwaitingApproval,
    /// The call was approved, and the approval is being saved.
    Approved,
    Offered,
    Started,
    Answered,
}

/// What a save of the round records.
#[derive(PartialEq, Eq)]
enum ToolSave {
    /// The start of a tool.
    Start,
    /// That calls wait for an approval.
    ApprovalNeeded,
    /// The approval of the task of this index.
    Approval(usize),
    /// The results of these calls.
    Results(Vec<String>),
    /// A handoff, which takes effect after the round.
    Handoff,
}

impl AwaitingTools {
    /// Offers the open calls of the last answer. `resumed` is what the journal of a resumed run has of them.
    pub fn enter(turn: &mut RunData, resumed: &ResumedCalls, context: &RunContext<'_>) -> Self {
        let now = context.now;
        let mut round = Self {
            tasks: Vec::new(),
            by_effect: IdMap::with_seed(turn.live().seed()),
            answered: 0,
            waiting: 0,
            questions: VecDeque::new(),
            saves: BTreeMap::new(),
        };
        // The result of an answered call may be withheld from the store; then its status is not pending.
        let open = |call: &&ToolInvocation| {
            call.result.is_none() && call.status == InvocationStatus::Pending && !call.is_deferred
        };
        let live = turn.live();
        let calls: Vec<ToolInvocation> =
            live.last_answer().map(|answer| live.calls_of(answer).filter(open).cloned().collect()).unwrap_or_default();
        let (mut known_results, mut waiting) = (Vec::new(), Vec::new());
        for call in calls {
            let attempts = resumed.attempts.get(&call.id).copied().unwrap_or(0);
            let plan = match stored_result(context.history, &call.id) {
                Some(result) => CallPlan::Answered(result),
                None => CallPlan::new(&call, turn, resumed),
            };
            let at = round.tasks.len();
            if !matches!(plan, CallPlan::Close { .. } | CallPlan::Answered(_)) {
                let (invocation, phase) = (call.id.clone(), ToolPhase::Undecided);
                round.tasks.push(ToolTask { invocation, phase, attempt: attempts + 1 });
            }
            match plan {
                CallPlan::Run { arguments } => round.offer(turn, at, arguments, now),
                CallPlan::AwaitApproval { arguments } => waiting.push((at, arguments)),
                CallPlan::AskApplication(question) => round.questions.push_back(question),
                CallPlan::Close { status, text } => known_results.push(closing_result(&call, status, &text, now)),
                CallPlan::Answered(result) => known_results.push(result),
            }
        }
        round.await_approvals(turn, waiting, now);
        round.apply_known_results(turn, known_results);
        round.save_handoff(turn, now);
        round
    }

    /// Saves the pending handoff, if the journal does not have it.
    pub fn save_handoff(&mut self, turn: &mut RunData, now: Ms) {
        if let Some(agent) = turn.handoffs_mut().take_unjournaled() {
            let save = turn.save(SaveKind::Write(vec![JournalEntry::HandedOff { agent, at: now }]));
            self.saves.insert(save, ToolSave::Handoff);
        }
    }

    /// Offers a call, or leaves it open if the application answers it later.
    fn offer(&mut self, turn: &mut RunData, at: usize, arguments: Json, now: Ms) {
        let Some(task) = self.tasks.get_mut(at) else { return };
        let Some(call) = turn.live().invocation(&task.invocation) else { return };
        if timing_of(turn, call) == ToolTiming::Later {
            return self.defer(turn, at, now);
        }
        let kind = EffectKind::RunTool {
            call_id: call.wire_id().to_owned(),
            invocation: call.id.clone(),
            attempt: task.attempt,
            name: call.name.clone(),
            arguments,
            arguments_text: call.arguments.text().into_owned(),
        };
        task.phase = ToolPhase::Offered;
        self.by_effect.insert(turn.offer(kind), at);
    }

    /// Lets calls wait for an approval, and saves of those that did not wait before a resume that they do.
    fn await_approvals(&mut self, turn: &mut RunData, waiting: Vec<(usize, Json)>, now: Ms) {
        let mut journal = Vec::new();
        for (at, arguments) in waiting {
            let Some(task) = self.tasks.get_mut(at) else { continue };
            task.phase = ToolPhase::AwaitingApproval;
            self.waiting += 1;
            let invocation = task.invocation.clone();
            if !turn.live().awaits_approval(&invocation) {
                turn.set_awaits_approval(&invocation, true);
                journal.push(JournalEntry::ApprovalNeeded { invocation: invocation.clone(), at: now });
            }
            if let Some(call) = turn.live().invocation(&invocation) {
                let (call_id, name) = (call.wire_id().to_owned(), call.name.clone());
                turn.emit(RunEvent::ApprovalNeeded { call_id, invocation, name, arguments });
            }
        }
        if !journal.is_empty() {
            let save = turn.save(SaveKind::Write(journal));
            self.saves.insert(save, ToolSave::ApprovalNeeded);
        }
    }

    /// Adds results that are known without running a tool to the turn, and saves them.
    fn apply_known_results(&mut self, turn: &mut RunData, results: Vec<ResultEntry>) {
        if results.is_empty() {
            return;
        }
        let mut journal = Vec::new();
        let calls = results.iter().map(|entry| entry.invocation.clone()).collect();
        for entry in &results {
            let call_id = turn.live().invocation(&entry.invocation).map(|call| call.wire_id().to_owned());
            let result = entry.result.as_ref().map_or_else(Json::null, |result| result.content.clone());
            let is_error = entry.result.as_ref().is_none_or(|result| result.is_error);
            turn.apply(HistoryEntry::Result(entry.clone()));
            let call_id = call_id.unwrap_or_default();
            turn.emit(RunEvent::ToolFinished { call_id, is_error, result, duration_ms: 0 });
            journal.push(JournalEntry::Finished(entry.clone()));
        }
        let save = turn.save_results(journal, results);
        self.saves.insert(save, ToolSave::Results(calls));
    }

    /// Returns the next state if every call is answered and every answer is saved.
    pub fn after_round(&self, turn: &RunData) -> Option<NextState> {
        if !self.saves.is_empty() || self.answered < self.tasks.len() {
            return None;
        }
        let is_over = ends_run(turn) || has_nothing_new(turn);
        Some(if is_over { NextState::SaveTurn(TurnEnd::Results) } else { NextState::CallModel })
    }

    /// Returns true if a tool runs, or a result waits to be stored by another save than `except`.
    pub fn has_open_results(&self, except: Option<u64>) -> bool {
        let is_result = |(id, save): (&u64, &ToolSave)| Some(*id) != except && matches!(save, ToolSave::Results(_));
        self.tasks.iter().any(|task| task.phase == ToolPhase::Started) || self.saves.iter().any(is_result)
    }

    /// Returns true for a save of this round that starts no tool.
    pub fn is_record(&self, save: u64) -> bool {
        self.saves.get(&save).is_some_and(|save| *save != ToolSave::Start)
    }

    /// Marks a call as started.
    fn start(&mut self, turn: &mut RunData, at: usize, now: Ms) {
        let Some(task) = self.tasks.get_mut(at) else { return };
        let Some(call) = turn.call_mut(&task.invocation) else { return };
        call.started_at = Some(now);
        let event = RunEvent::ToolStarted { call_id: call.wire_id().to_owned(), name: call.name.clone() };
        task.phase = ToolPhase::Started;
        let entry = task.started(now);
        turn.emit(event);
        let save = turn.save(SaveKind::Write(vec![entry]));
        self.saves.insert(save, ToolSave::Start);
    }

    /// Adds the result of a call to the turn, and saves it.
    fn finish(&mut self, turn: &mut RunData, at: usize, result: ToolResult, now: Ms) {
        let Some(task) = self.tasks.get_mut(at) else { return };
        let Some(call) = turn.live().invocation(&task.invocation) else { return };
        let began = call.started_at.unwrap_or(now);
        let event = RunEvent::ToolFinished {
            call_id: call.wire_id().to_owned(),
            is_error: result.is_error,
            result: result.content.clone(),
            duration_ms: now.saturating_sub(began),
        };
        let entry = ResultEntry {
            invocation: task.invocation.clone(),
            status: if result.is_error { InvocationStatus::Error } else { InvocationStatus::Ok },
            started_at: Some(began),
            finished_at: Some(now),
            result: Some(result),
            ..ResultEntry::default()
        };
        let calls = vec![entry.invocation.clone()];
        let save = task.end(turn, entry, event, now);
        self.answered += 1;
        self.saves.insert(save, ToolSave::Results(calls));
    }

    /// Handles the host's reply that a tool answers later.
    ///
    /// # Errors
    /// `wrong_state` for a tool that is not asynchronous; nothing has changed then.
    fn leave_open(&mut self, turn: &mut RunData, at: usize, now: Ms) -> Result<()> {
        let Some(task) = self.tasks.get(at).filter(|task| task.phase != ToolPhase::Answered) else { return Ok(()) };
        let call = turn.live().invocation(&task.invocation);
        if call.is_some_and(|call| timing_of(turn, call) == ToolTiming::InRun) {
            return Err(wrong_state("only a tool with `async: true` may answer later; answer with its result"));
        }
        self.defer(turn, at, now);
        Ok(())
    }

    /// Lets the run go on without the result of a call (R75), and saves that.
    fn defer(&mut self, turn: &mut RunData, at: usize, now: Ms) {
        let Some(task) = self.tasks.get_mut(at) else { return };
        let Some(call) = turn.live().invocation(&task.invocation) else { return };
        let (call_id, name) = (call.wire_id().to_owned(), call.name.clone());
        // A host that was offered the call has begun it.
        let was_offered = matches!(task.phase, ToolPhase::Offered | ToolPhase::Started);
        let entry = ResultEntry {
            invocation: task.invocation.clone(),
            status: InvocationStatus::Pending,
            started_at: call.started_at.or(was_offered.then_some(now)),
            is_deferral: true,
            ..ResultEntry::default()
        };
        let event = RunEvent::ToolPending { call_id, invocation: entry.invocation.clone(), name };
        let save = task.end(turn, entry, event, now);
        self.answered += 1;
        self.saves.insert(save, ToolSave::Results(Vec::new()));
    }

    /// Returns true if the run can only continue when a person has decided about a call: every other one is answered
    /// and saved.
    pub fn waits_for_approval(&self) -> bool {
        self.waiting > 0 && self.saves.is_empty() && self.waiting + self.answered == self.tasks.len()
    }

    /// Returns the calls that wait for an approval, in their order.
    pub fn waiting_calls(&self, turn: &RunData) -> Vec<WaitingCall> {
        let is_waiting = |task: &&ToolTask| task.phase == ToolPhase::AwaitingApproval;
        let calls = self.tasks.iter().filter(is_waiting).filter_map(|task| turn.live().invocation(&task.invocation));
        let waiting_call = |call: &ToolInvocation| WaitingCall {
            invocation: call.id.clone(),
            call_id: call.wire_id().to_owned(),
            name: call.name.clone(),
            arguments: parse_arguments(call).unwrap_or_else(|_| Json::null()),
        };
        calls.map(waiting_call).collect()
    }

    /// Returns the index of the task of a call that waits for an approval. `id`: its invocation id or its call id.
    ///
    /// # Errors `wrong_state` for another call of the turn, `invalid_input` for a call id of several calls, `not_found`
    /// for any other id.
    pub fn find_waiting(&self, turn: &RunData, id: &str) -> Result<usize> {
        let waits = |call: &ToolInvocation| {
            let is_task = |task: &ToolTask| task.phase == ToolPhase::AwaitingApproval && task.invocation == call.id;
            self.tasks.iter().position(is_task)
        };
        if let Some(call) = turn.live().invocation(id) {
            return waits(call).ok_or_else(|| no_waiting_call(turn, id));
        }
        let has_id = |call: &&ToolInvocation| has_call_id(call, id);
        let found = turn.live().invocations().iter().find_map(|call| has_call_id(call, id).then(|| waits(call))?);
        let found = found.ok_or_else(|| no_waiting_call(turn, id))?;
        // One of them may be decided already: a repeated decision must not reach another call.
        if turn.live().invocations().iter().filter(has_id).nth(1).is_some() {
            let message = format!("several calls of this run have the id \"{id}\"; pass the `invocationId` of one");
            return Err(Error::new(ErrorCode::InvalidInput, message));
        }
        Ok(found)
    }

    /// Takes the next question to the application. Each is returned once.
    pub fn take_question(&mut self) -> Option<ApprovalQuestion> {
        self.questions.pop_front()
    }

    /// Handles the application's reply to a question. A reply that comes late or again changes nothing.
    pub fn take_approval_reply(&mut self, turn: &mut RunData, invocation: &str, reply: ApprovalReply, now: Ms) {
        let is_asked = |task: &ToolTask| task.phase == ToolPhase::Undecided && task.invocation == invocation;
        let Some(at) = self.tasks.iter().position(is_asked) else { return };
        let Some(call) = turn.live().invocation(invocation) else { return };
        let Ok(arguments) = parse_arguments(call) else { return };
        match reply {
            ApprovalReply::NotNeeded => return self.offer(turn, at, arguments, now),
            ApprovalReply::Needed => {}
            ApprovalReply::Failed(reason) => {
                let name = &call.name;
                let text = format!(
                    "`needsApproval` of the tool \"{name}\" failed, so the call waits for an approval: {reason}"
                );
                turn.warn(Finding::warning(FindingCode::CallbackFailed, text));
            }
        }
        self.await_approvals(turn, vec![(at, arguments)], now);
    }

    /// Handles a person's decision about a call. The tool of an approved call is offered when the approval is saved.
    ///
    /// # Errors
    /// Those of [`find_waiting`](Self::find_waiting); nothing has changed then.
    pub fn decide(&mut self, turn: &mut RunData, id: &str, decision: &ApprovalDecision, now: Ms) -> Result<()> {
        let at = self.find_waiting(turn, id)?;
        let Some(task) = self.tasks.get_mut(at) else { return Ok(()) };
        let invocation = task.invocation.clone();
        self.waiting -= 1;
        match decision {
            ApprovalDecision::Approve => {
                task.phase = ToolPhase::Approved;
                turn.set_awaits_approval(&invocation, false);
                let save = turn.save(SaveKind::Write(vec![JournalEntry::Approved { invocation, at: now }]));
                self.saves.insert(save, ToolSave::Approval(at));
            }
            ApprovalDecision::Reject(reason) => {
                task.phase = ToolPhase::Answered;
                self.answered += 1;
                if let Some(call) = turn.live().invocation(&invocation) {
                    let (status, text) = rejection(reason.as_deref(), task.attempt > 1);
                    let result = closing_result(call, status, &text, now);
                    self.apply_known_results(turn, vec![result]);
                }
            }
        }
        Ok(())
    }

    fn offer_approved(&mut self, turn: &mut RunData, at: usize, now: Ms) {
        let call = self.tasks.get(at).and_then(|task| turn.live().invocation(&task.invocation));
        if let Some(Ok(arguments)) = call.map(parse_arguments) {
            self.offer(turn, at, arguments, now);
        }
    }
}

impl StateBehavior for AwaitingTools {
    fn status(&self) -> RunStatus {
        if self.waits_for_approval() { RunStatus::WaitingApproval } else { RunStatus::Running }
    }

    fn reply(
        &mut self,
        turn: &mut RunData,
        answered: AnsweredEffect<'_>,
        context: &RunContext<'_>,
    ) -> Result<Option<NextState>> {
        let now = context.now;
        let Some(at) = self.by_effect.get(answered.effect).copied() else { return Ok(None) };
        let phase = self.tasks.get(at).map(|task| task.phase);
        let (content, is_error) = match answered.reply {
            EffectReply::Started if phase == Some(ToolPhase::Offered) => {
                self.start(turn, at, now);
                return Ok(None);
            }
            EffectReply::Started => {
                return Err(wrong_state("the tool was started already; answer with its result"));
            }
            EffectReply::Pending => {
                self.leave_open(turn, at, now)?;
                turn.close_effect(answered.effect);
                return Ok(None);
            }
            EffectReply::ToolResult { content, is_error } => (content, is_error),
            EffectReply::Failed { message, .. } => (ToolResult::failure(&format!("Error: {message}")).content, true),
            EffectReply::ResponseStarted { .. }
            | EffectReply::ResponseEnd
            | EffectReply::Response { .. }
            | EffectReply::Waited => {
                return Err(wrong_state(
                    "a `run_tool` must be answered by `started`, `tool_result`, `pending` or `failed`",
                ));
            }
        };
        if phase != Some(ToolPhase::Answered) {
            self.finish(turn, at, ToolResult { content, is_error, dialect: None, template: None }, now);
            turn.close_effect(answered.effect);
        }
        Ok(None)
    }

    fn hand_off(&mut self, turn: &mut RunData, handoff: Handoff, now: Ms) -> Result<()> {
        if self.waits_for_approval() {
            return Err(wrong_state("the run waits for an approval; hand it off while its tools run"));
        }
        turn.accept_handoff(handoff)?;
        self.save_handoff(turn, now);
        Ok(())
    }

    fn awaits(&self, save: u64) -> bool {
        self.saves.contains_key(&save)
    }

    fn saved(&mut self, done: DoneSave, turn: &mut RunData, context: &RunContext<'_>) -> Option<NextState> {
        match self.saves.remove(&done.id) {
            Some(ToolSave::Results(calls)) => {
                if turn.setup().persistence == Persistence::Result {
                    turn.emit(RunEvent::Saved { revision: done.revision });
                }
                // The store has them now, after what other writers stored before.
                calls.iter().for_each(|call| turn.prefer_first_result(call, context.history));
            }
            Some(ToolSave::Approval(at)) => self.offer_approved(turn, at, context.now),
            Some(ToolSave::Start | ToolSave::ApprovalNeeded | ToolSave::Handoff) | None => {}
        }
        self.after_round(turn)
    }

    fn save_failed(&self, save: u64, turn: &mut RunData, failure: Error) -> Option<NextState> {
        // A tool must not run unless its start is saved.
        let was_start = self.saves.get(&save) == Some(&ToolSave::Start);
        if was_start || is_permanent(&failure) {
            return Some(NextState::Done(FinalResult::failed(failure)));
        }
        turn.emit(RunEvent::SaveFailed { error: failure });
        None
    }
}

impl ToolTask {
    fn started(&self, at: Ms) -> JournalEntry {
        JournalEntry::Started { invocation: self.invocation.clone(), at, attempt: self.attempt }
    }

    /// Marks the call as answered by an entry, adds that to the turn, and saves it. Returns the number of the save.
    fn end(&mut self, turn: &mut RunData, entry: ResultEntry, event: RunEvent, now: Ms) -> u64 {
        let mut journal = Vec::new();
        if self.phase == ToolPhase::Offered {
            journal.push(self.started(now));
        }
        self.phase = ToolPhase::Answered;
        turn.apply(HistoryEntry::Result(entry.clone()));
        turn.emit(event);
        journal.push(JournalEntry::Finished(entry.clone()));
        turn.save_results(journal, vec![entry])
    }
}

/// Creates the error of a decision about a call that does not wait for an approval.
pub fn no_waiting_call(turn: &RunData, id: &str) -> Error {
    if turn.live().invocations().iter().any(|call| call.id == id || has_call_id(call, id)) {
        return wrong_state("this call does not wait for an approval: it was decided already, or needs none");
    }
    let message = format!("this run has no call \"{id}\"; `approvals()` lists those that wait");
    Error::new(ErrorCode::NotFound, message)
}

/// Returns true if the model gave the call this id, or it is sent by this id.
fn has_call_id(call: &ToolInvocation, id: &str) -> bool {
    call.wire_id() == id || call.call_id == id
}

/// Returns the result of a call whose tool does not run.
fn closing_result(call: &ToolInvocation, status: InvocationStatus, text: &str, now: Ms) -> ResultEntry {
    ResultEntry {
        invocation: call.id.clone(),
        status,
        started_at: call.started_at,
        finished_at: Some(now),
        result: Some(ToolResult::failure(text)),
        ..ResultEntry::default()
    }
}

/// Returns when the result of a call may come.
fn timing_of(turn: &RunData, call: &ToolInvocation) -> ToolTiming {
    turn.setup().tool_settings.get(&call.name).map_or_else(ToolTiming::default, |settings| settings.timing)
}

/// Returns true if the next request would say nothing new: all calls of the last round stay open, in a dialect that
/// needs no result for them.
fn has_nothing_new(turn: &RunData) -> bool {
    let live = turn.live();
    let stays_open = turn.setup().provider.dialect.result_places() == ResultPlaces::Later;
    stays_open && live.last_answer().is_some_and(|answer| live.calls_of(answer).all(ToolInvocation::awaits_result))
}

/// Returns true if a tool of the last round ends the run. It may have been answered before an interruption.
fn ends_run(turn: &RunData) -> bool {
    let live = turn.live();
    let Some(answer) = live.last_answer() else { return false };
    live.calls_of(answer).any(|call| {
        call.status == InvocationStatus::Ok
            && turn.setup().tool_settings.get(&call.name).is_some_and(|tool_settings| tool_settings.ends_run)
    })
}
