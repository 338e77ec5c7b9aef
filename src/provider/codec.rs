//! One door to the dialects: which one decodes, encodes, names a call.

use super::settings::Settings;
use super::{anthropic, openai_chat};
use crate::error::{Error, Result};
use crate::finding::Report;
use crate::history::{Incoming, IncomingMessage};
use crate::id::short_name;
use crate::json::{JsonRef, Kind};
use crate::message::{Dialect, Message, Part, Role};
use crate::replay::DraftMessage;
use crate::tool::ToolInvocation;
use std::borrow::Cow;

/// Where wire messages are written, with commas between them.
pub struct Wire<'o> {
    out: &'o mut String,
    count: u32,
}

impl<'o> Wire<'o> {
    /// Onto the end of `out`, which is empty or ends in a comma.
    pub fn new(out: &'o mut String) -> Self {
        Self { out, count: 0 }
    }

    /// Begins the next wire message.
    pub fn begin(&mut self) -> &mut String {
        if self.count > 0 {
            self.out.push(',');
        }
        self.count += 1;
        self.out
    }

    /// How many were begun.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// Refuses a dialect that this version has no codec for.
///
/// # Errors
/// `config_invalid`, naming those that it has.
pub fn supported(dialect: Dialect) -> Result<()> {
    match dialect {
        Dialect::OpenAiChat | Dialect::Anthropic => Ok(()),
        Dialect::OpenAiResponses | Dialect::Gemini | Dialect::Mistral => Err(Error::config(format!(
            "the dialect \"{}\" is not built yet; use \"openai-chat\" or \"anthropic\"",
            dialect.as_str()
        ))),
    }
}

/// Decodes a body, or a bare list of its messages.
///
/// # Errors
/// `invalid_input` when it is neither; `config_invalid` for a dialect without a codec.
pub fn decode_body(dialect: Dialect, body: JsonRef<'_>) -> Result<Vec<Incoming>> {
    supported(dialect)?;
    let list = if body.kind() == Kind::Array {
        Some(body)
    } else {
        body.get("messages").filter(|list| list.kind() == Kind::Array)
    };
    let Some(list) = list else {
        return Err(Error::invalid(format!(
            "a body of the dialect \"{}\" is an object with a list `messages`",
            dialect.as_str()
        )));
    };
    let mut items = Vec::new();
    match dialect {
        Dialect::Anthropic => {
            items.extend(body.find("system").and_then(anthropic::decode_system));
            for wire in list.items() {
                anthropic::decode_message(wire, &mut items);
            }
        }
        _ => items.extend(list.items().map(openai_chat::decode_message)),
    }
    Ok(items)
}

/// Decodes an assistant message of a dialect: what an assembler made.
#[must_use]
pub fn decode_answer(dialect: Dialect, wire: JsonRef<'_>) -> Option<IncomingMessage> {
    let mut items = Vec::new();
    match dialect {
        Dialect::Anthropic => anthropic::decode_message(wire, &mut items),
        _ => items.push(openai_chat::decode_message(wire)),
    }
    items.into_iter().find_map(|item| match item {
        Incoming::Message(message) if message.role == Role::Assistant => Some(message),
        _ => None,
    })
}

/// Decodes a block of a message's or a result's content.
#[must_use]
pub fn blocks_of(dialect: Dialect, content: JsonRef<'_>) -> Vec<Part> {
    match dialect {
        Dialect::Anthropic => content.items().map(anthropic::decode_block).collect(),
        _ => content.items().map(openai_chat::decode_block).collect(),
    }
}

/// Writes a draft message and the results of its calls. `before` is the message whose results stand in this one.
pub fn encode_message(
    dialect: Dialect,
    wire: &mut Wire<'_>,
    item: &DraftMessage<'_>,
    before: Option<&DraftMessage<'_>>,
    settings: &Settings,
    report: &mut Report,
) {
    match dialect {
        Dialect::Anthropic => anthropic::encode(wire, item, before, report),
        _ => openai_chat::encode(wire, item, settings, report),
    }
}

/// Whether a system message stands outside the list of messages: there `system_blocks` gives its blocks.
#[must_use]
pub fn stands_apart(dialect: Dialect, message: &Message, leading: bool) -> bool {
    dialect == Dialect::Anthropic
        && matches!(message.role, Role::System | Role::Developer)
        // Newer models take a system message in mid-history; one that came so stays so.
        && (leading || message.dialect != Some(Dialect::Anthropic))
}

/// The name by which a call goes out. A model may invent one that its own provider refuses to take back.
#[must_use]
pub fn tool_name(call: &ToolInvocation) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !call.name.is_empty() && call.name.len() <= 64 && call.name.chars().all(plain) {
        return Cow::Borrowed(&call.name);
    }
    let name: String = call.name.chars().take(64).map(|c| if plain(c) { c } else { '_' }).collect();
    if name.is_empty() { Cow::Borrowed("unnamed") } else { Cow::Owned(name) }
}

/// The id by which a call and its result go out: legal for the dialect, and the same text for the same call.
#[must_use]
pub fn call_id(dialect: Dialect, call: &ToolInvocation) -> Cow<'_, str> {
    let id = call.wire_id();
    if id.is_empty() {
        return Cow::Owned(format!("call_{}", short_name(&call.id, 20)));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let legal = match dialect {
        // `^[a-zA-Z0-9_-]+$`; long ids are taken, 64 is what every dialect takes.
        Dialect::Anthropic => id.chars().all(plain) && id.len() <= 64,
        Dialect::Mistral => id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()),
        Dialect::OpenAiChat | Dialect::OpenAiResponses => id.chars().count() <= openai_chat::MAX_CALL_ID,
        Dialect::Gemini => true,
    };
    if legal {
        return Cow::Borrowed(id);
    }
    if dialect == Dialect::Mistral {
        return Cow::Owned(short_name(id, 9));
    }
    let head: String = id.chars().take(40).map(|c| if plain(c) { c } else { '_' }).collect();
    Cow::Owned(format!("{head}_{}", short_name(id, 12)))
}
