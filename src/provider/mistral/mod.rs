//! Mistral chat: OpenAI's Chat Completions with ids and content chunks of its own.

mod ids;
mod parameters;
#[cfg(test)]
mod recognition;
mod remedies;
pub(crate) mod rules;
mod spec;

pub(crate) use ids::{ID_LENGTH, is_valid_id};
pub(crate) use remedies::UNANSWERED_CALL;
pub(crate) use spec::SPEC;
