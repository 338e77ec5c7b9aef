//! Assembles a Responses answer, streamed or whole: a list of items.
//!
//! What is done replaces what came in pieces, and the response at the end replaces what was done, unless it holds less:
//! gateways cut large events.

mod item;
mod item_parts;

use crate::id::{IdMap, Seed};
use crate::json::{ArrayWriter, Json, JsonRef, Kind};
use crate::provider::openai_chat::stream::read_usage;
use crate::provider::stream::LatestPositions;
use crate::provider::stream::{AnswerReader, inside, non_empty_text, read_error};
use crate::provider::stream::{AnswerStatus, Assembled, StreamEvent, WireError};
use crate::provider::stream::{ResponseMeta, malformed};
use item::{Is, Item, ItemStage};
use item_parts::TextUpdate;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// An answer as it grows.
#[derive(Default)]
pub(crate) struct ResponseAnswer {
    meta: ResponseMeta,
    /// The provider says that it does not keep the response.
    unstored: bool,
    items: Vec<Item>,
    positions: LatestPositions,
    /// Positions of the items that are not complete.
    open: BTreeSet<usize>,
    calls: u32,
    /// How it ended, once it has.
    ended: Option<AnswerStatus>,
}

/// The members of one event.
#[derive(Default)]
struct Event<'a> {
    kind: Option<Cow<'a, str>>,
    response: Option<JsonRef<'a>>,
    item: Option<JsonRef<'a>>,
    item_id: Option<Cow<'a, str>>,
    index: Option<u64>,
    /// Of the entry in an item's list.
    entry: u64,
    /// It is about words of refusal.
    refusal: bool,
    /// The piece or the whole: a text, an entry.
    value: Option<JsonRef<'a>>,
    error: Option<JsonRef<'a>>,
}

impl AnswerReader for ResponseAnswer {
    /// Events are numbered, so none is like the one before: there is nothing to compare.
    fn event<'a>(&mut self, name: &str, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str> {
        // What follows the end is another response.
        if self.ended.is_some() || self.meta.error.is_some() {
            return None;
        }
        let mut event = Event::default();
        for (key, value) in data.entries() {
            match inside(key).unwrap_or_default() {
                "type" => event.kind = value.as_text(),
                "response" => event.response = Some(value),
                "item" => event.item = Some(value),
                "item_id" => event.item_id = value.as_text(),
                "output_index" => event.index = value.as_u64(),
                "content_index" | "summary_index" => event.entry = value.as_u64().unwrap_or(0),
                "delta" | "text" | "refusal" | "arguments" | "input" | "part" | "annotation" => {
                    event.value = Some(value)
                }
                "error" => event.error = Some(value).filter(|value| !value.is_null()),
                _ => {}
            }
        }
        let kind = event.kind.clone();
        let kind = kind.as_deref().unwrap_or(name);
        let kind = kind.strip_prefix("response.").unwrap_or(kind);
        event.refusal = kind.starts_with("refusal");
        let summary = kind.starts_with("reasoning_summary");
        match kind {
            "output_item.added" => {
                if let Some(item) = event.item.filter(|item| item.is_object()) {
                    let at = self.place(&event, true, item);
                    self.read_item(at, item, ItemStage::Added, out);
                }
            }
            "output_item.done" => {
                if let Some(item) = event.item.filter(|item| item.is_object()) {
                    let at = self.place(&event, false, item);
                    self.read_item(at, item, ItemStage::Complete, out);
                }
            }
            "content_part.added"
            | "content_part.done"
            | "reasoning_summary_part.added"
            | "reasoning_summary_part.done" => {
                self.entry(&event, summary, None, out);
            }
            "output_text.delta" | "refusal.delta" | "reasoning_text.delta" | "reasoning_summary_text.delta" => {
                self.entry(&event, summary, Some(true), out);
            }
            "output_text.done" | "refusal.done" | "reasoning_text.done" | "reasoning_summary_text.done" => {
                self.entry(&event, summary, Some(false), out);
            }
            "output_text.annotation.added" => {
                if let (Some(item), Some(note)) = (self.item(&event), event.value) {
                    item.annotate(event.entry, note);
                }
            }
            "function_call_arguments.delta" | "custom_tool_call_input.delta" => self.arguments(&event, true, out),
            "function_call_arguments.done" | "custom_tool_call_input.done" => self.arguments(&event, false, out),
            "created" | "in_progress" | "queued" => self.head(event.response.unwrap_or(data)),
            "completed" | "done" => self.end(event.response.unwrap_or(data), "completed", out),
            "incomplete" | "failed" | "cancelled" => {
                self.end(event.response.unwrap_or(data), kind, out);
            }
            "error" => self.meta.report_error_object(event.error.unwrap_or(data), out),
            // A gateway that sends the whole response as one event.
            "" if data.get("output").is_some_and(|output| output.kind() == Kind::Array) => {
                self.end(data, "completed", out);
            }
            "" => self.meta.report_error_object(event.error.unwrap_or_default(), out),
            _ => {}
        }
        None
    }

    fn again(&mut self, _fragment: &str, _out: &mut Vec<StreamEvent>) {}

    fn whole(&mut self, body: JsonRef<'_>) {
        let out = &mut Vec::new();
        let error = body.find("error");
        if body.get("output").is_some_and(|output| output.kind() == Kind::Array) {
            self.end(body, if error.is_some() { "failed" } else { "completed" }, out);
        } else {
            self.meta.report_error_object(error.unwrap_or(body), out);
            if error.is_none() && body.get("message").is_none() && body.get("detail").is_none()
                || self.meta.error.is_none()
            {
                self.meta.error = Some(malformed("the response has no output"));
            }
        }
    }

    fn meta(&mut self) -> &mut ResponseMeta {
        &mut self.meta
    }

    fn assemble(&self, stopped: bool) -> Assembled {
        let status = self.status(stopped);
        let complete = status == AnswerStatus::Complete;
        let (mut text, mut calls) = (String::new(), Vec::new());
        let whole = self.whole_pairs();
        for (item, whole) in self.items.iter().zip(&whole) {
            item.texts().for_each(|own| text.push_str(own));
            // What has its output already was run where the model runs.
            if let Some((_, call)) = item.assemble(complete && !whole) {
                calls.push(call);
            }
        }
        self.meta.assembled(status, &text, calls, self.wire(complete, &whole))
    }
}

impl ResponseAnswer {
    fn head(&mut self, response: JsonRef<'_>) {
        self.meta.set_id_and_model(response, "id", "model");
        self.unstored |= response.get("store").and_then(JsonRef::as_bool) == Some(false);
    }

    /// The response as it is at the end. `kind` is what the event says, where the response does not.
    fn end(&mut self, response: JsonRef<'_>, kind: &str, out: &mut Vec<StreamEvent>) {
        self.head(response);
        let output = response.get("output").filter(|output| output.kind() == Kind::Array);
        let mut items = Vec::new();
        for item in output.unwrap_or_default().items().filter(|item| item.is_object()) {
            items.push(item);
        }
        let fits = items.len() >= self.items.len()
            && self.items.iter().zip(&items).all(|(own, item)| item.text("type").is_some_and(|kind| own.is_a(&kind)));
        let status = response.text("status");
        let status = status.as_deref().unwrap_or(kind);
        let complete = status == "completed";
        if fits {
            for (at, item) in items.into_iter().enumerate() {
                if at == self.items.len() {
                    self.open(None, item);
                }
                let whole = complete || item.text("status").is_none_or(|status| status == "completed");
                self.read_item(at, item, if whole { ItemStage::Complete } else { ItemStage::Partial }, out);
            }
        }
        if complete {
            // Whoever left out the end of an item has said it now.
            self.items.iter_mut().for_each(|item| item.close(out));
        }
        if let Some(usage) = response.get("usage").and_then(read_usage) {
            self.meta.usage = Some(usage);
            out.push(StreamEvent::Usage(usage));
        }
        let why = response.find("incomplete_details").and_then(|details| non_empty_text(details.get("reason")));
        self.ended = match status {
            "completed" => Some(AnswerStatus::Complete),
            "incomplete" if why.as_deref() == Some("content_filter") => Some(AnswerStatus::Blocked),
            "incomplete" => Some(AnswerStatus::Incomplete),
            "failed" | "cancelled" => {
                let words = response.find("error").and_then(read_error);
                let error = words.unwrap_or_else(|| {
                    let message = "the provider ended the response with the status ".to_owned() + status;
                    WireError { code: Some(status.to_owned()), message }
                });
                self.meta.report_error(error, out);
                Some(AnswerStatus::Failed)
            }
            // One that runs in the background, and is not there yet.
            _ => None,
        };
        self.meta.finish_reason = Some(why.map_or_else(|| status.to_owned(), Cow::into_owned));
    }

    /// The item that an event is about, by its index: some servers change the ids from event to event.
    fn find(&self, event: &Event<'_>) -> Option<usize> {
        match (event.index, &event.item_id) {
            (Some(index), _) => self.positions.with_index(index),
            (None, Some(id)) => self.positions.with_id(id),
            (None, None) => self.items.len().checked_sub(1),
        }
    }

    fn item(&mut self, event: &Event<'_>) -> Option<&mut Item> {
        let at = self.find(event)?;
        self.items.get_mut(at)
    }

    /// The place of an item that is told as a whole, opened if it is a new one.
    fn place(&mut self, event: &Event<'_>, begins: bool, item: JsonRef<'_>) -> usize {
        let known = match (event.index, non_empty_text(item.get("id"))) {
            (Some(_), _) => self.find(event),
            (None, Some(id)) => self.positions.with_id(&id),
            // Without either, what ends is what began last.
            (None, None) => self.open.last().copied().filter(|_| !begins),
        };
        let same =
            |at: &usize| self.items.get(*at).is_some_and(|own| item.text("type").is_some_and(|kind| own.is_a(&kind)));
        match known.filter(same) {
            Some(at) => at,
            None => self.open(event.index, item),
        }
    }

    fn open(&mut self, index: Option<u64>, item: JsonRef<'_>) -> usize {
        let (item, at) = (Item::new(item, self.calls), self.items.len());
        self.calls += u32::from(matches!(item.is, Is::Call { .. }));
        if let Some(index) = index {
            self.positions.record_index(index, at);
        }
        self.positions.record_id(&item.id(), at);
        self.open.insert(at);
        self.items.push(item);
        at
    }

    fn read_item(&mut self, at: usize, item: JsonRef<'_>, stage: ItemStage, out: &mut Vec<StreamEvent>) {
        let Some(own) = self.items.get_mut(at) else { return };
        own.read(item, stage, out);
        self.positions.record_id(&own.id(), at);
        if own.done {
            self.open.remove(&at);
        }
    }

    /// The entry of an item's list: the entry itself, or more (`Some(true)`) or all (`Some(false)`) of its text. Of an
    /// item that nobody announced, the words count.
    fn entry(&mut self, event: &Event<'_>, summary: bool, text: Option<bool>, out: &mut Vec<StreamEvent>) {
        let Some(value) = event.value else { return };
        let at = match self.find(event) {
            Some(at) => at,
            None => {
                let id = event.item_id.as_deref().unwrap_or_default();
                let item = item::announced(if summary { "reasoning" } else { "message" }, id);
                self.open(event.index, item.view())
            }
        };
        let Some(item) = self.items.get_mut(at) else { return };
        match (text, inside(value)) {
            (None, _) if value.is_object() => item.read_entry(summary, event.entry, value, out),
            (Some(more), Some(text)) => {
                item.update_text(
                    summary,
                    event.entry,
                    TextUpdate { text, is_delta: more, refusal: event.refusal },
                    out,
                );
            }
            _ => {}
        }
    }

    fn arguments(&mut self, event: &Event<'_>, more: bool, out: &mut Vec<StreamEvent>) {
        let text = event.value.and_then(inside);
        if let (Some(item), Some(text)) = (self.item(event), text) {
            item.argue(text, more, out);
        }
    }

    fn status(&self, stopped: bool) -> AnswerStatus {
        match self.ended {
            _ if self.meta.error.is_some() => AnswerStatus::Failed,
            _ if stopped => AnswerStatus::Truncated,
            None => AnswerStatus::Truncated,
            Some(AnswerStatus::Complete)
                if self.items.iter().any(Item::refuses) && !self.items.iter().any(Item::speaks) =>
            {
                AnswerStatus::Refused
            }
            Some(ended) => ended,
        }
    }

    /// Of each item, whether it is a call or an answer, and the other one is here too.
    fn whole_pairs(&self) -> Vec<bool> {
        let half = |item: &Item| item.pair().filter(|_| item.done).map(|(id, calls)| (id, if calls { 1 } else { 2 }));
        let mut halves: IdMap<usize> = IdMap::with_hasher(Seed::default());
        for (id, bit) in self.items.iter().filter_map(half) {
            *halves.get_or_insert(&id, 0) |= bit;
        }
        self.items.iter().map(|item| half(item).is_some_and(|(id, _)| halves.get(&id) == Some(&3))).collect()
    }

    fn wire(&self, complete: bool, whole: &[bool]) -> Option<Json> {
        // Reasoning that nobody keeps and that does not hold itself is known by no id, nor is what belongs to it.
        let forgotten = self.unstored && self.items.iter().any(Item::is_bare_reasoning);
        let mut wire = String::new();
        let mut list = ArrayWriter::new(&mut wire);
        for (item, whole) in self.items.iter().zip(whole) {
            if item.goes(complete, *whole) {
                item.write(list.item(), forgotten);
            }
        }
        list.end();
        (wire.len() > 2).then(|| Json::trusted(wire))
    }
}
