//! System messages outside of the list: `"system_instruction":"Be brief."`.

use super::content::CONTENT;
use super::decode;
use crate::message::Role;
use crate::provider::neutral::system_texts;
use crate::provider::spec::SystemMember;

/// The member. The service does not keep it: each request of a conversation has it.
pub(super) const SYSTEM_INSTRUCTION: &str = "system_instruction";

/// No step is of the system, so every system message is there.
pub(super) const SYSTEM: SystemMember = SystemMember {
    name: SYSTEM_INSTRUCTION,
    holds: |message, _| matches!(message.role, Role::System | Role::Developer),
    encode: |messages, report| system_texts(messages, &CONTENT, report),
    decode: decode::decode_system,
};
