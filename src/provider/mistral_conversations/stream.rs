//! Assembles an answer, streamed or whole: a list of entries.
//!
//! ```text
//! {"type":"conversation.response.started","conversation_id":"conv_1"}
//! {"type":"message.output.delta","output_index":0,"id":"msg_1","content_index":0,"role":"assistant","content":"Hi"}
//! {"type":"conversation.response.done","usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}
//! ```
//!
//! Sources: client-ts, `ConversationEventsData` and `ConversationResponse`, read on 2026-11-28, and the answers that
//! braintrust-sdk-python recorded from June to October 2026 (`integrations/mistral/cassettes`). An answer has no finish
//! reason: one that a limit of tokens ended cannot be told from a complete one.

mod output_entry;
#[cfg(test)]
mod tests;

use super::entry::{CALL, CALL_ID, EXECUTION, HANDOFF, OUTPUT, type_of};
use crate::json::{ArrayWriter, Json, JsonKind, JsonRef};
use crate::message::Usage;
use crate::provider::openai_chat::stream::read_usage;
use crate::provider::stream::{
    AnswerBlock, AnswerReader, AnswerStatus, Assembled, LatestPositions, ResponseMeta, StreamEvent, inside, malformed,
    non_empty_text, read_error,
};
use output_entry::OutputEntry;

/// An answer while it is streamed.
#[derive(Default)]
pub(crate) struct ConversationAssembler {
    meta: ResponseMeta,
    entries: Vec<OutputEntry>,
    positions: LatestPositions,
    /// The number of calls so far.
    calls: u32,
    /// The index of the entry that the last delta extended.
    last_extended: usize,
    /// The answer is complete.
    ended: bool,
}

impl AnswerReader for ConversationAssembler {
    fn read_event<'a>(&mut self, name: &str, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        // Events after the end belong to another response.
        if self.ended || self.meta.error.is_some() {
            return None;
        }
        let kind = data.text("type").unwrap_or(name.into());
        match &*kind {
            "conversation.response.started" => self.read_conversation(data),
            "conversation.response.done" => self.end(data, out),
            "conversation.response.error" | "error" => {
                self.meta
                    .report_error(read_error(data).unwrap_or_else(|| malformed("the provider named no error")), out);
            }
            // A server that does not stream sends the whole answer.
            _ if has_outputs(data) => self.read_response(data, out),
            kind => match event_of(kind) {
                Some(event) => return self.extend(event, data, out),
                None => self.meta.report_error_object(data.find("error").unwrap_or_default(), out),
            },
        }
        None
    }

    fn read_fragment(&mut self, fragment: &str, out: &mut Vec<StreamEvent>) {
        if let Some(entry) = self.entries.get_mut(self.last_extended) {
            entry.append_fragment(fragment, out);
        }
    }

    fn read_body(&mut self, body: JsonRef<'_>) {
        let out = &mut Vec::new();
        if has_outputs(body) {
            self.read_response(body, out);
        } else if body.text("type").is_some_and(|kind| event_of(&kind).is_some() || kind.starts_with("conversation.")) {
            self.read_event("", body, out);
        } else {
            let described = body.find("error").or_else(|| body.find("message").or(body.find("detail")).map(|_| body));
            let error = described.and_then(read_error);
            self.meta.set_error(error.unwrap_or_else(|| malformed("the response has no outputs")));
        }
    }

    fn meta(&self) -> &ResponseMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ResponseMeta {
        &mut self.meta
    }

    fn visit_blocks(&self, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        for (position, entry) in (0_u64..).zip(&self.entries) {
            entry.visit(position << 32, visit);
        }
    }

    fn assemble(&self, stopped: bool) -> Assembled {
        let status = match () {
            () if self.meta.error.is_some() => AnswerStatus::Failed,
            () if stopped || !self.ended => AnswerStatus::Truncated,
            () => AnswerStatus::Complete,
        };
        let complete = status == AnswerStatus::Complete;
        let text: String = self.entries.iter().map(OutputEntry::text).collect();
        let calls = self.entries.iter().filter_map(|entry| entry.assemble_call(complete)).collect();
        self.meta.assembled(status, &text, calls, self.wire(complete))
    }
}

fn has_outputs(body: JsonRef<'_>) -> bool {
    body.get("outputs").is_some_and(|outputs| outputs.kind() == JsonKind::Array)
}

/// An event of an entry.
#[derive(Clone, Copy)]
struct EntryEvent {
    entry_type: &'static str,
    /// Nothing of the entry follows.
    is_done: bool,
}

/// Reads the type of an event: `tool.execution.started` is one of a `tool.execution`.
fn event_of(kind: &str) -> Option<EntryEvent> {
    let (entry, stage) = kind.rsplit_once('.')?;
    let is_stage = matches!(stage, "started" | "delta" | "done");
    let entry_type = [OUTPUT, CALL, EXECUTION, HANDOFF].into_iter().find(|own| is_stage && *own == entry)?;
    Some(EntryEvent { entry_type, is_done: stage == "done" })
}

impl ConversationAssembler {
    /// A request begins a conversation or appends to one. The answer names it, kept or not, and nothing else of its
    /// own: the id is that of the response.
    fn read_conversation(&mut self, data: JsonRef<'_>) {
        if let Some(id) = non_empty_text(data.get("conversation_id")) {
            self.meta.id = Some(id.into_owned());
        }
    }

    /// Reads a whole response.
    fn read_response(&mut self, body: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        self.read_conversation(body);
        for output in body.get("outputs").unwrap_or_default().items().filter(|output| output.is_object()) {
            let at = self.add(OutputEntry::begun(&type_of(output), output, self.calls), output, out);
            if let Some(entry) = self.entries.get_mut(at) {
                entry.read_whole(output, out);
            }
        }
        self.end(body, out);
    }

    fn end(&mut self, data: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        self.ended = true;
        self.entries.iter_mut().for_each(|entry| entry.end(out));
        self.meta.update_usage(data.get("usage").and_then(usage_of), out);
    }

    /// Adds an entry and returns its index.
    fn add(&mut self, entry: OutputEntry, data: JsonRef<'_>, out: &mut Vec<StreamEvent>) -> usize {
        let at = self.entries.len();
        self.calls += u32::from(entry.is_call());
        if self.meta.model.is_none() {
            self.meta.model = non_empty_text(data.get("model")).map(Into::into);
        }
        entry.emit_start(out);
        self.positions.record_id(&key_of(data), at);
        let index = data.get(OUTPUT_INDEX).map_or("", JsonRef::as_raw);
        self.positions.record_id(&place_key(entry.entry_type(), index), at);
        self.positions.record_id(&place_key(entry.entry_type(), ""), at);
        self.entries.push(entry);
        at
    }

    /// Applies an event to its entry, which is new if none has its type and ids. Returns the fragment that it appended
    /// to a string if that was its only effect.
    fn extend<'a>(&mut self, event: EntryEvent, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        let EntryEvent { entry_type, is_done } = event;
        let known = self.positions.with_id(&key_of(data)).or_else(|| self.nearest(entry_type, data));
        let known = known.filter(|at| self.entries.get(*at).is_some_and(|entry| entry.is_of(entry_type)));
        let is_new = known.is_none();
        let at = match known {
            Some(at) => at,
            None => self.add(OutputEntry::begun(entry_type, data, self.calls), data, out),
        };
        self.last_extended = at;
        let entry = self.entries.get_mut(at)?;
        if !is_new {
            entry.read_fields(data);
        }
        let fragment = entry.extend(data, out);
        if is_done {
            entry.mark_done();
        }
        fragment.filter(|_| !is_new && !is_done)
    }

    /// Returns the latest entry of a type and place for an event that lacks a member of its key.
    fn nearest(&self, entry_type: &str, data: JsonRef<'_>) -> Option<usize> {
        let has = |name: &str| data.find(name).is_some();
        let is_complete = has(OUTPUT_INDEX) && has("id") && (entry_type != CALL || has(CALL_ID));
        let index = data.get(OUTPUT_INDEX).map_or("", JsonRef::as_raw);
        let at = self.positions.with_id(&place_key(entry_type, index)).filter(|_| !is_complete)?;
        // What the event names must be that of the entry.
        let is_same = |name: &str| {
            data.text(name).is_none_or(|given| self.entries.get(at).is_some_and(|entry| entry.names(name, &given)))
        };
        (is_same("id") && is_same(CALL_ID)).then_some(at)
    }

    /// Returns the entries for the next request; none if there are none.
    fn wire(&self, complete: bool) -> Option<Json> {
        let mut wire = String::new();
        let mut list = ArrayWriter::new(&mut wire);
        for entry in self.entries.iter().filter_map(|entry| entry.to_wire(complete)) {
            list.item().push_str(&entry);
        }
        list.end();
        (wire.len() > "[]".len()).then(|| Json::trusted(wire))
    }
}

/// Reads a `usage` object. The tokens of the service's own tools count as input: recorded, the total is the sum of all
/// three.
fn usage_of(usage: JsonRef<'_>) -> Option<Usage> {
    let read = read_usage(usage)?;
    let connectors = usage.get("connector_tokens").and_then(JsonRef::as_u64).unwrap_or(0);
    Some(Usage { input: read.input.saturating_add(connectors), ..read })
}

/// Returns what tells an entry from others: its place among the outputs, its id, and for a call the call's id.
fn key_of(data: JsonRef<'_>) -> String {
    let part = |name: &str| data.get(name).map_or("", |value| inside(value).unwrap_or(value.as_raw()));
    format!("{} {} {}", part(OUTPUT_INDEX), part("id"), part(CALL_ID))
}

/// Returns the key of the latest entry of a type at a place among the outputs, or anywhere.
fn place_key(entry_type: &str, index: &str) -> String {
    format!("{entry_type}@{index}")
}

const OUTPUT_INDEX: &str = "output_index";
