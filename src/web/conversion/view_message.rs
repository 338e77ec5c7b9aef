//! A message of the view as a JavaScript object. When it changes, only what changed of it is made again: a text that
//! grows gets the piece that is new, and all other parts stay the same objects. So an answer that is read after each
//! piece costs what its pieces cost (R63).

use super::convert::{object_to_js, parse_json, set};
use super::untrusted_value::member;
use crate::history::{Alternatives, History, MessageFormat, MessageWriter};
use crate::id::hash_words;
use crate::json::{ArrayWriter, JsonStr};
use crate::message::{Message, Part, PartBody, Phase};
use crate::provider::{AnswerBlock, BlockBody};
use crate::run::IncomingAnswer;
use crate::tool::ToolInvocation;
use js_sys::{Array, JsString, Object};
use wasm_bindgen::{JsCast, JsValue};

/// A message of the last snapshot.
pub struct ViewMessage {
    pub id: String,
    pub value: JsValue,
    /// Changes with everything that may change about the message.
    version: u64,
    form: MessageForm,
    parts: Vec<PartState>,
}

/// What decides whether the parts of a message can be kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MessageForm {
    /// History contains the message.
    pub saved: bool,
    /// More of the message may come.
    pub streaming: bool,
}

/// What the last snapshot has of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PartState {
    /// Identifies the part in its message; parts are in the order of their keys.
    key: u64,
    /// Changes with everything but the end of a text.
    version: u64,
    /// The size of a text, as a JSON string token without quotes; 0 for other parts.
    text_bytes: usize,
}

/// Where the parts of a message come from.
#[derive(Clone, Copy)]
pub enum PartSource<'m> {
    /// The message has them.
    Message,
    /// The message has them, and is replaced by another one if `revision` changes.
    Answer { revision: u32 },
    /// The answer that is coming in.
    Incoming(&'m IncomingAnswer<'m>),
}

/// A message that is shown.
pub struct ShownMessage<'m> {
    pub message: &'m Message,
    pub source: PartSource<'m>,
    /// The history that has the calls of the message.
    pub history: &'m History,
    /// The session's id.
    pub session: &'m str,
    /// The id of the message before it.
    pub previous: Option<&'m str>,
    pub form: MessageForm,
    /// The messages in other branches of the session.
    pub alternatives: &'m Alternatives,
    /// The number of annotations of the message in history.
    pub annotations: u32,
}

/// A part that is shown.
enum ShownPart<'p> {
    Part(&'p Part),
    Block(AnswerBlock<'p>),
}

impl<'m> ShownMessage<'m> {
    /// Returns the message of the next snapshot. `old` is that of the last one.
    pub fn build(&self, old: Option<&ViewMessage>) -> ViewMessage {
        let version = self.version();
        let id = self.message.id.clone();
        if let Some(ViewMessage { value, parts, .. }) = old.filter(|old| old.version == version) {
            return ViewMessage { id, value: value.clone(), version, form: self.form, parts: parts.clone() };
        }
        let mut parts = Vec::new();
        self.visit_parts(&mut |state, _| parts.push(state));
        let value = match old.filter(|old| old.form == self.form) {
            Some(old) => self.changed(old, &parts),
            None => self.written(&|list| self.visit_parts(&mut |_, part| self.write_part(list, &part))),
        };
        ViewMessage { id, value, version, form: self.form, parts }
    }

    fn writer(&self) -> MessageWriter<'_> {
        let MessageForm { saved, streaming } = self.form;
        MessageWriter {
            history: self.history,
            session: self.session,
            format: MessageFormat::View { saved, streaming },
            alternatives: self.alternatives,
        }
    }

    fn written(&self, write_parts: &dyn Fn(&mut ArrayWriter<'_>)) -> JsValue {
        object_to_js(&|out| self.writer().write_with_parts(out, self.message, self.previous, write_parts))
    }

    fn write_part(&self, list: &mut ArrayWriter<'_>, part: &ShownPart<'_>) {
        list.object(|out| match part {
            ShownPart::Part(part) => self.writer().write_part(out, part, self.message.dialect),
            ShownPart::Block(block) => self.writer().write_part(out, &block.to_part(), self.message.dialect),
        });
    }

    /// Returns the object of a message that has changed, with the parts of the old one that have not.
    fn changed(&self, old: &ViewMessage, states: &[PartState]) -> JsValue {
        let value = self.written(&|_| {});
        let old_parts: Array = member(&old.value, "parts").unchecked_into();
        let keeps_places =
            old.parts.len() <= states.len() && old.parts.iter().zip(states).all(|(old, new)| old.key == new.key);
        let parts = if keeps_places { old_parts.slice(0, u32::MAX) } else { Array::new() };
        let (mut place, mut old_place) = (0_u32, 0_u32);
        let mut rest = old.parts.iter().peekable();
        self.visit_parts(&mut |state, part| {
            while rest.next_if(|old| old.key < state.key).is_some() {
                old_place += 1;
            }
            let before = rest.peek().filter(|old| old.key == state.key);
            match before {
                Some(before) if **before == state => {
                    if !keeps_places {
                        parts.set(place, old_parts.get(old_place));
                    }
                }
                Some(before) if self.form.streaming && before.is_start_of(&state) => {
                    let more = part.text().and_then(|text| text.get(before.text_bytes..)).unwrap_or_default();
                    parts.set(place, grown(&old_parts.get(old_place), more));
                }
                _ => {
                    let mut text = String::new();
                    let mut list = ArrayWriter::new(&mut text);
                    self.write_part(&mut list, &part);
                    list.end();
                    parts.set(place, parse_json(&text).unchecked_into::<Array>().get(0));
                }
            }
            place += 1;
        });
        set(&value, "parts", &parts);
        value
    }

    fn visit_parts(&self, visit: &mut dyn FnMut(PartState, ShownPart<'_>)) {
        let revision = match self.source {
            PartSource::Incoming(answer) => {
                return answer.visit_blocks(&mut |block| visit(block_state(&block), ShownPart::Block(block)));
            }
            PartSource::Answer { revision } => revision,
            PartSource::Message => 0,
        };
        for (key, part) in (0..).zip(&self.message.parts) {
            visit(self.part_state(key, part, revision), ShownPart::Part(part));
        }
    }

    fn part_state(&self, key: u64, part: &Part, revision: u32) -> PartState {
        let (kind, text) = match &part.body {
            PartBody::Text(text) => (TEXT, text.inside()),
            PartBody::Reasoning(text) => (REASONING, text.inside()),
            PartBody::Refusal(text) => (REFUSAL, text.inside()),
            PartBody::ToolCall { invocation, .. } => {
                let call = self.history.invocation(invocation);
                let state = call.map_or(0, |call| call_version(OTHER.into(), self.history, call));
                return PartState { key, version: state, text_bytes: 0 };
            }
            PartBody::Image(_) | PartBody::File(_) | PartBody::Data { .. } | PartBody::Opaque(_) => (OTHER, ""),
        };
        PartState { key, version: text_version(kind, part.phase, revision), text_bytes: text.len() }
    }

    /// Returns a hash of everything that may change about the message: its status, its calls, its metadata and, while
    /// it is not saved, its parts.
    fn version(&self) -> u64 {
        let MessageForm { saved, streaming } = self.form;
        let mut sum = hash_words(u64::from(saved) + 2 * u64::from(streaming), self.previous.unwrap_or("").as_bytes());
        sum = hash_words(sum ^ u64::from(self.annotations), &[self.message.status as u8]);
        if !saved {
            self.visit_parts(&mut |PartState { key, version, text_bytes }, _| {
                sum = hash_words(sum ^ key.rotate_left(32) ^ version, &text_bytes.to_le_bytes());
            });
            return sum;
        }
        self.history.calls_of(self.message).fold(sum, |sum, call| call_version(sum, self.history, call))
    }
}

impl ShownPart<'_> {
    /// Returns a text, as a JSON string token without quotes.
    fn text(&self) -> Option<&str> {
        match self {
            Self::Block(block) => block.text(),
            Self::Part(Part { body, .. }) => match body {
                PartBody::Text(text) | PartBody::Reasoning(text) | PartBody::Refusal(text) => Some(text.inside()),
                _ => None,
            },
        }
    }
}

impl PartState {
    /// Returns true if the text of `later` begins with that of this state.
    fn is_start_of(&self, later: &Self) -> bool {
        self.version == later.version && self.text_bytes < later.text_bytes
    }
}

const OTHER: u8 = 0;
const TEXT: u8 = 1;
const REASONING: u8 = 2;
const REFUSAL: u8 = 3;

fn block_state(block: &AnswerBlock<'_>) -> PartState {
    let kind = match block.body {
        BlockBody::Text(_) => TEXT,
        BlockBody::Reasoning(_) => REASONING,
        BlockBody::Refusal(_) => REFUSAL,
        BlockBody::Other(_) => OTHER,
    };
    let text_bytes = block.text().map_or(0, str::len);
    PartState { key: block.key, version: text_version(kind, block.phase, block.revision), text_bytes }
}

fn text_version(kind: u8, phase: Option<Phase>, revision: u32) -> u64 {
    hash_words(revision.into(), &[kind, phase.map_or(0, |phase| 1 + phase as u8)])
}

/// Returns a hash of what may change about a call.
fn call_version(sum: u64, history: &History, call: &ToolInvocation) -> u64 {
    let flags = [
        call.status as u8,
        u8::from(call.result.is_some()),
        u8::from(history.awaits_approval(&call.id)),
        u8::from(call.is_deferred),
    ];
    let sum = hash_words(sum ^ call.started_at.unwrap_or(0), &flags);
    // A result may be replaced by a shorter one (R8).
    hash_words(sum, &call.result.as_ref().map_or(0, |result| result.content.as_str().len()).to_le_bytes())
}

/// Returns a copy of a part whose text is longer by `more`. JavaScript joins strings without copying them.
fn grown(part: &JsValue, more: &str) -> JsValue {
    let more = parse_json(JsonStr::from_inside(more).token());
    let text: JsString = member(part, "text").unchecked_into();
    let copy = Object::assign(&Object::new(), part.unchecked_ref());
    set(&copy, "text", &text.concat(&more));
    copy.into()
}
