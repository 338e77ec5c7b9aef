//! Assembles an interaction, streamed or whole: a list of steps.
//!
//! ```json
//! {"event_type":"interaction.created","interaction":{"id":"v1_1","status":"in_progress","model":"gemini-3.8-flash"}}
//! {"event_type":"step.start","index":0,"step":{"type":"model_output"}}
//! {"event_type":"step.delta","index":0,"delta":{"type":"text","text":"Hi"}}
//! {"event_type":"step.stop","index":0}
//! {"event_type":"interaction.completed","interaction":{"id":"v1_1","status":"completed","usage":{"total_tokens":9}}}
//! ```
//!
//! Before 2026-06-08 the events were `interaction.start`, `content.start`, `content.delta`, `content.stop` and
//! `interaction.complete`, and an interaction had `outputs`, contents in place of steps. Those are read, too.

mod step;

use super::background::is_pending;
use super::continuation::{CONTINUATION_TOKEN, REQUIRES_CONTINUATION};
use super::step::USER_INPUT;
use crate::json::{ArrayWriter, Json, JsonKind, JsonRef, JsonStr};
use crate::message::Usage;
use crate::provider::stream::{
    AnswerBlock, AnswerReader, AnswerStatus, Assembled, LatestPositions, MetaMembers, ResponseMeta, StreamEvent,
    WireError, malformed, read_error,
};
use std::collections::BTreeSet;
use step::StreamStep;

const META_MEMBERS: MetaMembers = MetaMembers { id: "id", model: "model" };

/// An interaction in progress.
#[derive(Default)]
pub(crate) struct InteractionsAssembler {
    meta: ResponseMeta,
    steps: Vec<StreamStep>,
    positions: LatestPositions,
    call_count: u32,
    /// The indices of the steps of the user.
    inputs: BTreeSet<u64>,
    /// The position of the step that the last delta extended.
    last_extended: usize,
    /// How the interaction ended, once it has.
    ended: Option<AnswerStatus>,
    /// The status that an event reported before the end. It is that of an answer whose stream has no end event.
    reported: Option<AnswerStatus>,
}

impl AnswerReader for InteractionsAssembler {
    fn read_event<'a>(&mut self, name: &str, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        // Events after the end belong to another interaction.
        if self.ended.is_some() || self.meta.error.is_some() {
            return None;
        }
        let event_type = data.text("event_type").filter(|name| !name.is_empty()).unwrap_or_else(|| name.into());
        let index = data.get("index").and_then(JsonRef::as_u64);
        match event_type.as_ref() {
            "interaction.created" | "interaction.start" => self.read_head(data.get("interaction").unwrap_or_default()),
            "interaction.status_update" | "interaction.requires_action" | "interaction.in_progress" => {
                self.read_status(&event_type, data, out);
            }
            "step.start" => self.start(index, data.get("step").unwrap_or_default(), out),
            "content.start" => self.start(index, data.get("content").unwrap_or_default(), out),
            "step.delta" | "content.delta" => {
                let total = data.get("metadata").and_then(|metadata| metadata.get("total_usage"));
                self.meta.update_usage(total.and_then(read_usage), out);
                return self.delta(index, data.get("delta").unwrap_or_default(), out);
            }
            "step.stop" | "content.stop" => {
                self.meta.update_usage(data.get("usage").and_then(read_usage), out);
                if let Some(step) = self.step_mut(index) {
                    step.close(out);
                }
            }
            "interaction.completed" | "interaction.complete" => {
                self.end(data.get("interaction").unwrap_or_default(), "completed", out);
            }
            "error" => self.meta.report_error_object(data.find("error").unwrap_or(data), out),
            // Some gateways send the whole interaction as one event.
            _ if is_interaction(data) => self.end(data, "completed", out),
            "" => self.meta.report_error_object(data.find("error").unwrap_or_default(), out),
            _ => {}
        }
        None
    }

    fn read_fragment(&mut self, fragment: &str, out: &mut Vec<StreamEvent>) {
        if let Some(step) = self.steps.get_mut(self.last_extended) {
            step.append_fragment(fragment);
            step.emit_new_text(out);
        }
    }

    fn read_body(&mut self, body: JsonRef<'_>) {
        let out = &mut Vec::new();
        if is_interaction(body) {
            return self.end(body, "completed", out);
        }
        // Google's gateways may wrap an error in a list.
        let body = body.items().next().unwrap_or(body);
        self.meta.report_error_object(body.find("error").unwrap_or(body), out);
        let has_error = body.find("error").is_some() || body.get("message").is_some();
        if !has_error || self.meta.error.is_none() {
            self.meta.error = Some(malformed("the response has no steps"));
        }
    }

    fn read_rest(&mut self, body: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        if !is_interaction(body) {
            return self.read_body(body);
        }
        if let Some(status) = body.text("status").filter(|status| is_pending(status)) {
            // What was streamed of it stays, until all of it is there.
            self.meta.finish_reason = Some(status.into());
            return;
        }
        let mut whole = Self::default();
        whole.read_body(body);
        let (shown, text) = (self.text(), whole.text());
        let is_complete = whole.ended == Some(AnswerStatus::Complete);
        if is_complete && whole.steps.is_empty() && !self.steps.is_empty() {
            // What was streamed of it need not be all.
            self.meta.finish_reason = None;
            self.meta.error = Some(malformed("the response has no steps"));
            return;
        }
        if whole.steps.is_empty() || !is_complete && text.len() < shown.len() {
            // One that failed, was cancelled or cut need not have what was streamed of it.
            self.meta.error = None;
            return self.end(body, "completed", out);
        }
        *self = whole;
        if let Some(rest) = text.strip_prefix(&*shown).filter(|rest| !rest.is_empty()) {
            out.push(StreamEvent::TextDelta(JsonStr::from_inside(rest)));
        }
        out.extend(self.meta.usage.map(StreamEvent::Usage));
    }

    fn meta(&self) -> &ResponseMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ResponseMeta {
        &mut self.meta
    }

    fn visit_blocks(&self, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        for (position, step) in (0..).zip(&self.steps) {
            step.visit(position << 32, visit);
        }
    }

    fn has_content(&self) -> bool {
        !self.steps.is_empty()
    }

    fn assemble(&self, stopped: bool) -> Assembled {
        let status = self.status(stopped);
        let is_complete = status == AnswerStatus::Complete;
        let mut calls = Vec::new();
        let executed = self.executed_calls(is_complete);
        for step in &self.steps {
            calls.extend(step.assemble_call(is_complete).filter(|call| !executed.contains(&call.call_id)));
        }
        self.meta.assembled(status, &self.text(), calls, self.wire(is_complete))
    }
}

/// The statuses of an interaction.
const STATUSES: [&str; 9] = [
    "budget_exceeded",
    "cancelled",
    "completed",
    "failed",
    "in_progress",
    "incomplete",
    "queued",
    "requires_action",
    REQUIRES_CONTINUATION,
];

/// Returns true for an interaction, which has a status. With `"store":false` it has no `id` (vercel/ai,
/// `google-interactions-api.ts`); errors and events have other members then.
fn is_interaction(body: JsonRef<'_>) -> bool {
    let has = |name: &str| body.find(name).is_some();
    let is_other = || has("event_type") || has("message");
    list_of(body).is_some()
        || body.text("status").is_some_and(|status| has("id") || STATUSES.contains(&&*status) && !is_other())
}

/// Returns the steps of an interaction, or its outputs in the older form.
fn list_of(interaction: JsonRef<'_>) -> Option<JsonRef<'_>> {
    let list = |name: &str| interaction.get(name).filter(|list| list.kind() == JsonKind::Array);
    list("steps").or_else(|| list("outputs"))
}

/// Reads token counts. `total_output_tokens` excludes thoughts, as in generateContent.
fn read_usage(usage: JsonRef<'_>) -> Option<Usage> {
    let count = |name: &str| usage.get(name).and_then(JsonRef::as_u64);
    let (input, output) = (count("total_input_tokens"), count("total_output_tokens"));
    input.or(output)?;
    let add = |a: Option<u64>, b: Option<u64>| a.unwrap_or(0).saturating_add(b.unwrap_or(0));
    let thoughts = count("total_thought_tokens");
    Some(Usage {
        input: add(input, count("total_tool_use_tokens")),
        output: add(output, thoughts),
        cached_input: count("total_cached_tokens"),
        cache_write: None,
        reasoning: thoughts,
    })
}

impl InteractionsAssembler {
    /// Returns the text so far, as the inside of a token.
    fn text(&self) -> String {
        let mut text = String::new();
        self.steps.iter().for_each(|step| step.push_text(&mut text));
        text
    }

    /// Reads the members of an interaction that are known from its start.
    fn read_head(&mut self, interaction: JsonRef<'_>) {
        self.meta.set_id_and_model(interaction, &META_MEMBERS);
    }

    /// Reads a status before the end: `{"event_type":"interaction.status_update","status":"requires_action"}`, or an event
    /// that is named after it.
    fn read_status(&mut self, event_type: &str, data: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let interaction = data.get("interaction").unwrap_or(data);
        let usage = data.get("usage").or_else(|| interaction.get("usage"));
        self.meta.update_usage(usage.and_then(read_usage), out);
        let named = event_type.strip_prefix("interaction.").unwrap_or_default();
        let status = data.text("status").or_else(|| interaction.text("status"));
        let status = status.as_deref().filter(|status| !status.is_empty()).unwrap_or(named);
        self.reported = match status {
            "completed" | "requires_action" => Some(AnswerStatus::Complete),
            "incomplete" | "budget_exceeded" | REQUIRES_CONTINUATION => Some(AnswerStatus::Incomplete),
            _ => None,
        };
        if self.reported.is_some() {
            self.meta.finish_reason = Some(status.to_owned());
        }
        self.read_token(interaction);
    }

    /// Reads the token by which the service continues the answer: that of the newest status, or none.
    fn read_token(&mut self, interaction: JsonRef<'_>) {
        let token = interaction.text(CONTINUATION_TOKEN).filter(|token| !token.is_empty());
        self.meta.continuation = token.map(Into::into);
    }

    fn start(&mut self, index: Option<u64>, step: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        // A step of the user may be repeated. Its deltas are no answer, either.
        let is_input = step.has_text("type", USER_INPUT);
        if let Some(index) = index {
            if is_input {
                self.inputs.insert(index)
            } else {
                self.inputs.remove(&index)
            };
        }
        if !step.is_object() || is_input {
            return;
        }
        self.add(StreamStep::new(index, step, self.call_count), out);
    }

    fn add(&mut self, mut step: StreamStep, out: &mut Vec<StreamEvent>) {
        self.call_count += u32::from(step.is_call());
        step.emit_start(out);
        if let Some(index) = step.index {
            self.positions.record_index(index, self.steps.len());
        }
        self.steps.push(step);
    }

    /// Returns the step with that index; without an index the last one.
    fn step_mut(&mut self, index: Option<u64>) -> Option<&mut StreamStep> {
        self.last_extended = match index {
            Some(index) => self.positions.with_index(index)?,
            None => self.steps.len().checked_sub(1)?,
        };
        self.steps.get_mut(self.last_extended)
    }

    /// Applies a delta. Returns the fragment that it appended to a string of the step if that was its only effect.
    fn delta<'a>(&mut self, index: Option<u64>, delta: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        if index.is_some_and(|index| self.inputs.contains(&index)) {
            return None;
        }
        if self.step_mut(index).is_none() {
            let step = StreamStep::of_delta(index, delta, self.call_count)?;
            self.add(step, out);
        }
        let step = self.step_mut(index)?;
        let fragment = step.apply_delta(delta);
        step.emit_new_text(out);
        fragment
    }

    /// Reads the interaction at its end. `default_status` is that of the event, for one without a `status`.
    fn end(&mut self, interaction: JsonRef<'_>, default_status: &str, out: &mut Vec<StreamEvent>) {
        self.read_head(interaction);
        // The event at the end of a stream need not have the steps.
        if self.steps.is_empty() {
            for step in list_of(interaction).unwrap_or_default().items() {
                // The last one may be cut off.
                if let Some(before) = self.steps.last_mut() {
                    before.close(out);
                }
                self.start(None, step, out);
            }
        }
        let status = interaction.text("status");
        let status = status.as_deref().filter(|status| !status.is_empty()).unwrap_or(default_status);
        let is_whole = matches!(status, "completed" | "requires_action");
        self.read_token(interaction);
        // What follows a part of an answer has steps of its own.
        if is_whole || status == REQUIRES_CONTINUATION && self.meta.continuation.is_some() {
            self.steps.iter_mut().for_each(|step| step.close(out));
        }
        self.meta.update_usage(interaction.get("usage").and_then(read_usage), out);
        self.meta.finish_reason = Some(status.to_owned());
        self.ended = match status {
            "failed" | "cancelled" => {
                let error = error_of(interaction).or_else(|| self.error_of_step()).unwrap_or_else(|| {
                    let message = format!("the service ended the interaction with the status {status}");
                    WireError { code: Some(status.to_owned()), message }
                });
                self.meta.report_error(error, out);
                Some(AnswerStatus::Failed)
            }
            // Still at work in the background.
            "queued" | "in_progress" => None,
            _ if is_whole => Some(AnswerStatus::Complete),
            // `incomplete`, `budget_exceeded`, `requires_continuation`, and what is added later.
            _ => {
                if let Some(error) = self.error_of_step() {
                    self.meta.report_error(error, out);
                }
                Some(AnswerStatus::Incomplete)
            }
        };
    }

    /// Returns the error that ended a step of the model: `{"type":"model_output","error":{"code":3,"message":"…"}}`.
    fn error_of_step(&self) -> Option<WireError> {
        self.steps.iter().find_map(StreamStep::error)
    }

    fn status(&self, stopped: bool) -> AnswerStatus {
        match self.ended.or(self.reported) {
            _ if self.meta.error.is_some() => AnswerStatus::Failed,
            Some(status) if !stopped => status,
            _ => AnswerStatus::Truncated,
        }
    }

    /// Returns the ids of the calls that the service has run itself: their results are in the answer. Google's page
    /// on its Antigravity agent (2026-09): "Find function calls that do not have a matching function result.
    /// Filesystem tools (like write_to_file) are also represented as function calls but are executed automatically by
    /// the environment."
    fn executed_calls(&self, is_complete: bool) -> BTreeSet<String> {
        let results = self.steps.iter().filter(|step| !step.is_call() && step.is_sent(is_complete));
        results.filter_map(StreamStep::pairing_id).collect()
    }

    /// Returns the steps for the next request.
    fn wire(&self, is_complete: bool) -> Option<Json> {
        let mut wire = String::new();
        let mut list = ArrayWriter::new(&mut wire);
        let executed = self.executed_calls(is_complete);
        // A result needs its call.
        let is_lost = |step: &&StreamStep| step.is_call() && !step.is_sent(true);
        let lost: BTreeSet<String> = self.steps.iter().filter(is_lost).filter_map(StreamStep::pairing_id).collect();
        for step in &self.steps {
            let id = step.pairing_id();
            let is_executed = id.as_ref().is_some_and(|id| executed.contains(id));
            if step.is_sent(is_complete || is_executed) && !id.is_some_and(|id| lost.contains(&id)) {
                step.write(list.item());
            }
        }
        list.end();
        (wire.len() > "[]".len()).then(|| Json::trusted(wire))
    }
}

/// Returns the error of an interaction that failed: the first of its `errors`, or its `error`.
fn error_of(interaction: JsonRef<'_>) -> Option<WireError> {
    let listed = interaction.get("errors").unwrap_or_default().items().find_map(read_error);
    listed.or_else(|| interaction.find("error").and_then(read_error))
}
