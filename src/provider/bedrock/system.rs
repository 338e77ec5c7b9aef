//! System messages outside of the list: `"system":[{"text":"Be brief."}]`.

use super::{decode, encode};
use crate::message::{Dialect, Message, Role};
use crate::provider::spec::SystemMember;

pub(super) const SYSTEM: SystemMember =
    SystemMember { name: "system", holds, encode: encode::system_member, decode: decode::decode_system };

/// Claude's newer models accept system messages among the others, so those of Converse's own format keep their place.
fn holds(message: &Message, is_leading: bool) -> bool {
    matches!(message.role, Role::System | Role::Developer)
        && (is_leading && !message.parts.is_empty() || message.dialect != Some(Dialect::Bedrock))
}
