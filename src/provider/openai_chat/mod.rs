//! OpenAI Chat Completions, for OpenAI and the many servers that implement it.

mod codec;
mod decode;
mod encode;
mod models;
mod parameters;
mod reasoning;
mod remedies;
pub(crate) mod rules;
pub(crate) mod stream;
mod tools;
mod variant;

pub(crate) use variant::{ChatDialect, ChatVariant};

/// The dialect of OpenAI Chat Completions.
pub(crate) struct OpenAiChat;
