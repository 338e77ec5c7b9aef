//! System messages outside of the list: `"system_instruction":"Be brief."`.

use super::content::CONTENT;
use super::decode;
use crate::finding::Report;
use crate::json::{Json, JsonStr};
use crate::message::{Message, Role};
use crate::provider::neutral::{MessageText, is_system_text};
use crate::provider::spec::SystemMember;

/// The member. The service does not keep it: each request of a conversation has it.
pub(super) const SYSTEM_INSTRUCTION: &str = "system_instruction";

/// No step is of the system, so every system message is there.
pub(super) const SYSTEM: SystemMember = SystemMember {
    name: SYSTEM_INSTRUCTION,
    holds: |message, _| matches!(message.role, Role::System | Role::Developer),
    encode,
    decode: decode::decode_system,
};

fn encode(messages: &[&Message], report: &mut Report) -> Option<Json> {
    let mut inside = String::new();
    for message in messages {
        for part in &message.parts {
            is_system_text(part, message, report);
        }
        // What this drops is reported.
        let text = MessageText::of(message, &CONTENT, &mut Report::new()).joined();
        if !inside.is_empty() && !text.is_empty() {
            inside.push_str("\\n\\n");
        }
        inside.push_str(text.inside());
    }
    (!inside.is_empty()).then(|| JsonStr::from_inside(&inside).to_json())
}
