//! The tool calls of one round: offered, started, answered. Each step is saved before the run relies on it.

use super::effect::{EffectKind, EffectReply};
use super::event::RunEvent;
use super::journal::JournalEntry;
use super::setup::{OnInterrupted, RunSetup};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{History, HistoryEntry, ResultEntry};
use crate::id::IdMap;
use crate::json::{Json, JsonKind, JsonRef};
use crate::replay::INTERRUPTED;
use crate::tool::{Arguments, InvocationStatus, ToolInvocation, ToolResult};
use std::collections::BTreeMap;

/// The calls of one round.
pub(super) struct ToolRound {
    tasks: Vec<ToolTask>,
    /// The index in `tasks`, by effect id.
    by_effect: IdMap<usize>,
    /// Results that are known without running a tool: for an unknown tool, invalid arguments, an interrupted call.
    known_results: Vec<ResultEntry>,
    /// The number of tasks whose effect was offered.
    offered_count: usize,
    /// The number of tasks that have their result.
    answered: usize,
    /// Saves in progress; true if the save records the start of a tool.
    saves: BTreeMap<u64, bool>,
    /// True if the next save records the start of a tool.
    next_is_start: bool,
}

struct ToolTask {
    invocation: String,
    phase: ToolPhase,
    attempt: u32,
    kind: Option<EffectKind>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolPhase {
    Offered,
    Started,
    Answered,
}

/// What a reply to an effect leads to.
pub(super) struct ToolTransition {
    pub event: RunEvent,
    pub journal: Vec<JournalEntry>,
    /// True if the effect is closed.
    pub is_answered: bool,
}

impl ToolRound {
    /// Creates the round of the last answer's open calls. `attempts` are the started calls of a resumed run, with the number of
    /// attempts.
    pub fn new(live: &History, setup: &RunSetup, attempts: Option<&BTreeMap<String, u32>>, now: Ms) -> Self {
        let mut round = Self {
            tasks: Vec::new(),
            by_effect: IdMap::with_seed(live.seed()),
            known_results: Vec::new(),
            offered_count: 0,
            answered: 0,
            saves: BTreeMap::new(),
            next_is_start: false,
        };
        let Some(answer) = live.last_answer() else {
            return round;
        };
        // The result of an answered call may be withheld from the store; then its status is not pending.
        let open = |call: &&ToolInvocation| call.result.is_none() && call.status == InvocationStatus::Pending;
        for call in live.calls_of(answer).filter(open) {
            let attempt = attempts.and_then(|attempts| attempts.get(&call.id)).copied().unwrap_or(0);
            round.add(call, setup, attempt, now);
        }
        round
    }

    /// Adds a task for a call that was started `attempts` times, or its result if that is known without running the tool.
    fn add(&mut self, call: &ToolInvocation, setup: &RunSetup, attempts: u32, now: Ms) {
        let tool_settings = setup.tool_settings.get(&call.name).copied();
        // The stored arguments are not those of the model (R12).
        if call.redacted {
            self.close(call, InvocationStatus::Interrupted, INTERRUPTED, now);
            return;
        }
        if attempts > 0 && tool_settings.unwrap_or_default().on_interrupted == OnInterrupted::Report {
            self.close(call, InvocationStatus::Interrupted, INTERRUPTED, now);
            return;
        }
        if tool_settings.is_none() {
            let names: Vec<&str> = setup.tool_settings.keys().map(String::as_str).collect();
            let text = format!(
                "Error: there is no tool \"{}\". The tools are: {}.",
                call.name,
                if names.is_empty() { "none".into() } else { names.join(", ") }
            );
            self.close(call, InvocationStatus::Error, &text, now);
            return;
        }
        let text = call.arguments.text();
        let arguments = match JsonRef::parse(if text.trim().is_empty() { "{}" } else { &text }) {
            Ok(value) if value.is_object() || value.is_null() => value.to_owned(),
            // The input of a custom tool is a string.
            Ok(value) if value.kind() == JsonKind::String && matches!(call.arguments, Arguments::Value(_)) => {
                value.to_owned()
            }
            Ok(_) => {
                let text = "Error: the arguments are no JSON object. Call again with one.";
                self.close(call, InvocationStatus::Error, text, now);
                return;
            }
            Err(error) => {
                let text = format!(
                    "Error: the arguments are not valid JSON (at byte {}). Call again with a JSON object.",
                    error.at
                );
                self.close(call, InvocationStatus::Error, &text, now);
                return;
            }
        };
        let attempt = attempts + 1;
        self.tasks.push(ToolTask {
            invocation: call.id.clone(),
            phase: ToolPhase::Offered,
            attempt,
            kind: Some(EffectKind::RunTool {
                call_id: call.wire_id().to_owned(),
                invocation: call.id.clone(),
                attempt,
                name: call.name.clone(),
                arguments,
                arguments_text: text.into_owned(),
            }),
        });
    }

    fn close(&mut self, call: &ToolInvocation, status: InvocationStatus, text: &str, now: Ms) {
        self.known_results.push(ResultEntry {
            invocation: call.id.clone(),
            status,
            started_at: call.started_at,
            finished_at: Some(now),
            freshness: None,
            result: Some(ToolResult::failure(text)),
        });
    }

    /// Returns the next effect to offer. [`set_effect_id`](Self::set_effect_id) must follow with its id.
    pub fn next_effect(&mut self) -> Option<EffectKind> {
        self.tasks.get_mut(self.offered_count)?.kind.take()
    }

    /// Sets the id of the effect that [`next_effect`](Self::next_effect) returned.
    pub fn set_effect_id(&mut self, effect: String) {
        self.by_effect.insert(effect, self.offered_count);
        self.offered_count += 1;
    }

    /// Takes the results that are known without running a tool.
    pub fn take_known_results(&mut self) -> Vec<ResultEntry> {
        std::mem::take(&mut self.known_results)
    }

    /// Returns the event of a result that was known without running a tool.
    pub fn finished_event(&self, entry: &ResultEntry, live: &History) -> RunEvent {
        let call_id = live.invocation(&entry.invocation).map_or_else(String::new, |call| call.wire_id().to_owned());
        let (is_error, result) =
            entry.result.as_ref().map_or((true, Json::null()), |result| (result.is_error, result.content.clone()));
        RunEvent::ToolFinished { call_id, is_error, result, duration_ms: 0 }
    }

    /// Handles the reply to an effect.
    ///
    /// # Errors
    /// `wrong_state` for a reply that does not fit.
    pub fn reply(
        &mut self,
        effect: &str,
        reply: EffectReply,
        live: &mut History,
        now: Ms,
    ) -> Result<Option<ToolTransition>> {
        let Some(task) = self.by_effect.get(effect).and_then(|at| self.tasks.get_mut(*at)) else { return Ok(None) };
        let Some(call) = live.invocation_mut(&task.invocation) else { return Ok(None) };
        let started = |at| JournalEntry::Started { invocation: task.invocation.clone(), at, attempt: task.attempt };
        let (content, is_error) = match reply {
            EffectReply::Started if task.phase == ToolPhase::Offered => {
                call.started_at = Some(now);
                let event = RunEvent::ToolStarted { call_id: call.wire_id().to_owned(), name: call.name.clone() };
                let transition = ToolTransition { event, journal: vec![started(now)], is_answered: false };
                task.phase = ToolPhase::Started;
                self.next_is_start = true;
                return Ok(Some(transition));
            }
            EffectReply::Started => return Err(wrong_reply("the tool was started already; answer with its result")),
            EffectReply::ToolResult { content, is_error } => (content, is_error),
            EffectReply::Failed { message, .. } => (ToolResult::failure(&format!("Error: {message}")).content, true),
            EffectReply::ResponseStarted { .. }
            | EffectReply::ResponseEnd
            | EffectReply::Response { .. }
            | EffectReply::Waited => {
                return Err(wrong_reply("a `run_tool` must be answered by `started`, `tool_result` or `failed`"));
            }
        };
        if task.phase == ToolPhase::Answered {
            return Ok(None);
        }
        let mut journal = Vec::new();
        if task.phase == ToolPhase::Offered {
            journal.push(started(now));
        }
        let began = call.started_at.unwrap_or(now);
        let event = RunEvent::ToolFinished {
            call_id: call.wire_id().to_owned(),
            is_error,
            result: content.clone(),
            duration_ms: now.saturating_sub(began),
        };
        let entry = ResultEntry {
            invocation: task.invocation.clone(),
            status: if is_error { InvocationStatus::Error } else { InvocationStatus::Ok },
            started_at: Some(began),
            finished_at: Some(now),
            freshness: None,
            result: Some(ToolResult { content, is_error, dialect: None, template: None }),
        };
        live.apply(HistoryEntry::Result(entry.clone()));
        task.phase = ToolPhase::Answered;
        self.answered += 1;
        journal.push(JournalEntry::Finished(entry));
        Ok(Some(ToolTransition { event, journal, is_answered: true }))
    }

    /// Makes the round wait for a save.
    pub fn add_save(&mut self, save: u64) {
        self.saves.insert(save, std::mem::take(&mut self.next_is_start));
    }

    /// Handles a successful save.
    pub fn complete_save(&mut self, save: u64) {
        self.saves.remove(&save);
    }

    /// Returns true if the save records the start of a tool.
    pub fn was_start(&self, save: u64) -> bool {
        self.saves.get(&save) == Some(&true)
    }

    /// Returns true if the round waits for the save.
    pub fn awaits(&self, save: u64) -> bool {
        self.saves.contains_key(&save)
    }

    /// Returns true if every call is answered and every answer is saved.
    pub fn all_done(&self) -> bool {
        self.saves.is_empty() && self.answered == self.tasks.len()
    }
}

/// Returns true if a tool of the last round ends the run. It may have been answered before an interruption.
pub(super) fn ends_run(live: &History, setup: &RunSetup) -> bool {
    let Some(answer) = live.last_answer() else { return false };
    live.calls_of(answer).any(|call| {
        call.status == InvocationStatus::Ok
            && setup.tool_settings.get(&call.name).is_some_and(|tool_settings| tool_settings.ends_run)
    })
}

fn wrong_reply(message: &str) -> Error {
    Error::new(ErrorCode::WrongState, message)
}
