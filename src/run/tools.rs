//! The tool calls of one round: offered, started, answered; each step written before the next one counts.

use super::effect::{EffectKind, EffectReply};
use super::event::RunEvent;
use super::journal::JournalEntry;
use super::{OnInterrupted, Run, RunSetup};
use crate::clock::Ms;
use crate::error::{Code, Error, Result};
use crate::history::{History, HistoryEntry, ResultEntry};
use crate::id::IdMap;
use crate::json::{Json, JsonRef, Kind};
use crate::replay::INTERRUPTED;
use crate::sorted::Sorted;
use crate::text::joined;
use crate::tool::{Arguments, InvocationStatus, ToolInvocation, ToolResult};
use std::collections::BTreeMap;

/// The calls of one round.
pub struct ToolRound {
    tasks: Vec<ToolTask>,
    /// Where the task of an effect is.
    by_effect: IdMap<usize>,
    /// Results that need no tool: an unknown one, arguments that are no JSON, a call that was cut off.
    closing: Vec<ResultEntry>,
    /// How many tasks were offered.
    offered: usize,
    /// How many tasks have their result.
    answered: usize,
    /// Writes in progress, and whether each records the start of a tool.
    saves: BTreeMap<u64, bool>,
    start_next: bool,
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

/// What an answer leads to.
pub struct ToolTransition {
    pub event: RunEvent,
    pub journal: Vec<JournalEntry>,
    /// The effect is answered for good.
    pub over: bool,
}

impl ToolRound {
    /// The open calls of the last answer. `attempts` tells of calls that were started before a kill.
    pub fn new(run: &Run, attempts: &Sorted<String, u32>, resumed: bool, now: Ms) -> Self {
        let mut tasks = Self {
            tasks: Vec::new(),
            by_effect: IdMap::with_seed(run.live.seed()),
            closing: Vec::new(),
            offered: 0,
            answered: 0,
            saves: BTreeMap::new(),
            start_next: false,
        };
        let Some(answer) = run.live.last_answer() else {
            return tasks;
        };
        // Of an answered call the result may be withheld; its status tells.
        let open = |call: &&ToolInvocation| call.result.is_none() && call.status == InvocationStatus::Pending;
        for call in run.live.calls_of(answer).filter(open) {
            tasks.add(call, &run.setup, attempts.get(&call.id).copied().unwrap_or(0), resumed, now);
        }
        tasks
    }

    fn add(&mut self, call: &ToolInvocation, setup: &RunSetup, tried: u32, resumed: bool, now: Ms) {
        let tool_settings = setup.tool_settings.get(&call.name).copied();
        // What was stored of it is not what the model asked for (R12).
        if call.redacted {
            self.close(call, InvocationStatus::Interrupted, INTERRUPTED, now);
            return;
        }
        if resumed && tried > 0 && tool_settings.unwrap_or_default().on_interrupted == OnInterrupted::Report {
            self.close(call, InvocationStatus::Interrupted, INTERRUPTED, now);
            return;
        }
        if tool_settings.is_none() {
            let names: Vec<&str> = setup.tool_settings.keys().map(String::as_str).collect();
            let text = format!(
                "Error: there is no tool \"{}\". The tools are: {}.",
                call.name,
                if names.is_empty() { "none".into() } else { joined(&mut names.into_iter(), ", ") }
            );
            self.close(call, InvocationStatus::Error, &text, now);
            return;
        }
        let text = call.arguments.text();
        let arguments = match JsonRef::parse(if text.trim().is_empty() { "{}" } else { &text }) {
            Ok(value) if value.is_object() || value.is_null() => value.to_owned(),
            // The input of a custom tool is a text, kept as a value.
            Ok(value) if value.kind() == Kind::String && matches!(call.arguments, Arguments::Value(_)) => {
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
        let attempt = tried + 1;
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
        self.closing.push(ResultEntry {
            invocation: call.id.clone(),
            status,
            started_at: call.started_at,
            finished_at: Some(now),
            freshness: None,
            result: Some(ToolResult::failure(text)),
        });
    }

    /// The next effect to offer; it is told its id by [`offered`](Self::offered).
    pub fn unoffered(&mut self) -> Option<EffectKind> {
        self.tasks.get_mut(self.offered)?.kind.take()
    }

    /// The id of that effect.
    pub fn offered(&mut self, effect: String) {
        self.by_effect.insert(effect, self.offered);
        self.offered += 1;
    }

    /// Results that need no tool.
    pub fn take_closing(&mut self) -> Vec<ResultEntry> {
        std::mem::take(&mut self.closing)
    }

    /// The event of such a result.
    pub fn finished_event(&self, entry: &ResultEntry, live: &History) -> RunEvent {
        let call_id = live.invocation(&entry.invocation).map_or_else(String::new, |call| call.wire_id().to_owned());
        let (is_error, result) =
            entry.result.as_ref().map_or((true, Json::null()), |result| (result.is_error, result.content.clone()));
        RunEvent::ToolFinished { call_id, is_error, result, duration_ms: 0 }
    }

    /// Takes an answer.
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
                let step = ToolTransition { event, journal: vec![started(now)], over: false };
                task.phase = ToolPhase::Started;
                self.start_next = true;
                return Ok(Some(step));
            }
            EffectReply::Started => return Err(Error::new(Code::WrongState, "this tool was started already")),
            EffectReply::ToolResult { content, is_error } => (content, is_error),
            EffectReply::Failed { message, .. } => (ToolResult::failure(&format!("Error: {message}")).content, true),
            EffectReply::ResponseStarted { .. }
            | EffectReply::ResponseEnd
            | EffectReply::Response { .. }
            | EffectReply::Waited => {
                return Err(Error::new(
                    Code::WrongState,
                    "a `run_tool` is answered by `started`, `tool_result` or `failed`",
                ));
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
        Ok(Some(ToolTransition { event, journal, over: true }))
    }

    /// The round waits for that write.
    pub fn wait_for(&mut self, save: u64) {
        self.saves.insert(save, std::mem::take(&mut self.start_next));
    }

    /// A write is there.
    pub fn written(&mut self, save: u64) {
        self.saves.remove(&save);
    }

    /// Whether that write told of a start.
    pub fn was_start(&self, save: u64) -> bool {
        self.saves.get(&save) == Some(&true)
    }

    /// Whether the round waits for that write.
    pub fn awaits(&self, save: u64) -> bool {
        self.saves.contains_key(&save)
    }

    /// Whether every call is answered and every answer is written.
    pub fn all_done(&self) -> bool {
        self.saves.is_empty() && self.answered == self.tasks.len()
    }
}

/// Whether a tool of the last round was the run's last word; it may have been answered before a kill.
pub fn ends_run(live: &History, setup: &RunSetup) -> bool {
    let Some(answer) = live.last_answer() else { return false };
    live.calls_of(answer).any(|call| {
        call.status == InvocationStatus::Ok
            && setup.tool_settings.get(&call.name).is_some_and(|tool_settings| tool_settings.ends_run)
    })
}
