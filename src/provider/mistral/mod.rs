//! Mistral chat: OpenAI's Chat Completions with ids and content chunks of its own.

mod ids;
mod parameters;
mod remedies;
pub(crate) mod rules;
mod spec;

pub(crate) use spec::SPEC;
