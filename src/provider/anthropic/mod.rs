//! Anthropic Messages.

mod codec;
mod decode;
mod encode;
mod models;
mod parameters;
mod reasoning;
mod remedies;
pub(crate) mod rules;
pub(crate) mod stream;

/// Anthropic Messages as a dialect.
pub(crate) struct Anthropic;
