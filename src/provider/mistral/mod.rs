//! Mistral chat: OpenAI's Chat Completions with ids and content chunks of its own.

mod ids;
mod parameters;
#[cfg(test)]
mod recognition;
mod remedies;
pub(crate) mod rules;
mod spec;
mod variant;

pub(crate) use ids::{ID_LENGTH, is_valid_id};
pub(crate) use remedies::{REASONING_INPUT, UNANSWERED_CALL, leave_out_reasoning_again, remove_reasoning};
pub(crate) use spec::SPEC;
pub(crate) use variant::MISTRAL;
