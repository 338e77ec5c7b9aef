//! Mistral chat: OpenAI's Chat Completions with ids and content chunks of its own.

mod codec;
mod ids;
mod parameters;
mod remedies;
pub(crate) mod rules;

/// The dialect of Mistral's chat API.
pub(crate) struct Mistral;
