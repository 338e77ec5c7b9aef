//! System messages outside of the list: `"instructions":"Be brief."`. No entry has a role for them.

use super::content::CONTENT;
use super::decode;
use crate::finding::Report;
use crate::json::{Json, JsonStr};
use crate::message::{Message, Role};
use crate::provider::neutral::{MessageText, is_system_text};
use crate::provider::spec::SystemMember;

pub(super) const INSTRUCTIONS: &str = "instructions";

pub(super) const SYSTEM: SystemMember = SystemMember {
    name: INSTRUCTIONS,
    holds: |message, _| matches!(message.role, Role::System | Role::Developer),
    encode,
    decode: |body| body.get(INSTRUCTIONS).and_then(decode::decode_instructions),
};

fn encode(messages: &[&Message], report: &mut Report) -> Option<Json> {
    let mut texts = Vec::new();
    for message in messages {
        for part in &message.parts {
            is_system_text(part, message, report);
        }
        // What this drops is reported.
        let text = MessageText::of(message, &CONTENT, &mut Report::new()).joined();
        texts.extend((!text.is_empty()).then_some(text));
    }
    (!texts.is_empty()).then(|| JsonStr::joined(&mut texts.iter(), "\\n\\n").to_json())
}
