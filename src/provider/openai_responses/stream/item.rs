//! One item of a streamed answer.

use crate::json::{Json, JsonRef, JsonStr, ObjectWriter};
use crate::provider::assembled::{AssembledCall, StreamEvent};
use crate::provider::assembler::{Fields, Growing, Value, inside};
use crate::provider::openai_responses::kinds::{id_name, pair_of};

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

/// An item as it grows.
pub(super) struct Item {
    pub index: Option<u64>,
    pub is: Is,
    /// The provider has said that it is whole.
    pub done: bool,
    fields: Fields,
    /// The entries of its lists, as far as they have come.
    entries: Vec<Entry>,
    /// The lists are written from the entries: what came as the item holds less.
    rebuilt: bool,
    arguments: Growing,
    started: bool,
    ready: bool,
}

/// An entry of a message's or reasoning's list.
struct Entry {
    /// Of the list `summary`; otherwise of `content`.
    summary: bool,
    index: u64,
    fields: Fields,
}

impl Entry {
    fn text_name(&self) -> &'static str {
        if self.fields.text("refusal").is_some() { "refusal" } else { "text" }
    }

    fn text(&self) -> &str {
        self.fields.text(self.text_name()).map(Growing::inside).unwrap_or_default()
    }

    fn text_mut(&mut self) -> Option<&mut Growing> {
        self.fields.text_mut(self.text_name())
    }

    fn is_refusal(&self) -> bool {
        self.text_name() == "refusal"
    }
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
    pub fn new(index: Option<u64>, item: JsonRef<'_>, place: u32) -> Self {
        let is = match item.text("type").as_deref() {
            Some("message") => Is::Message,
            Some("reasoning") => Is::Reasoning,
            Some("function_call") => Is::Call { place, custom: false },
            Some("custom_tool_call") => Is::Call { place, custom: true },
            _ => Is::Other,
        };
        Self {
            index,
            is,
            done: false,
            fields: Fields::read(item),
            entries: Vec::new(),
            rebuilt: true,
            arguments: Growing::default(),
            started: false,
            ready: false,
        }
    }

    pub fn is_a(&self, kind: &str) -> bool {
        self.fields.decoded("type") == kind
    }

    pub fn has_id(&self, id: &str) -> bool {
        !id.is_empty() && self.fields.decoded("id") == id
    }

    fn arguments_name(&self) -> &'static str {
        if matches!(self.is, Is::Call { custom: true, .. }) { "input" } else { "arguments" }
    }

    /// Takes the item as it stands.
    pub fn read(&mut self, item: JsonRef<'_>, done: bool, out: &mut Vec<StreamEvent>) {
        let old = std::mem::replace(&mut self.fields, Fields::read(item));
        // What is there only when the item is done is not taken back by an end that leaves it out.
        if self.done
            && let Some(own) = old.get("encrypted_content").filter(|own| !own.says_nothing())
            && self.fields.get("encrypted_content").is_none_or(Value::says_nothing)
        {
            let mut kept = String::new();
            own.write(&mut kept);
            self.fields.put("encrypted_content", Value::Raw(kept));
        }
        self.done |= done;
        match self.is {
            Is::Call { .. } => {
                match item.find(self.arguments_name()).map(|value| (value, inside(value))) {
                    Some((_, Some(text))) if !text.is_empty() => self.arguments.settle(text),
                    // An object, where the wire asks for its text.
                    Some((object, None)) => self.arguments.settle(JsonStr::new(object.as_raw()).inside()),
                    _ => {}
                }
                self.tell_call(out);
                if done {
                    self.get_ready(out);
                }
            }
            Is::Message | Is::Reasoning => {
                let count = self.entries.len();
                let (mut found, mut kept) = (0, false);
                for (name, summary) in [("summary", true), ("content", false)] {
                    for (index, entry) in (0..).zip(item.get(name).unwrap_or_default().items()) {
                        found += 1;
                        kept |= self.read_entry(summary, index, entry, out);
                    }
                }
                self.rebuilt = !done || kept || found < count;
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

    /// Takes an entry of a list as it stands; gives whether it said less than is known, which takes nothing back.
    pub fn read_entry(&mut self, summary: bool, index: u64, entry: JsonRef<'_>, out: &mut Vec<StreamEvent>) -> bool {
        let mut fields = Fields::read(entry);
        let refusal = fields.text("refusal").is_some();
        let told = self.told_as();
        let Some(own) = self.entry(summary, index, refusal) else { return false };
        let mut kept = false;
        if let Some(text) = own.text_mut().map(std::mem::take) {
            let name = if refusal { "refusal" } else { "text" };
            if fields.text(name).is_none_or(Growing::is_empty) && !text.is_empty() {
                kept = true;
                fields.put(name, Value::Text(text));
            } else if let Some(new) = fields.text_mut(name) {
                let whole = std::mem::replace(new, text);
                new.settle(whole.inside());
            }
        }
        own.fields = fields;
        tell(own, told, out);
        kept
    }

    /// What its words are told as. Those of an item that nobody knows are no part of the answer.
    fn told_as(&self) -> Option<fn(JsonStr) -> StreamEvent> {
        match self.is {
            Is::Message => Some(StreamEvent::TextDelta),
            Is::Reasoning => Some(StreamEvent::ReasoningDelta),
            Is::Call { .. } | Is::Other => None,
        }
    }

    /// More of an entry's text, or all of it.
    pub fn say(&mut self, place: (bool, u64), refusal: bool, text: &str, more: bool, out: &mut Vec<StreamEvent>) {
        let told = self.told_as();
        let Some(own) = self.entry(place.0, place.1, refusal) else { return };
        match own.text_mut() {
            Some(own) if more => own.append(text),
            Some(own) => own.settle(text),
            None => {}
        }
        tell(own, told, out);
    }

    /// A note to an entry's text.
    pub fn annotate(&mut self, index: u64, note: JsonRef<'_>) {
        if let Some(entry) = self.entry(false, index, false) {
            entry.fields.push_item("annotations", note);
        }
    }

    /// The entry of that index, made if there is none.
    fn entry(&mut self, summary: bool, index: u64, refusal: bool) -> Option<&mut Entry> {
        let known = self.entries.iter().rposition(|entry| entry.summary == summary && entry.index == index);
        let at = known.unwrap_or_else(|| {
            let kind = match self.is {
                Is::Reasoning if summary => "\"summary_text\"",
                Is::Reasoning => "\"reasoning_text\"",
                _ if refusal => "\"refusal\"",
                _ => "\"output_text\"",
            };
            let mut fields = Fields::default();
            fields.put("type", Value::Raw(kind.to_owned()));
            fields.put(if refusal { "refusal" } else { "text" }, Value::Text(Growing::default()));
            self.entries.push(Entry { summary, index, fields });
            self.entries.len() - 1
        });
        self.entries.get_mut(at)
    }

    /// More of a call's arguments, or all of them.
    pub fn argue(&mut self, text: &str, more: bool, out: &mut Vec<StreamEvent>) {
        if !matches!(self.is, Is::Call { .. }) {
            return;
        }
        match more {
            true => self.arguments.append(text),
            false if text.is_empty() => {}
            false => self.arguments.settle(text),
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
        self.arguments.tell_arguments(index, &call_id, out);
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
        let entries = if self.is == Is::Message { self.entries.as_slice() } else { &[] };
        entries.iter().filter(|entry| !entry.is_refusal()).map(Entry::text)
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
        self.is == Is::Message && self.entries.iter().any(|entry| entry.is_refusal() && !entry.text().is_empty())
    }

    /// Reasoning that can be read by nobody but who keeps it.
    pub fn is_bare_reasoning(&self) -> bool {
        self.is == Is::Reasoning
            && self.fields.get("encrypted_content").is_none_or(Value::says_nothing)
            && !self.entries.iter().any(|entry| !entry.summary)
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
            Is::Message => self.entries.iter().any(|entry| !entry.text().is_empty()),
            Is::Call { .. } => whole || self.assemble(complete).is_some_and(|(_, call)| call.executable),
            Is::Reasoning | Is::Other => self.done && (complete || whole || self.pair().is_none()),
        }
    }

    /// Writes the item; without its id, if the provider does not know it.
    pub fn write(&self, out: &mut String, forgotten: bool) {
        let mut object = ObjectWriter::new(out);
        let mut lists = [("summary", true, self.rebuilt), ("content", false, self.rebuilt)];
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
                    self.write_list(&mut object, key, list.1);
                    list.2 = false;
                }
                _ => value.write(object.key_inside(key)),
            }
        }
        for (name, summary, _) in lists.into_iter().filter(|(_, _, rebuilt)| *rebuilt) {
            if self.entries.iter().any(|entry| entry.summary == summary) {
                self.write_list(&mut object, name, summary);
            }
        }
        object.end();
    }

    fn write_list(&self, object: &mut ObjectWriter<'_>, name: &str, summary: bool) {
        object.array(name, |list| {
            for entry in self.entries.iter().filter(|entry| entry.summary == summary && !entry.text().is_empty()) {
                list.object(|object| entry.fields.write(object));
            }
        });
    }
}

fn tell(entry: &mut Entry, told: Option<fn(JsonStr) -> StreamEvent>, out: &mut Vec<StreamEvent>) {
    if entry.is_refusal() {
        return;
    }
    let news = entry.text_mut().and_then(Growing::news);
    if let (Some(told), Some(news)) = (told, news) {
        out.push(told(news));
    }
}
