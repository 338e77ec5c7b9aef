//! The ids of OpenAI's calls.

use crate::id::short_name;
use crate::provider::rules::IdRule;

/// The length limit of OpenAI's call ids, and of the names that Mistral takes in tool messages. The API's error says
/// 64; clients that cut at 40 are out of date (agentao#321).
pub(crate) const MAX_ID: usize = 64;

/// The rule of call ids in Chat Completions.
pub(crate) const IDS: IdRule = IdRule {
    optional: false,
    valid: |id| id.chars().count() <= MAX_ID,
    fit: |id| if (IDS.valid)(id) { id.to_owned() } else { shortened(id) },
    derive: |seed| format!("call_{}", short_name(seed, 24)),
    variant: |base, count| {
        let suffix = format!("_{count}");
        prefix(base, MAX_ID - suffix.len()) + &suffix
    },
    missing: "Missing required parameter: the id of a call in 'tool_calls'.",
    invalid: "Invalid call id '{}': expected a string with maximum length 64 (string_above_max_length).",
    duplicate: "Invalid parameter: Duplicate value for 'id' of '{}' in 'tool_calls' of one message.",
};

/// Returns an id of valid length for one that is too long: its beginning and a hash of all of it.
pub(crate) fn shortened(id: &str) -> String {
    prefix(id, MAX_ID - 11) + "_" + &short_name(id, 10)
}

fn prefix(id: &str, length: usize) -> String {
    id.chars().take(length).collect()
}
