//! The run waits for the results of a round of tool calls.

use crate::clock::Ms;
use crate::error::{Error, Result};
use crate::history::{HistoryEntry, ResultEntry};
use crate::id::IdMap;
use crate::json::{Json, JsonKind, JsonRef};
use crate::replay::INTERRUPTED;
use crate::run::effect::{EffectKind, EffectReply, SaveKind};
use crate::run::event::RunEvent;
use crate::run::journal::JournalEntry;
use crate::run::next_state::{FinalResult, NextState, TurnEnd, is_permanent, wrong_state};
use crate::run::setup::{OnInterrupted, Persistence, RunSetup};
use crate::run::turn::RunData;
use crate::tool::{Arguments, InvocationStatus, ToolInvocation, ToolResult};
use std::collections::BTreeMap;

/// The run waits for the results of a round of tool calls, and for their saves.
pub struct AwaitingTools {
    tasks: Vec<ToolTask>,
    /// The index in `tasks`, by effect id.
    by_effect: IdMap<usize>,
    /// The number of tasks that have their result.
    answered: usize,
    /// Saves in progress; true if the save records the start of a tool.
    saves: BTreeMap<u64, bool>,
}

/// A call whose tool runs.
struct ToolTask {
    invocation: String,
    phase: ToolPhase,
    attempt: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolPhase {
    Offered,
    Started,
    Answered,
}

/// What happens to an open call.
enum CallPlan {
    /// Its tool runs, with these arguments.
    Run { arguments: Json },
    /// Its result is known without running a tool.
    Close { status: InvocationStatus, text: String },
}

impl AwaitingTools {
    /// Offers the open calls of the last answer. `attempts` are the started calls of a resumed run, with the number of attempts.
    pub fn enter(turn: &mut RunData, attempts: &BTreeMap<String, u32>, now: Ms) -> Self {
        let seed = turn.live().seed();
        let mut round =
            Self { tasks: Vec::new(), by_effect: IdMap::with_seed(seed), answered: 0, saves: BTreeMap::new() };
        // The result of an answered call may be withheld from the store; then its status is not pending.
        let open = |call: &&ToolInvocation| call.result.is_none() && call.status == InvocationStatus::Pending;
        let live = turn.live();
        let calls: Vec<ToolInvocation> =
            live.last_answer().map(|answer| live.calls_of(answer).filter(open).cloned().collect()).unwrap_or_default();
        let mut known_results = Vec::new();
        for call in calls {
            let attempts = attempts.get(&call.id).copied().unwrap_or(0);
            match plan(&call, turn.setup(), attempts) {
                CallPlan::Run { arguments } => round.offer(turn, call, arguments, attempts + 1),
                CallPlan::Close { status, text } => known_results.push(closing_result(&call, status, &text, now)),
            }
        }
        round.apply_known_results(turn, known_results);
        round
    }

    /// Offers a call.
    fn offer(&mut self, turn: &mut RunData, call: ToolInvocation, arguments: Json, attempt: u32) {
        let effect = turn.offer(EffectKind::RunTool {
            call_id: call.wire_id().to_owned(),
            invocation: call.id.clone(),
            attempt,
            name: call.name.clone(),
            arguments,
            arguments_text: call.arguments.text().into_owned(),
        });
        self.by_effect.insert(effect, self.tasks.len());
        self.tasks.push(ToolTask { invocation: call.id, phase: ToolPhase::Offered, attempt });
    }

    /// Adds results that are known without running a tool to the turn, and saves them.
    fn apply_known_results(&mut self, turn: &mut RunData, results: Vec<ResultEntry>) {
        if results.is_empty() {
            return;
        }
        let mut journal = Vec::new();
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
        self.saves.insert(save, false);
    }

    /// Returns the next state if every call is answered and every answer is saved.
    pub fn after_round(&self, turn: &RunData) -> Option<NextState> {
        if !self.saves.is_empty() || self.answered < self.tasks.len() {
            return None;
        }
        Some(if ends_run(turn) { NextState::SaveTurn(TurnEnd::Results) } else { NextState::CallModel })
    }

    /// Handles the reply to a `run_tool`.
    ///
    /// # Errors
    /// `wrong_state` for a reply that does not fit; nothing has changed then.
    pub fn reply(&mut self, turn: &mut RunData, effect: &str, reply: EffectReply, now: Ms) -> Result<()> {
        let Some(at) = self.by_effect.get(effect).copied() else { return Ok(()) };
        let phase = self.tasks.get(at).map(|task| task.phase);
        let (content, is_error) = match reply {
            EffectReply::Started if phase == Some(ToolPhase::Offered) => {
                self.start(turn, at, now);
                return Ok(());
            }
            EffectReply::Started => {
                return Err(wrong_state("the tool was started already; answer with its result"));
            }
            EffectReply::ToolResult { content, is_error } => (content, is_error),
            EffectReply::Failed { message, .. } => (ToolResult::failure(&format!("Error: {message}")).content, true),
            EffectReply::ResponseStarted { .. }
            | EffectReply::ResponseEnd
            | EffectReply::Response { .. }
            | EffectReply::Waited => {
                return Err(wrong_state("a `run_tool` must be answered by `started`, `tool_result` or `failed`"));
            }
        };
        if phase != Some(ToolPhase::Answered) {
            self.finish(turn, at, ToolResult { content, is_error, dialect: None, template: None }, now);
            turn.close_effect(effect);
        }
        Ok(())
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
        self.saves.insert(save, true);
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
            freshness: None,
            result: Some(result),
        };
        let mut journal = Vec::new();
        if task.phase == ToolPhase::Offered {
            journal.push(task.started(now));
        }
        task.phase = ToolPhase::Answered;
        self.answered += 1;
        turn.apply(HistoryEntry::Result(entry.clone()));
        turn.emit(event);
        journal.push(JournalEntry::Finished(entry.clone()));
        let save = turn.save_results(journal, vec![entry]);
        self.saves.insert(save, false);
    }

    /// Returns true if the state waits for the save.
    pub fn awaits(&self, save: u64) -> bool {
        self.saves.contains_key(&save)
    }

    /// Handles the success of a save.
    pub fn saved(&mut self, save: u64, turn: &mut RunData, revision: u64) -> Option<NextState> {
        let was_start = self.saves.remove(&save) == Some(true);
        if !was_start && turn.setup().persistence == Persistence::Result {
            turn.emit(RunEvent::Saved { revision });
        }
        self.after_round(turn)
    }

    /// Handles the failure of a save.
    pub fn save_failed(&self, save: u64, turn: &mut RunData, failure: Error) -> Option<NextState> {
        // A tool must not run unless its start is saved.
        let was_start = self.saves.get(&save) == Some(&true);
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
}

/// Decides what happens to an open call that was started `attempts` times.
fn plan(call: &ToolInvocation, setup: &RunSetup, attempts: u32) -> CallPlan {
    let tool_settings = setup.tool_settings.get(&call.name).copied();
    let interrupted = || CallPlan::Close { status: InvocationStatus::Interrupted, text: INTERRUPTED.to_owned() };
    let error = |text: String| CallPlan::Close { status: InvocationStatus::Error, text };
    // The stored arguments are not those of the model (R12).
    if call.redacted {
        return interrupted();
    }
    if attempts > 0 && tool_settings.unwrap_or_default().on_interrupted == OnInterrupted::Report {
        return interrupted();
    }
    if tool_settings.is_none() {
        let names: Vec<&str> = setup.tool_settings.keys().map(String::as_str).collect();
        let names = if names.is_empty() { "none".into() } else { names.join(", ") };
        return error(format!("Error: there is no tool \"{}\". The tools are: {names}.", call.name));
    }
    let text = call.arguments.text();
    match JsonRef::parse(if text.trim().is_empty() { "{}" } else { &text }) {
        Ok(value) if value.is_object() || value.is_null() => CallPlan::Run { arguments: value.to_owned() },
        // The input of a custom tool is a string.
        Ok(value) if value.kind() == JsonKind::String && matches!(call.arguments, Arguments::Value(_)) => {
            CallPlan::Run { arguments: value.to_owned() }
        }
        Ok(_) => error("Error: the arguments are not a JSON object. Call the tool again with a JSON object.".into()),
        Err(invalid) => error(format!(
            "Error: the arguments are not valid JSON (at byte {}). Call again with a JSON object.",
            invalid.at
        )),
    }
}

/// Returns the result of a call whose tool does not run.
fn closing_result(call: &ToolInvocation, status: InvocationStatus, text: &str, now: Ms) -> ResultEntry {
    ResultEntry {
        invocation: call.id.clone(),
        status,
        started_at: call.started_at,
        finished_at: Some(now),
        freshness: None,
        result: Some(ToolResult::failure(text)),
    }
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
