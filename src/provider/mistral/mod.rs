//! Mistral chat: OpenAI's format with ids of its own and content in chunks.

mod codec;
pub(crate) mod rules;

pub(crate) use codec::MISTRAL;
