//! Mistral chat.

pub(crate) mod rules;
