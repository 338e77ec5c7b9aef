//! One item of a streamed answer.

use super::item_parts::{DeltaEvent, ItemPart, ItemParts, TextUpdate};
use crate::json::{Json, JsonRef, JsonStr, ObjectWriter};
use crate::provider::openai_responses::kinds::{id_name, pair_of};
use crate::provider::stream::{AssembledCall, StreamEvent};
use crate::provider::stream::{StreamedFields, StreamedValue, StringBuffer, inside};

/// What an item is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    Message,
    Reasoning,
    /// A call of a function or of a custom tool, and its place among the calls.
    Call {
        place: u32,
        custom: bool,
    },
    /// Kept as it came.
    Other,
}

/// How complete an item is when an event carries it as an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemStage {
    /// The item was opened; its parts follow.
    Added,
    /// The response was cut, so the item may lack parts or text.
    Partial,
    /// The item is complete.
    Complete,
}

/// An item as it grows.
pub(super) struct Item {
    pub is: Is,
    /// The provider has said that it is whole.
    pub done: bool,
    fields: StreamedFields,
    summary: ItemParts,
    content: ItemParts,
    /// The lists are written from the entries: what came as the item holds less.
    rebuilt: bool,
    arguments: StringBuffer,
    started: bool,
    ready: bool,
}

/// An item of which only words have come.
pub(super) fn announced(kind: &str, id: &str) -> Json {
    ObjectWriter::build(|item| {
        if !id.is_empty() {
            item.text("id", id);
        }
        item.text("type", kind);
        if kind == "message" {
            item.text("role", "assistant").raw("content", "[]");
        } else {
            item.raw("summary", "[]");
        }
    })
}

impl Item {
    pub fn new(item: JsonRef<'_>, place: u32) -> Self {
        let is = match item.text("type").as_deref() {
            Some("message") => Is::Message,
            Some("reasoning") => Is::Reasoning,
            Some("function_call") => Is::Call { place, custom: false },
            Some("custom_tool_call") => Is::Call { place, custom: true },
            _ => Is::Other,
        };
        Self {
            is,
            done: false,
            fields: StreamedFields::read(item),
            summary: ItemParts::default(),
            content: ItemParts::default(),
            rebuilt: true,
            arguments: StringBuffer::default(),
            started: false,
            ready: false,
        }
    }

    pub fn is_a(&self, kind: &str) -> bool {
        self.fields.decoded("type") == kind
    }

    pub fn id(&self) -> String {
        self.fields.decoded("id")
    }

    fn arguments_name(&self) -> &'static str {
        if matches!(self.is, Is::Call { custom: true, .. }) { "input" } else { "arguments" }
    }

    /// Takes the item as it stands.
    pub fn read(&mut self, item: JsonRef<'_>, stage: ItemStage, out: &mut Vec<StreamEvent>) {
        let (done, was_done) = (stage == ItemStage::Complete, self.done);
        let old = std::mem::replace(&mut self.fields, StreamedFields::read(item));
        // What is there only when the item is done is not taken back by an end that leaves it out.
        if self.done
            && let Some(own) = old.get("encrypted_content").filter(|own| !own.says_nothing())
            && self.fields.get("encrypted_content").is_none_or(StreamedValue::says_nothing)
        {
            let mut kept = String::new();
            own.write(&mut kept);
            self.fields.put("encrypted_content", StreamedValue::Raw(kept));
        }
        self.done |= done;
        match self.is {
            Is::Call { .. } => {
                match item.find(self.arguments_name()).map(|value| (value, inside(value))) {
                    Some((_, Some(text))) if !text.is_empty() => self.arguments.set_final(text),
                    // An object, where the wire asks for its text.
                    Some((object, None)) => self.arguments.set_final(JsonStr::new(object.as_raw()).inside()),
                    _ => {}
                }
                self.tell_call(out);
                if done {
                    self.get_ready(out);
                }
            }
            Is::Message | Is::Reasoning => {
                let delta = self.delta_event();
                let mut kept = false;
                for (name, entries) in [("summary", &mut self.summary), ("content", &mut self.content)] {
                    let list = item.get(name).unwrap_or_default();
                    if stage == ItemStage::Added {
                        (0..).zip(list.items()).for_each(|(index, entry)| entries.read(index, entry, delta, out));
                    } else {
                        kept |= entries.replace_all(list, was_done, delta, out);
                    }
                }
                self.rebuilt = !done || kept;
            }
            Is::Other => {}
        }
    }

    /// The response is whole, and so is the item.
    pub fn close(&mut self, out: &mut Vec<StreamEvent>) {
        self.done = true;
        if matches!(self.is, Is::Call { .. }) {
            self.get_ready(out);
        }
    }

    /// Takes an entry of a list as it stands.
    pub fn read_entry(&mut self, summary: bool, index: u64, entry: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let delta = self.delta_event();
        self.list(summary).read(index, entry, delta, out);
    }

    fn delta_event(&self) -> DeltaEvent {
        match self.is {
            Is::Message => Some(StreamEvent::TextDelta),
            Is::Reasoning => Some(StreamEvent::ReasoningDelta),
            Is::Call { .. } | Is::Other => None,
        }
    }

    fn list(&mut self, summary: bool) -> &mut ItemParts {
        if summary { &mut self.summary } else { &mut self.content }
    }

    /// The `type` of a part that no event announced.
    fn default_part_type(&self, summary: bool, refusal: bool) -> &'static str {
        match self.is {
            Is::Reasoning if summary => "summary_text",
            Is::Reasoning => "reasoning_text",
            _ if refusal => "refusal",
            _ => "output_text",
        }
    }

    /// Appends to or replaces a part's text.
    pub fn update_text(&mut self, summary: bool, index: u64, update: TextUpdate<'_>, out: &mut Vec<StreamEvent>) {
        let (kind, delta) = (self.default_part_type(summary, update.refusal), self.delta_event());
        self.list(summary).update_text(index, kind, update, delta, out);
    }

    /// Adds an annotation to a part's text.
    pub fn annotate(&mut self, index: u64, annotation: JsonRef<'_>) {
        let kind = self.default_part_type(false, false);
        self.content.annotate(index, kind, annotation);
    }

    /// More of a call's arguments, or all of them.
    pub fn argue(&mut self, text: &str, more: bool, out: &mut Vec<StreamEvent>) {
        if !matches!(self.is, Is::Call { .. }) {
            return;
        }
        match more {
            true => self.arguments.append(text),
            false if text.is_empty() => {}
            false => self.arguments.set_final(text),
        }
        self.tell_call(out);
    }

    fn tell_call(&mut self, out: &mut Vec<StreamEvent>) {
        let Is::Call { place: index, .. } = self.is else { return };
        let (call_id, name) = (self.fields.decoded("call_id"), self.fields.decoded("name"));
        if name.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.started, true) {
            out.push(StreamEvent::CallStarted { index, call_id: call_id.clone(), name });
        }
        self.arguments.emit_arguments(index, &call_id, out);
    }

    fn get_ready(&mut self, out: &mut Vec<StreamEvent>) {
        if !std::mem::replace(&mut self.ready, true)
            && let Some((index, call)) = self.assemble(false)
        {
            out.push(StreamEvent::CallReady { index, call });
        }
    }

    /// The texts of a message.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = self.content.iter().filter(|part| self.is == Is::Message && !part.is_refusal());
        texts.map(ItemPart::text)
    }

    /// Whether it says anything but a refusal.
    pub fn speaks(&self) -> bool {
        match self.is {
            Is::Message => self.texts().any(|text| !text.is_empty()),
            Is::Call { .. } => true,
            Is::Reasoning | Is::Other => false,
        }
    }

    pub fn refuses(&self) -> bool {
        self.is == Is::Message && self.content.iter().any(|entry| entry.is_refusal() && !entry.text().is_empty())
    }

    /// Reasoning that can be read by nobody but who keeps it.
    pub fn is_bare_reasoning(&self) -> bool {
        self.is == Is::Reasoning
            && self.fields.get("encrypted_content").is_none_or(StreamedValue::says_nothing)
            && self.content.is_empty()
    }

    /// The call, of an answer that is whole or not, with its place.
    pub fn assemble(&self, complete: bool) -> Option<(u32, AssembledCall)> {
        let Is::Call { place, custom } = self.is else { return None };
        let name = self.fields.decoded("name");
        let executable = complete && self.done && !name.is_empty();
        let arguments = if self.arguments.is_empty() && !custom && executable {
            JsonStr::new("{}")
        } else {
            self.arguments.to_str()
        };
        Some((place, AssembledCall { call_id: self.fields.decoded("call_id"), name, arguments, executable }))
    }

    /// Of a call that a client may answer, and of an answer: its id, and whether it is the call.
    pub fn pair(&self) -> Option<(String, bool)> {
        let kind = self.fields.decoded("type");
        let (label, calls) = pair_of(&kind)?;
        Some((self.fields.decoded(id_name(label, calls)), calls)).filter(|(id, _)| !id.is_empty())
    }

    /// Whether it belongs into the next request. Half a pair of a cut answer goes no further: nobody is to answer the call, and
    /// nobody asked for the answer. `whole`: its other half is here.
    pub fn goes(&self, complete: bool, whole: bool) -> bool {
        match self.is {
            Is::Message => self.summary.iter().chain(self.content.iter()).any(|entry| !entry.text().is_empty()),
            Is::Call { .. } => whole || self.assemble(complete).is_some_and(|(_, call)| call.executable),
            Is::Reasoning | Is::Other => self.done && (complete || whole || self.pair().is_none()),
        }
    }

    /// Writes the item; without its id, if the provider does not know it.
    pub fn write(&self, out: &mut String, forgotten: bool) {
        let mut object = ObjectWriter::new(out);
        let mut lists = [("summary", &self.summary, self.rebuilt), ("content", &self.content, self.rebuilt)];
        let arguments = matches!(self.is, Is::Call { .. }).then(|| self.arguments_name());
        for (key, value) in self.fields.entries() {
            if key == "id" && forgotten && self.is != Is::Other {
                continue;
            }
            let key = key.as_str();
            if Some(key) == arguments {
                match key {
                    "arguments" if self.arguments.is_empty() => object.text(key, "{}"),
                    _ => object.token(key, &self.arguments.to_str()),
                };
                continue;
            }
            if key == "status" && !self.done {
                object.text(key, "incomplete");
                continue;
            }
            match lists.iter_mut().find(|(name, _, rebuilt)| *name == key && *rebuilt) {
                Some(list) if self.is != Is::Other => {
                    list.1.write(&mut object, key);
                    list.2 = false;
                }
                _ => value.write(object.key_inside(key)),
            }
        }
        for (name, entries, _) in lists.into_iter().filter(|(_, entries, rebuilt)| *rebuilt && !entries.is_empty()) {
            entries.write(&mut object, name);
        }
        object.end();
    }
}
