//! System messages outside of the list: `"instructions":"Be brief."`.

use super::content::CONTENT;
use super::decode;
use crate::message::{Message, Role};
use crate::provider::neutral::system_texts;
use crate::provider::spec::SystemMember;

/// The member, which the provider binds reasoning to.
pub(super) const INSTRUCTIONS: &str = "instructions";

pub(super) const SYSTEM: SystemMember = SystemMember {
    name: INSTRUCTIONS,
    holds,
    encode: |messages, report| system_texts(messages, &CONTENT, report),
    decode: |body| body.get(INSTRUCTIONS).and_then(decode::decode_instructions),
};

/// Messages that were decoded from `instructions`, and those that a render receives under that name, are sent as
/// `instructions`. Any other system message keeps its place: the endpoint accepts it there.
fn holds(message: &Message, _is_leading: bool) -> bool {
    matches!(message.role, Role::System | Role::Developer)
        && (message.id.is_empty() || decode::is_instructions(message))
}
