//! System messages outside of the list.

use crate::finding::Report;
use crate::history::Incoming;
use crate::json::{Json, JsonRef};
use crate::message::Message;

/// The member of a body, beside the list, that holds system messages.
pub(crate) struct SystemMember {
    pub name: &'static str,
    /// Returns true if a system message is encoded in the member. The flag is true if only system messages precede it.
    pub holds: fn(&Message, bool) -> bool,
    /// Returns the member's value; none if there is nothing to write. Reports the parts that it cannot hold.
    pub encode: fn(&[&Message], &mut Report) -> Option<Json>,
    /// Decodes the member of a body.
    pub decode: fn(JsonRef<'_>) -> Option<Incoming>,
}
