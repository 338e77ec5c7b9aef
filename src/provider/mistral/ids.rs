//! Mistral's call ids.

/// The length of a call id (gptel#1203).
pub(crate) const ID_LENGTH: usize = 9;

/// Returns true if Mistral accepts a call id: "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9."
pub(crate) fn is_valid_id(id: &str) -> bool {
    id.len() == ID_LENGTH && id.bytes().all(|b| b.is_ascii_alphanumeric())
}
