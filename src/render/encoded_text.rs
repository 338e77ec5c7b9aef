//! Encoded messages, with the hashes that tell whether a request begins as an earlier one did.

use crate::id::{hash_word, hash_words};
use crate::json::JsonRef;
use crate::provider::DialectSpec;

/// The text of wire messages, and a hash of each.
#[derive(Clone, Debug, Default)]
pub struct EncodedText {
    pub text: String,
    /// The hashes of the wire messages, in the order in which they were encoded.
    pub hashes: Vec<u64>,
}

/// Returns the hash of a list that is extended by an item. Answers store it, so it may not change.
pub fn extend_prefix(prefix: u64, item: u64) -> u64 {
    hash_word(prefix, item)
}

/// Returns the hash of an item in a list. What the provider takes for the same has the same hash: cache breakpoints do
/// not count.
pub fn item_hash(spec: &DialectSpec, item: &str) -> u64 {
    let has_breakpoint = spec.prompt_cache.breakpoints.is_some_and(|breakpoints| item.contains(breakpoints.member));
    let compared = if has_breakpoint { spec.reasoning.compared_form(item) } else { None };
    hash_words(1, compared.as_deref().unwrap_or(item).as_bytes())
}

/// Returns the hash of a member of the body that the provider compares, 0 if it is absent. The order of members does
/// not count.
pub fn member_hash(spec: &DialectSpec, value: Option<JsonRef<'_>>) -> u64 {
    let Some(value) = value else { return 0 };
    match spec.reasoning.compared_form(value.as_raw()) {
        Some(compared) => JsonRef::parse(&compared).map_or(0, JsonRef::fingerprint),
        None => value.fingerprint(),
    }
}
