//! System messages outside of the list: `"system":"Be brief."` or `"system":[{"type":"text","text":"Be brief."}]`.

use super::{decode, encode};
use crate::finding::Report;
use crate::json::{Json, JsonRef, list_of};
use crate::message::{Dialect, Message, Role};
use crate::provider::spec::SystemMember;

pub(super) const SYSTEM: SystemMember = SystemMember {
    name: "system",
    holds,
    encode,
    decode: |body: JsonRef<'_>| body.find("system").and_then(decode::decode_system),
};

/// Newer Anthropic models accept system messages among the others, so those of Anthropic's own format keep their place.
fn holds(message: &Message, is_leading: bool) -> bool {
    matches!(message.role, Role::System | Role::Developer)
        && (is_leading && !message.parts.is_empty() || message.dialect != Some(Dialect::Anthropic))
}

fn encode(messages: &[&Message], report: &mut Report) -> Option<Json> {
    let blocks: Vec<String> = messages.iter().flat_map(|message| encode::system_blocks(message, report)).collect();
    match blocks.as_slice() {
        [] => None,
        // A single text block without further members is written as a string.
        [only] => {
            let block = Json::parse(only).ok()?;
            match (block.view().entries().count(), block.view().json_str("text")) {
                (2, Some(text)) => Some(text.to_json()),
                _ => Some(Json::trusted(list_of(&blocks))),
            }
        }
        blocks => Some(Json::trusted(list_of(blocks))),
    }
}
