//! Assembles an answer of OpenAI Responses, streamed or whole: a list of items.
//!
//! A complete item replaces its deltas, and the response at the end replaces its items, unless it holds less: gateways
//! cut large events.

mod item;
mod item_parts;

use crate::id::{IdMap, Seed};
use crate::json::{ArrayWriter, Json, JsonKind, JsonRef, JsonStr};
use crate::provider::openai_chat::stream::read_usage;
use crate::provider::stream::{
    AnswerBlock, AnswerReader, AnswerStatus, Assembled, InputTransformation, LatestPositions, MetaMembers,
    ResponseMeta, StreamEvent, TransformationEffect, TransformedPlace, WireError, inside, malformed, non_empty_text,
    read_error,
};
use item::{ItemStage, OutputItem, OutputKind, PartList};
use item_parts::TextUpdate;
use std::borrow::Cow;

const META_MEMBERS: MetaMembers = MetaMembers { id: "id", model: "model" };

/// An answer while it is streamed.
#[derive(Default)]
pub(crate) struct ResponsesAssembler {
    meta: ResponseMeta,
    /// The response has `"store":false`: the provider does not keep it.
    unstored: bool,
    items: Vec<OutputItem>,
    positions: LatestPositions,
    /// Positions of the items that are not complete, ascending.
    open: Vec<usize>,
    /// The number of calls so far.
    calls: u32,
    /// How the response ended, once it has.
    ended: Option<AnswerStatus>,
}

/// The members of an event, such as
/// `{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi"}`.
struct ResponseEvent<'a> {
    /// The event's type without `response.`.
    name: Cow<'a, str>,
    data: JsonRef<'a>,
    response: Option<JsonRef<'a>>,
    item: Option<JsonRef<'a>>,
    item_id: Option<Cow<'a, str>>,
    /// The index of the item.
    output_index: Option<u64>,
    /// The index of the part in the item's list.
    part_index: u64,
    /// A delta, a whole text, a part or an annotation.
    value: Option<JsonRef<'a>>,
    error: Option<JsonRef<'a>>,
    /// Its place in the stream.
    number: Option<u64>,
}

impl<'a> ResponseEvent<'a> {
    /// Reads an event. `name` is that of the SSE frame; the `type` in the data is preferred.
    fn read(name: &str, data: JsonRef<'a>) -> Self {
        let mut event = Self {
            name: Cow::Borrowed(""),
            data,
            response: None,
            item: None,
            item_id: None,
            output_index: None,
            part_index: 0,
            value: None,
            error: None,
            number: None,
        };
        let mut event_type = None;
        for (key, value) in data.entries() {
            match inside(key).unwrap_or_default() {
                "type" => event_type = value.as_text(),
                "response" => event.response = Some(value),
                "item" => event.item = Some(value),
                "item_id" => event.item_id = value.as_text(),
                "output_index" => event.output_index = value.as_u64(),
                "content_index" | "summary_index" => event.part_index = value.as_u64().unwrap_or(0),
                "delta" | "text" | "refusal" | "arguments" | "input" | "part" | "annotation" => {
                    event.value = Some(value);
                }
                "sequence_number" => event.number = value.as_u64(),
                "error" => event.error = Some(value).filter(|value| !value.is_null()),
                _ => {}
            }
        }
        let event_type = event_type.unwrap_or_else(|| Cow::Owned(name.to_owned()));
        event.name = match event_type.strip_prefix("response.") {
            Some(name) => Cow::Owned(name.to_owned()),
            None => event_type,
        };
        event
    }

    /// The response that the event is about; some gateways send its members as the event's.
    fn response(&self) -> JsonRef<'a> {
        self.response.unwrap_or(self.data)
    }

    fn part_list(&self) -> PartList {
        if self.name.starts_with("reasoning_summary") { PartList::Summary } else { PartList::Content }
    }

    /// Returns the kind of the item that the event's text belongs to: reasoning or a message. Returns `None` if nothing
    /// tells.
    fn kind_of_item(&self) -> Option<OutputKind> {
        let part_type = || self.value.and_then(|part| part.text("type"));
        match self.name.split(['.', '_']).next() {
            Some("reasoning") => Some(OutputKind::Reasoning),
            Some("output" | "refusal") => Some(OutputKind::Message),
            _ => match part_type()?.as_ref() {
                "reasoning_text" => Some(OutputKind::Reasoning),
                "output_text" | "refusal" => Some(OutputKind::Message),
                _ => None,
            },
        }
    }

    fn is_delta(&self) -> bool {
        self.name.ends_with(".delta")
    }
}

/// Returns the list of items in a response.
fn output_of(response: JsonRef<'_>) -> Option<JsonRef<'_>> {
    response.get("output").filter(|output| output.kind() == JsonKind::Array)
}

fn items_of(output: JsonRef<'_>) -> Vec<JsonRef<'_>> {
    output.items().filter(|item| item.is_object()).collect()
}

/// Returns true for a response, which has a list of items unless there is no answer (yet).
fn is_response(body: JsonRef<'_>) -> bool {
    let lacks_answer = |status: &str| matches!(status, "queued" | "in_progress" | "failed" | "cancelled");
    output_of(body).is_some()
        || body.has_text("object", "response") && body.text("status").is_some_and(|it| lacks_answer(&it))
}

impl AnswerReader for ResponsesAssembler {
    /// Events are numbered, so no two are alike: it never returns a fragment to compare the next event with.
    fn read_event<'a>(&mut self, name: &str, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        // Events after the end belong to another response.
        if self.ended.is_none() && self.meta.error.is_none() {
            let event = ResponseEvent::read(name, data);
            if !self.meta.is_repeated(event.number) {
                self.apply(&event, out);
            }
        }
        None
    }

    fn read_fragment(&mut self, _fragment: &str, _out: &mut Vec<StreamEvent>) {}

    fn read_body(&mut self, body: JsonRef<'_>) {
        let out = &mut Vec::new();
        let error = body.find("error");
        if is_response(body) {
            self.end(body, if error.is_some() { "failed" } else { "completed" }, out);
            return;
        }
        self.meta.report_error_object(error.unwrap_or(body), out);
        let has_error = error.is_some() || body.get("message").is_some() || body.get("detail").is_some();
        if !has_error || self.meta.error.is_none() {
            self.meta.error = Some(malformed("the response has no output"));
        }
    }

    fn read_rest(&mut self, body: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        if !self.is_replaced_by(body) {
            self.read_event("", body, out);
            return;
        }
        let shown = std::mem::take(self).text();
        self.read_event("", body, &mut Vec::new());
        let text = self.text();
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
        for (position, item) in (0..).zip(&self.items) {
            item.visit(position << 32, visit);
        }
    }

    fn assemble(&self, stopped: bool) -> Assembled {
        let status = self.status(stopped);
        let complete = status == AnswerStatus::Complete;
        let mut calls = Vec::new();
        let paired = self.paired_items();
        for (item, has_counterpart) in self.items.iter().zip(&paired) {
            // A call that comes with its output was run by the provider.
            if let Some((_, call)) = item.assemble(complete && !has_counterpart) {
                calls.push(call);
            }
        }
        self.meta.assembled(status, &self.text(), calls, self.wire(complete, &paired))
    }
}

impl ResponsesAssembler {
    fn apply(&mut self, event: &ResponseEvent<'_>, out: &mut Vec<StreamEvent>) {
        match &*event.name {
            "output_item.added" => self.output_item(event, ItemStage::Added, out),
            "output_item.done" => self.output_item(event, ItemStage::Complete, out),
            "content_part.added"
            | "content_part.done"
            | "reasoning_summary_part.added"
            | "reasoning_summary_part.done" => self.part(event, out),
            "output_text.delta"
            | "output_text.done"
            | "refusal.delta"
            | "refusal.done"
            | "reasoning_text.delta"
            | "reasoning_text.done"
            | "reasoning_summary_text.delta"
            | "reasoning_summary_text.done" => self.part_text(event, out),
            "output_text.annotation.added" => {
                if let (Some(item), Some(annotation)) = (self.item(event), event.value) {
                    item.annotate(event.part_index, annotation);
                }
            }
            "function_call_arguments.delta"
            | "function_call_arguments.done"
            | "custom_tool_call_input.delta"
            | "custom_tool_call_input.done" => self.arguments(event, out),
            "created" | "in_progress" | "queued" => self.read_head(event.response()),
            "completed" | "done" => self.end(event.response(), "completed", out),
            "incomplete" | "failed" | "cancelled" => self.end(event.response(), &event.name, out),
            "error" => self.meta.report_error_object(event.error.unwrap_or(event.data), out),
            // Some gateways send the whole response as one event without a name.
            "" if is_response(event.data) => self.end(event.data, "completed", out),
            "" => self.meta.report_error_object(event.error.unwrap_or_default(), out),
            _ => {}
        }
    }

    /// Reads the members of a response that are known from its start.
    fn read_head(&mut self, response: JsonRef<'_>) {
        self.meta.set_id_and_model(response, &META_MEMBERS);
        self.meta.conversation_id = conversation_of(response).or(self.meta.conversation_id.take());
        self.meta.is_background |= response.get("background").and_then(JsonRef::as_bool) == Some(true);
        self.unstored |= response.get("store").and_then(JsonRef::as_bool) == Some(false);
        if let Some(list) = response.find("input_transformations") {
            self.meta.transformations = list.items().filter_map(read_transformation).collect();
        }
    }

    /// Reads the response at its end. `default_status` is that of the event, for a response without a `status`.
    fn end(&mut self, response: JsonRef<'_>, default_status: &str, out: &mut Vec<StreamEvent>) {
        self.read_head(response);
        let status = response.text("status");
        let status = status.as_deref().unwrap_or(default_status);
        let complete = status == "completed";
        self.read_output(output_of(response).unwrap_or_default(), complete, out);
        if complete {
            // For servers that send no `output_item.done`.
            self.items.iter_mut().for_each(|item| item.close(out));
        }
        if let Some(usage) = response.get("usage").and_then(read_usage) {
            self.meta.usage = Some(usage);
            out.push(StreamEvent::Usage(usage));
        }
        let reason = response.find("incomplete_details").and_then(|details| non_empty_text(details.get("reason")));
        self.ended = match status {
            "completed" => Some(AnswerStatus::Complete),
            "incomplete" if reason.as_deref() == Some("content_filter") => Some(AnswerStatus::Blocked),
            "incomplete" => Some(AnswerStatus::Incomplete),
            "failed" | "cancelled" => {
                let error = response.find("error").and_then(read_error).unwrap_or_else(|| WireError {
                    code: Some(status.to_owned()),
                    message: format!("the provider ended the response with the status {status}"),
                });
                self.meta.report_error(error, out);
                Some(AnswerStatus::Failed)
            }
            // A background response that is not ready: `queued`, `in_progress`.
            _ => None,
        };
        self.meta.finish_reason = Some(reason.map_or_else(|| status.to_owned(), Cow::into_owned));
    }

    /// Returns true for the whole response at its end if it lacks or reorders the items received so far and one of
    /// those is not complete: its rest has no place among them.
    fn is_replaced_by(&self, body: JsonRef<'_>) -> bool {
        let has_ended = body.text("status").is_none_or(|status| matches!(&*status, "completed" | "incomplete"));
        let output = output_of(body).filter(|_| has_ended && self.items.iter().any(|item| !item.done));
        output.is_some_and(|output| !self.has_items_of(&items_of(output)))
    }

    /// Returns true if these items begin with the items received so far.
    fn has_items_of(&self, items: &[JsonRef<'_>]) -> bool {
        items.len() >= self.items.len() && self.items.iter().zip(items).all(|(own, item)| has_type_of(own, *item))
    }

    /// Returns the text received so far, as the content of a string token.
    fn text(&self) -> String {
        self.items.iter().flat_map(OutputItem::texts).collect()
    }

    /// Replaces the items by those of the response at its end, unless some are missing there.
    fn read_output(&mut self, output: JsonRef<'_>, complete: bool, out: &mut Vec<StreamEvent>) {
        let items = items_of(output);
        if !self.has_items_of(&items) {
            return;
        }
        for (position, item) in items.into_iter().enumerate() {
            if position == self.items.len() {
                self.open(None, item);
            }
            let item_complete = complete || item.text("status").is_none_or(|status| status == "completed");
            let stage = if item_complete { ItemStage::Complete } else { ItemStage::Partial };
            self.read_item(position, item, stage, out);
        }
    }

    /// Returns the position of the item that an event is about. Its index is preferred: some servers change the ids
    /// from event to event.
    fn position_of(&self, event: &ResponseEvent<'_>) -> Option<usize> {
        match (event.output_index, &event.item_id) {
            (Some(index), _) => self.positions.with_index(index),
            (None, Some(id)) => self.positions.with_id(id),
            (None, None) => self.items.len().checked_sub(1),
        }
    }

    fn item(&mut self, event: &ResponseEvent<'_>) -> Option<&mut OutputItem> {
        let position = self.position_of(event)?;
        self.items.get_mut(position)
    }

    /// Applies an event that carries an item as an object. Opens the item if it is new.
    fn output_item(&mut self, event: &ResponseEvent<'_>, stage: ItemStage, out: &mut Vec<StreamEvent>) {
        let Some(item) = event.item.filter(|item| item.is_object()) else { return };
        let known = match (event.output_index, non_empty_text(item.get("id"))) {
            (Some(_), _) => self.position_of(event),
            (None, Some(id)) => self.positions.with_id(&id),
            // Without index and id, the item that was opened last is the one that is complete.
            (None, None) => self.open.last().copied().filter(|_| stage != ItemStage::Added),
        };
        let is_same = |position: &usize| self.items.get(*position).is_some_and(|own| has_type_of(own, item));
        let position = match known.filter(is_same) {
            Some(position) => position,
            None => self.open(event.output_index, item),
        };
        self.read_item(position, item, stage, out);
    }

    /// Opens an item and returns its position.
    fn open(&mut self, output_index: Option<u64>, item: JsonRef<'_>) -> usize {
        let (item, position) = (OutputItem::new(item, self.calls), self.items.len());
        self.calls += u32::from(item.is_call());
        if let Some(index) = output_index {
            self.positions.record_index(index, position);
        }
        self.positions.record_id(&item.id(), position);
        self.open.push(position);
        self.items.push(item);
        position
    }

    fn read_item(&mut self, position: usize, item: JsonRef<'_>, stage: ItemStage, out: &mut Vec<StreamEvent>) {
        let Some(own) = self.items.get_mut(position) else { return };
        own.read(item, stage, out);
        self.positions.record_id(&own.id(), position);
        if own.done
            && let Ok(at) = self.open.binary_search(&position)
        {
            self.open.remove(at);
        }
    }

    /// Returns the item whose list an event is about. Opens one if no event announced it: its text is part of the
    /// answer. Reasoning does not become text of a message, nor text reasoning, whatever index and id the event has.
    fn item_with_parts(&mut self, event: &ResponseEvent<'_>) -> Option<&mut OutputItem> {
        let kind = event.kind_of_item();
        let is_other_kind = |item: &OutputItem| match kind {
            Some(OutputKind::Reasoning) => item.kind == OutputKind::Message,
            Some(OutputKind::Message) => item.kind == OutputKind::Reasoning,
            _ => false,
        };
        let is_named = event.output_index.is_some() || event.item_id.is_some();
        let named = self.position_of(event);
        let position = match named.filter(|at| !self.items.get(*at).is_some_and(is_other_kind)) {
            Some(position) => Some(position),
            // Two items have the same index or id: the newest one of the event's kind is meant.
            None if named.is_some() && is_named => self.items.iter().rposition(|item| Some(item.kind) == kind),
            None => None,
        };
        let position = match position {
            Some(position) => position,
            None => {
                let id = event.item_id.as_deref().filter(|_| named.is_none()).unwrap_or_default();
                let index = event.output_index.filter(|_| named.is_none());
                self.open(index, item::empty_item(kind.unwrap_or(OutputKind::Message), id).view())
            }
        };
        self.items.get_mut(position)
    }

    /// Applies an event that carries a part as an object.
    fn part(&mut self, event: &ResponseEvent<'_>, out: &mut Vec<StreamEvent>) {
        let Some(part) = event.value else { return };
        let list = event.part_list();
        if let Some(item) = self.item_with_parts(event).filter(|_| part.is_object()) {
            item.read_part(list, event.part_index, part, out);
        }
    }

    /// Applies an event that carries more of a part's text, or all of it.
    fn part_text(&mut self, event: &ResponseEvent<'_>, out: &mut Vec<StreamEvent>) {
        let Some(value) = event.value else { return };
        let (list, refusal) = (event.part_list(), event.name.starts_with("refusal"));
        let Some(item) = self.item_with_parts(event) else { return };
        if let Some(text) = inside(value) {
            let default_type = item.default_part_type(list, refusal);
            let update =
                TextUpdate { index: event.part_index, default_type, text, is_delta: event.is_delta(), refusal };
            item.update_text(list, update, out);
        }
    }

    /// Applies an event that carries more of a call's arguments, or all of them.
    fn arguments(&mut self, event: &ResponseEvent<'_>, out: &mut Vec<StreamEvent>) {
        let text = event.value.and_then(inside);
        if let (Some(item), Some(text)) = (self.item(event), text) {
            if event.is_delta() {
                item.append_arguments(text, out);
            } else {
                item.replace_arguments(text, out);
            }
        }
    }

    fn status(&self, stopped: bool) -> AnswerStatus {
        let has_only_refusal =
            || self.items.iter().any(OutputItem::has_refusal) && !self.items.iter().any(OutputItem::has_answer);
        match self.ended {
            _ if self.meta.error.is_some() => AnswerStatus::Failed,
            _ if stopped => AnswerStatus::Truncated,
            None => AnswerStatus::Truncated,
            Some(AnswerStatus::Complete) if has_only_refusal() => AnswerStatus::Refused,
            Some(ended) => ended,
        }
    }

    /// Returns for each item whether it is a complete call or output and its counterpart is complete too.
    fn paired_items(&self) -> Vec<bool> {
        const CALL: usize = 1;
        const OUTPUT: usize = 2;
        let side_of = |item: &OutputItem| {
            let (id, is_call) = item.pair().filter(|_| item.done)?;
            Some((id, if is_call { CALL } else { OUTPUT }))
        };
        let mut sides: IdMap<usize> = IdMap::with_seed(Seed::default());
        for (id, side) in self.items.iter().filter_map(side_of) {
            *sides.get_or_insert(&id, 0) |= side;
        }
        let is_paired = |item| side_of(item).is_some_and(|(id, _)| sides.get(&id) == Some(&(CALL | OUTPUT)));
        self.items.iter().map(is_paired).collect()
    }

    /// Returns the items for the next request; none if there are none.
    fn wire(&self, complete: bool, paired: &[bool]) -> Option<Json> {
        // Reasoning that is neither stored nor encrypted cannot be referred to by id, nor can the items that depend on
        // it.
        let without_ids = self.unstored && self.items.iter().any(OutputItem::is_bare_reasoning);
        let mut wire = String::new();
        let mut list = ArrayWriter::new(&mut wire);
        for (item, has_counterpart) in self.items.iter().zip(paired) {
            if item.is_sent(complete, *has_counterpart) {
                item.write(list.item(), without_ids);
            }
        }
        list.end();
        (wire.len() > "[]".len()).then(|| Json::trusted(wire))
    }
}

/// Reads what became of a reasoning item of the request:
/// `{"type":"reasoning","action":"removed","id":"rs_…","reason":"prefix_mismatch"}`.
fn read_transformation(entry: JsonRef<'_>) -> Option<InputTransformation> {
    if !entry.has_text("action", "removed") {
        return None;
    }
    let reason = InputTransformation::word(&entry.string("reason"));
    // Reasoning of a turn that is over is not needed any more.
    let is_usual = reason == "turn_boundary";
    let effect = if is_usual { TransformationEffect::DroppedByDesign } else { TransformationEffect::Dropped };
    Some(InputTransformation { place: TransformedPlace::Item(entry.text("id")?.into_owned()), reason, effect })
}

/// Returns the id of the conversation that a response was added to: `{"conversation":{"id":"conv_…"}}`, or the id
/// itself.
fn conversation_of(response: JsonRef<'_>) -> Option<String> {
    let conversation = response.find("conversation")?;
    non_empty_text(Some(conversation)).or_else(|| non_empty_text(conversation.get("id"))).map(Cow::into_owned)
}

fn has_type_of(own: &OutputItem, item: JsonRef<'_>) -> bool {
    item.text("type").is_some_and(|name| own.has_type(&name))
}
