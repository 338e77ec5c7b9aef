//! The open session's renderer: replay joined to a provider, with the encodings it keeps.
//!
//! A message is encoded once a dialect and kept; a body is a copy of what is kept, so that its cost
//! follows what is new. The kept bytes live in memory only and are rebuilt when a session is opened.

mod kept;

use crate::clock::Ms;
use crate::error::Result;
use crate::finding::{Action, Finding, Report};
use crate::history::History;
use crate::id::hash_words;
use crate::json::{Json, JsonStr, ObjectWriter};
use crate::message::{Dialect, Message, MessageStatus, Part, PartBody, Role, Source};
use crate::provider::{ProviderRequest, Settings, ToolDefinition, Wire, anthropic, encode_message, stands_apart};
use crate::replay::{Draft, DraftMessage, Origin, Policy, replay};
use kept::{Fragment, Kept};
use std::collections::BTreeMap;

/// What is asked of a render beside the history.
pub struct RenderRequest<'r> {
    /// Dialect, parameters, what the server wants otherwise.
    pub provider: &'r ProviderRequest,
    /// Goes first, as the dialect's system message.
    pub instructions: Option<&'r str>,
    /// Told to the model.
    pub tools: &'r [ToolDefinition],
    /// What may be shown.
    pub policy: &'r Policy,
}

/// A request's body, and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// UTF-8 JSON.
    pub body: Vec<u8>,
    /// Every drop, move, rename and synthesis.
    pub report: Report,
    /// How many leading messages are byte-identical to the last body of this dialect.
    pub stable_prefix: u32,
}

/// Keeps encodings, by dialect.
#[derive(Clone, Debug, Default)]
pub struct Renderer {
    dialects: BTreeMap<Dialect, Kept>,
    said_default: bool,
}

impl Renderer {
    /// Forgets what is kept: the history was replaced.
    pub fn clear(&mut self) {
        self.dialects.clear();
    }

    /// Builds the next body: `history` after the policy, then `live`.
    ///
    /// # Errors
    /// `config_invalid` from the request.
    pub fn render(&mut self, history: &History, live: Option<&History>, request: &RenderRequest<'_>, now: Ms) -> Result<Rendered> {
        let mut report = Report::new();
        let dialect = request.provider.dialect;
        let settings = request.provider.settings;
        let mut head = String::new();
        let mut object = ObjectWriter::new(&mut head);
        request.provider.write_head(&mut object, request.tools, &mut report)?;
        let draft = replay(history, live, request.policy, now, &mut report);
        let apart = set_apart(dialect, &draft, request.instructions, &mut report);
        if let Some(system) = &apart.system {
            object.json("system", system.view());
        }
        object.key("messages").push('[');

        let kept = self.dialects.entry(dialect).or_default();
        kept.prepare(settings.signature(), history.messages().len());
        let mut body = Body { head, fragments: Vec::with_capacity(draft.messages.len() + 1), fresh: String::new() };
        if let Some(instructions) = apart.instructions {
            body.push_fresh(dialect, &DraftMessage { message: &instructions, origin: Origin::Live(0), calls: Vec::new(), results_go_on: false }, None, &settings, &mut report);
        }
        let last = draft.messages.len().checked_sub(1);
        for (at, item) in draft.messages.iter().enumerate() {
            if apart.taken.get(at) == Some(&true) {
                continue;
            }
            let before = at.checked_sub(1).and_then(|at| draft.messages.get(at)).filter(|before| before.results_go_on);
            if Some(at) == last && let Some(trimmed) = trimmed_last(dialect, item) {
                report.push(Finding::info("empty_content", "white space at the end of a final assistant message is refused; it is cut off").of_message(&item.message.id).did(Action::Rewritten));
                body.push_fresh(dialect, &DraftMessage { message: &trimmed, ..item.clone() }, before, &settings, &mut report);
                continue;
            }
            match item.origin {
                Origin::Stored(index) => {
                    let signature = item.signature() ^ before.map_or(0, |before| before.signature().rotate_left(17));
                    let fragment = kept.fragment(index, signature, &mut report, |out, report| encode(dialect, out, item, before, &settings, report));
                    body.fragments.push((false, fragment));
                }
                Origin::Live(_) => body.push_fresh(dialect, item, before, &settings, &mut report),
            }
        }
        let stable_prefix = kept.stable_prefix(body.fragments.iter().map(|(_, fragment)| fragment));
        self.once_a_session(&mut report);
        let kept = self.dialects.entry(dialect).or_default();
        Ok(Rendered { body: body.assemble(kept), report, stable_prefix })
    }

    /// The warning of the built-in window comes once a session.
    fn once_a_session(&mut self, report: &mut Report) {
        let said = self.said_default;
        self.said_default |= report.iter().any(|finding| finding.code == "stale_default");
        if said {
            report.retain(|finding| finding.code != "stale_default");
        }
    }
}

fn encode(dialect: Dialect, out: &mut String, item: &DraftMessage<'_>, before: Option<&DraftMessage<'_>>, settings: &Settings, report: &mut Report) -> u32 {
    let mut wire = Wire::new(out);
    encode_message(dialect, &mut wire, item, before, settings, report);
    wire.count()
}

/// A body in the making: its head, and the fragments in their order, kept ones and fresh ones.
struct Body {
    head: String,
    fragments: Vec<(bool, Fragment)>,
    fresh: String,
}

impl Body {
    fn push_fresh(&mut self, dialect: Dialect, item: &DraftMessage<'_>, before: Option<&DraftMessage<'_>>, settings: &Settings, report: &mut Report) {
        let start = self.fresh.len();
        let count = encode(dialect, &mut self.fresh, item, before, settings, report);
        let bytes = self.fresh.as_bytes().get(start..).unwrap_or(&[]);
        let hash = hash_words(1, bytes);
        self.fragments.push((true, Fragment { start, end: self.fresh.len(), count, hash }));
    }

    fn assemble(self, kept: &Kept) -> Vec<u8> {
        let bytes_of = |(fresh, fragment): &(bool, Fragment)| {
            let from = if *fresh { self.fresh.as_str() } else { kept.text() };
            from.as_bytes().get(fragment.start..fragment.end).unwrap_or(&[])
        };
        let length: usize = self.fragments.iter().map(|(_, fragment)| fragment.end - fragment.start + 1).sum();
        let mut body = Vec::with_capacity(self.head.len() + length + 2);
        body.extend_from_slice(self.head.as_bytes());
        let mut first = true;
        for fragment in &self.fragments {
            let bytes = bytes_of(fragment);
            if bytes.is_empty() {
                continue;
            }
            if !first {
                body.push(b',');
            }
            first = false;
            body.extend_from_slice(bytes);
        }
        body.extend_from_slice(b"]}");
        body
    }
}

/// What stands outside the list of messages.
struct Apart {
    system: Option<Json>,
    /// Instructions, where they are a message of the list.
    instructions: Option<Message>,
    /// By draft index: which messages are in `system`.
    taken: Vec<bool>,
}

fn set_apart(dialect: Dialect, draft: &Draft<'_>, instructions: Option<&str>, report: &mut Report) -> Apart {
    let instructions = instructions.filter(|text| !text.is_empty()).map(|text| text_message(Role::System, text));
    if dialect != Dialect::Anthropic {
        return Apart { system: None, instructions, taken: Vec::new() };
    }
    let mut blocks: Vec<String> = instructions.iter().flat_map(anthropic::system_blocks).collect();
    let mut taken = vec![false; draft.messages.len()];
    let mut leading = true;
    for (at, item) in draft.messages.iter().enumerate() {
        let system = matches!(item.message.role, Role::System | Role::Developer);
        if stands_apart(dialect, item.message, leading) {
            if !leading {
                report.push(Finding::info("interposed_message", "Anthropic takes the system text apart from the messages; it is moved there").of_message(&item.message.id).did(Action::Moved));
            }
            blocks.extend(anthropic::system_blocks(item.message));
            if let Some(place) = taken.get_mut(at) {
                *place = true;
            }
        }
        leading &= system;
    }
    let system = match blocks.as_slice() {
        [] => None,
        // One plain text goes as a text.
        [only] => Json::parse(only).ok().map(|block| match (block.view().entries().count(), block.view().json_str("text")) {
            (2, Some(text)) => text.to_json(),
            _ => Json::trusted(format!("[{only}]")),
        }),
        blocks => Some(Json::trusted(format!("[{}]", blocks.join(",")))),
    };
    Apart { system, instructions: None, taken }
}

/// A message that is made for one body.
fn text_message(role: Role, text: &str) -> Message {
    Message {
        id: String::new(),
        seq: 0,
        turn: 0,
        role,
        parts: vec![Part::from(PartBody::Text(JsonStr::new(text)))],
        created_at: 0,
        source: Source::default(),
        run_id: None,
        status: MessageStatus::Complete,
        parent_id: None,
        metadata: None,
        answer: None,
        dialect: None,
        shape: None,
    }
}

/// The last message without the white space at its end, where Anthropic would refuse it.
fn trimmed_last(dialect: Dialect, item: &DraftMessage<'_>) -> Option<Message> {
    if dialect != Dialect::Anthropic || item.message.role != Role::Assistant || !item.calls.is_empty() {
        return None;
    }
    let at = item.message.parts.iter().rposition(|part| matches!(&part.body, PartBody::Text(text) if !text.is_empty()))?;
    let PartBody::Text(text) = &item.message.parts.get(at)?.body else { return None };
    let trimmed = anthropic::trimmed_end(text)?;
    let mut message = item.message.clone();
    message.parts.get_mut(at)?.body = PartBody::Text(trimmed);
    Some(message)
}

#[cfg(test)]
mod tests;
