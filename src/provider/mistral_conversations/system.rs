//! System messages outside of the list: `"instructions":"Be brief."`. No entry has a role for them.

use super::content::CONTENT;
use super::decode;
use crate::message::Role;
use crate::provider::neutral::system_texts;
use crate::provider::spec::SystemMember;

pub(super) const INSTRUCTIONS: &str = "instructions";

pub(super) const SYSTEM: SystemMember = SystemMember {
    name: INSTRUCTIONS,
    holds: |message, _| matches!(message.role, Role::System | Role::Developer),
    encode: |messages, report| system_texts(messages, &CONTENT, report),
    decode: |body| body.get(INSTRUCTIONS).and_then(decode::decode_instructions),
};
