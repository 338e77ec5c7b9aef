//! System messages outside of the list: `"instructions":"Be brief."`.

use super::content::CONTENT;
use super::decode;
use crate::finding::Report;
use crate::json::{Json, JsonStr};
use crate::message::{Message, Role};
use crate::provider::neutral::{MessageText, is_system_text};
use crate::provider::spec::SystemMember;

/// The member, which the provider binds reasoning to.
pub(super) const INSTRUCTIONS: &str = "instructions";

pub(super) const SYSTEM: SystemMember = SystemMember {
    name: INSTRUCTIONS,
    holds,
    encode,
    decode: |body| body.get(INSTRUCTIONS).and_then(decode::decode_instructions),
};

/// Messages that were decoded from `instructions`, and those that a render receives under that name, are sent as
/// `instructions`. Any other system message keeps its place: the endpoint accepts it there.
fn holds(message: &Message, _is_leading: bool) -> bool {
    matches!(message.role, Role::System | Role::Developer)
        && (message.id.is_empty() || decode::is_instructions(message))
}

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
