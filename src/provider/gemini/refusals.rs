//! Sentences with which Google refuses requests, in generateContent and in interactions. Sources: gemini-cli#13467,
//! 9router#301 (signatures of another key, route or model), gemini-cli#16415, #26486, langchain#27799 (turns).

/// Of a signature that another key, route or model made.
pub(in crate::provider) const SIGNATURE_REFUSED: &[&[&str]] =
    &[&["corrupted thought signature"], &["thought signature is not valid"], &["thought_signature is not valid"]];

/// Of calls and results that do not belong together.
pub(in crate::provider) const PAIRS_REFUSED: &[&[&str]] = &[
    &["number of function response parts is equal to the number of function call parts"],
    &["function call turn comes immediately after a user turn"],
    &["function response turn comes immediately after a function call turn"],
];
