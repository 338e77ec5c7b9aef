//! What a dialect requires of the ids of calls.

/// The rules of a dialect for call ids.
pub(crate) struct IdRule {
    /// True if calls may lack an id (Gemini). Results then answer them in order.
    pub optional: bool,
    /// Returns true if the provider accepts the id.
    pub valid: fn(&str) -> bool,
    /// Returns a valid id that resembles an invalid one.
    pub fit: fn(&str) -> String,
    /// Returns a valid id made from a call's index and JSON.
    pub derive: fn(&str) -> String,
    /// Returns the nth variant of an id that is in use.
    pub variant: fn(&str, usize) -> String,
    /// The provider's sentence about a missing id.
    pub missing: &'static str,
    /// The provider's sentence about an invalid id; `{}` stands for it.
    pub invalid: &'static str,
    /// The provider's sentence about an id that two calls have; `{}` stands for it.
    pub duplicate: &'static str,
}
