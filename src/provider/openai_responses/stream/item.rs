//! One item of a streamed answer's `output`.

use super::item_parts::{DeltaEvent, ItemPart, ItemParts, TextUpdate};
use crate::json::{Json, JsonRef, JsonStr, ObjectWriter};
use crate::message::{PartBody, Phase};
use crate::provider::openai_responses::kinds::{CallKind, id_name, pair_of};
use crate::provider::stream::{
    AnswerBlock, AssembledCall, BlockBody, StreamEvent, StreamedFields, StreamedValue, StringBuffer, inside,
};

/// What the assembler does with an output item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputKind {
    Message,
    Reasoning,
    /// A call of a function or of a custom tool.
    Call {
        /// Its number among the calls of the answer.
        index: u32,
        /// A custom tool's input is free text.
        custom: bool,
    },
    /// Kept as received.
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

/// The lists of parts that an item may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartList {
    /// The `summary` of a reasoning item.
    Summary,
    /// The `content` of a message or a reasoning item.
    Content,
}

/// An output item while it is streamed.
pub(super) struct OutputItem {
    pub kind: OutputKind,
    /// The provider has sent the complete item.
    pub done: bool,
    fields: StreamedFields,
    summary: ItemParts,
    content: ItemParts,
    /// The lists are written from `summary` and `content`, because those in `fields` hold less.
    rebuilt: bool,
    arguments: StringBuffer,
    /// How often a text was replaced.
    revision: u32,
    /// `CallStarted` was emitted.
    started: bool,
    /// `CallReady` was emitted.
    ready: bool,
}

/// Returns an empty message, or an empty reasoning item, for a part that came without an `output_item.added` event.
pub(super) fn empty_item(kind: OutputKind, id: &str) -> Json {
    ObjectWriter::build(|item| {
        if !id.is_empty() {
            item.text("id", id);
        }
        match kind {
            OutputKind::Reasoning => item.text("type", "reasoning").raw("summary", "[]"),
            _ => item.text("type", "message").text("role", "assistant").raw("content", "[]"),
        };
    })
}

impl OutputItem {
    /// Opens an item. `call_index` is its number among the calls, if it is one.
    pub fn new(item: JsonRef<'_>, call_index: u32) -> Self {
        let kind = match item.text("type").as_deref() {
            Some("message") => OutputKind::Message,
            Some("reasoning") => OutputKind::Reasoning,
            Some("function_call") => OutputKind::Call { index: call_index, custom: false },
            Some("custom_tool_call") => OutputKind::Call { index: call_index, custom: true },
            _ => OutputKind::Other,
        };
        Self {
            kind,
            done: false,
            fields: StreamedFields::read(item),
            summary: ItemParts::default(),
            content: ItemParts::default(),
            rebuilt: true,
            arguments: StringBuffer::default(),
            revision: 0,
            started: false,
            ready: false,
        }
    }

    /// Returns true if the item has that `type`.
    pub fn has_type(&self, name: &str) -> bool {
        self.fields.decoded("type") == name
    }

    pub fn id(&self) -> String {
        self.fields.decoded("id")
    }

    pub fn is_call(&self) -> bool {
        matches!(self.kind, OutputKind::Call { .. })
    }

    /// The member that holds a call's arguments.
    fn arguments_name(&self) -> &'static str {
        if matches!(self.kind, OutputKind::Call { custom: true, .. }) { "input" } else { "arguments" }
    }

    /// Replaces the item by the one of an event.
    pub fn read(&mut self, item: JsonRef<'_>, stage: ItemStage, out: &mut Vec<StreamEvent>) {
        let was_done = self.done;
        self.revision += 1;
        let old = std::mem::replace(&mut self.fields, StreamedFields::read(item));
        if was_done {
            self.keep_encrypted_content(&old);
        }
        self.done |= stage == ItemStage::Complete;
        match self.kind {
            OutputKind::Call { .. } => {
                match item.find(self.arguments_name()).map(|value| (value, inside(value))) {
                    Some((_, Some(text))) if !text.is_empty() => self.arguments.set_final(text),
                    // Some servers send an object instead of a string.
                    Some((object, None)) => self.arguments.set_final(JsonStr::new(object.as_raw()).inside()),
                    _ => {}
                }
                self.emit_call(out);
                if stage == ItemStage::Complete {
                    self.emit_ready(out);
                }
            }
            OutputKind::Message | OutputKind::Reasoning => self.read_lists(item, stage, was_done, out),
            OutputKind::Other => {}
        }
    }

    /// The complete item has `encrypted_content`; the response at the end may omit it.
    fn keep_encrypted_content(&mut self, old: &StreamedFields) {
        let name = "encrypted_content";
        if let Some(own) = old.get(name).filter(|own| !own.is_vacant())
            && self.fields.get(name).is_none_or(StreamedValue::is_vacant)
        {
            let mut kept = String::new();
            own.write(&mut kept);
            self.fields.put(name, StreamedValue::Raw(kept));
        }
    }

    fn read_lists(&mut self, item: JsonRef<'_>, stage: ItemStage, was_done: bool, out: &mut Vec<StreamEvent>) {
        let delta = self.delta_event();
        let mut kept_text = false;
        for (name, parts) in [("summary", &mut self.summary), ("content", &mut self.content)] {
            let list = item.get(name).unwrap_or_default();
            if stage == ItemStage::Added {
                (0..).zip(list.items()).for_each(|(index, part)| parts.read(index, part, delta, out));
            } else {
                kept_text |= parts.replace_all(list, was_done, delta, out);
            }
        }
        self.rebuilt = stage != ItemStage::Complete || kept_text;
    }

    /// Marks the item as complete, because the whole response is.
    pub fn close(&mut self, out: &mut Vec<StreamEvent>) {
        self.done = true;
        if self.is_call() {
            self.emit_ready(out);
        }
    }

    /// Replaces a part of a list by the one of an event.
    pub fn read_part(&mut self, list: PartList, index: u64, part: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        let delta = self.delta_event();
        self.revision += 1;
        self.list(list).read(index, part, delta, out);
    }

    fn delta_event(&self) -> DeltaEvent {
        match self.kind {
            OutputKind::Message => Some(StreamEvent::TextDelta),
            OutputKind::Reasoning => Some(StreamEvent::ReasoningDelta),
            OutputKind::Call { .. } | OutputKind::Other => None,
        }
    }

    fn list(&mut self, list: PartList) -> &mut ItemParts {
        match list {
            PartList::Summary => &mut self.summary,
            PartList::Content => &mut self.content,
        }
    }

    /// Returns the `type` of a part that no event announced.
    pub fn default_part_type(&self, list: PartList, refusal: bool) -> &'static str {
        match (self.kind, list) {
            (OutputKind::Reasoning, PartList::Summary) => "summary_text",
            (OutputKind::Reasoning, PartList::Content) => "reasoning_text",
            _ if refusal => "refusal",
            _ => "output_text",
        }
    }

    /// Appends to or replaces a part's text.
    pub fn update_text(&mut self, list: PartList, update: TextUpdate<'_>, out: &mut Vec<StreamEvent>) {
        let delta = self.delta_event();
        self.revision += u32::from(!update.is_delta);
        self.list(list).update_text(update, delta, out);
    }

    /// Adds an annotation to a part's text.
    pub fn annotate(&mut self, index: u64, annotation: JsonRef<'_>) {
        let kind = self.default_part_type(PartList::Content, false);
        self.content.annotate(index, kind, annotation);
    }

    /// Appends to a call's arguments.
    pub fn append_arguments(&mut self, text: &str, out: &mut Vec<StreamEvent>) {
        if self.is_call() {
            self.arguments.append(text);
            self.emit_call(out);
        }
    }

    /// Replaces a call's arguments by the whole text. An empty one is ignored.
    pub fn replace_arguments(&mut self, text: &str, out: &mut Vec<StreamEvent>) {
        if self.is_call() {
            if !text.is_empty() {
                self.arguments.set_final(text);
            }
            self.emit_call(out);
        }
    }

    /// Emits `CallStarted` once the name is known, then the arguments that were not emitted yet.
    fn emit_call(&mut self, out: &mut Vec<StreamEvent>) {
        let OutputKind::Call { index, .. } = self.kind else { return };
        let (call_id, name) = (self.fields.decoded("call_id"), self.fields.decoded("name"));
        if name.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.started, true) {
            out.push(StreamEvent::CallStarted { index, call_id: call_id.clone(), name });
        }
        self.arguments.emit_arguments(index, &call_id, out);
    }

    fn emit_ready(&mut self, out: &mut Vec<StreamEvent>) {
        if !std::mem::replace(&mut self.ready, true)
            && let Some((index, call)) = self.assemble(false)
        {
            out.push(StreamEvent::CallReady { index, call });
        }
    }

    /// Visits what an application sees of the item. `first` is the key of its first block.
    pub fn visit(&self, first: u64, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        let block = |key, body| AnswerBlock { revision: self.revision, ..AnswerBlock::new(first + key, body) };
        match self.kind {
            OutputKind::Message => {
                let phase = self.fields.text("phase").and_then(|name| Phase::from_name(name.inside()));
                for (key, part) in (0..).zip(self.content.iter()).filter(|(_, part)| !part.text().is_empty()) {
                    let body =
                        if part.is_refusal() { BlockBody::Refusal(part.text()) } else { BlockBody::Text(part.text()) };
                    visit(AnswerBlock { phase, ..block(key, body) });
                }
            }
            OutputKind::Reasoning => {
                let list = if self.summary.is_empty() { &self.content } else { &self.summary };
                if list.is_empty() && self.done {
                    visit(block(0, BlockBody::Reasoning("")));
                }
                for (key, part) in (0..).zip(list.iter()) {
                    visit(block(key, BlockBody::Reasoning(part.text())));
                }
            }
            OutputKind::Other if self.done && !self.is_result() => {
                let decode = || {
                    let mut wire = String::new();
                    self.write(&mut wire, false);
                    PartBody::Opaque(Json::trusted(wire))
                };
                visit(block(0, BlockBody::Other(&decode)));
            }
            OutputKind::Call { .. } | OutputKind::Other => {}
        }
    }

    /// Returns the texts of a message, without refusals.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = self.content.iter().filter(|part| self.kind == OutputKind::Message && !part.is_refusal());
        texts.map(ItemPart::text)
    }

    /// Returns true for a call and for a message with text that is no refusal.
    pub fn has_answer(&self) -> bool {
        match self.kind {
            OutputKind::Message => self.texts().any(|text| !text.is_empty()),
            OutputKind::Call { .. } => true,
            OutputKind::Reasoning | OutputKind::Other => false,
        }
    }

    pub fn has_refusal(&self) -> bool {
        self.kind == OutputKind::Message && self.content.iter().any(|part| part.is_refusal() && !part.text().is_empty())
    }

    /// Returns true for reasoning without text and without `encrypted_content`: only a server that stored it can read
    /// it.
    pub fn is_bare_reasoning(&self) -> bool {
        self.kind == OutputKind::Reasoning
            && self.fields.get("encrypted_content").is_none_or(StreamedValue::is_vacant)
            && self.content.is_empty()
    }

    /// Returns a call with its index. It is executable if the answer is `complete`, the call too, and it has a name.
    pub fn assemble(&self, complete: bool) -> Option<(u32, AssembledCall)> {
        let OutputKind::Call { index, custom } = self.kind else { return None };
        let name = self.fields.decoded("name");
        let executable = complete && self.done && !name.is_empty();
        let arguments = if self.arguments.is_empty() && !custom && executable {
            JsonStr::new("{}")
        } else {
            self.arguments.to_str()
        };
        Some((index, AssembledCall { call_id: self.fields.decoded("call_id"), name, arguments, executable }))
    }

    /// Returns the id by which a call and its output pair, and true if the item is the call; none if it is neither.
    pub fn pair(&self) -> Option<(String, bool)> {
        let item_type = self.fields.decoded("type");
        let (call_type, is_call) = pair_of(&item_type)?;
        Some((self.fields.decoded(id_name(call_type, is_call)), is_call)).filter(|(id, _)| !id.is_empty())
    }

    /// Returns true for the output of a function or of a custom tool, which becomes the result of its call.
    fn is_result(&self) -> bool {
        CallKind::of_output(&self.fields.decoded("type")).is_some_and(|kind| !kind.is_hosted())
    }

    /// Returns true if the item is part of the next request. `complete`: the answer is. `has_counterpart`: the answer
    /// holds both the call and its output. One without the other is omitted from an incomplete answer, since nobody
    /// will add it.
    pub fn is_sent(&self, complete: bool, has_counterpart: bool) -> bool {
        match self.kind {
            OutputKind::Message => self.summary.iter().chain(self.content.iter()).any(|part| !part.text().is_empty()),
            OutputKind::Call { .. } => {
                has_counterpart || self.assemble(complete).is_some_and(|(_, call)| call.executable)
            }
            OutputKind::Reasoning | OutputKind::Other => {
                self.done && (complete || has_counterpart || self.pair().is_none())
            }
        }
    }

    /// Appends the item to `out`. `without_id`: the provider does not know it by its id.
    pub fn write(&self, out: &mut String, without_id: bool) {
        let mut object = ObjectWriter::new(out);
        let mut lists = [("summary", &self.summary, self.rebuilt), ("content", &self.content, self.rebuilt)];
        let arguments = self.is_call().then(|| self.arguments_name());
        for (key, value) in self.fields.entries() {
            let key = key.as_str();
            match lists.iter_mut().find(|(name, _, pending)| *name == key && *pending) {
                Some((_, parts, pending)) => {
                    *pending = false;
                    match self.kind {
                        // Of an unknown type, a list is returned as received.
                        OutputKind::Other => value.write(object.key_inside(key)),
                        _ => parts.write(&mut object, key),
                    }
                }
                None if key == "id" && without_id && self.kind != OutputKind::Other => {}
                None if Some(key) == arguments => self.write_arguments(&mut object, key),
                None if key == "status" && !self.done => _ = object.text(key, "incomplete"),
                None => value.write(object.key_inside(key)),
            }
        }
        for (name, parts, _) in lists.into_iter().filter(|(_, parts, pending)| *pending && !parts.is_empty()) {
            parts.write(&mut object, name);
        }
        object.end();
    }

    fn write_arguments(&self, object: &mut ObjectWriter<'_>, key: &str) {
        if key == "arguments" && self.arguments.is_empty() {
            object.text(key, "{}");
        } else {
            object.token(key, &self.arguments.to_str());
        }
    }
}
