//! OpenAI Chat Completions, for OpenAI and the many servers that implement it.

mod blocks;
mod decode;
mod encode;
mod family;
mod messages;
mod models;
mod parameters;
mod reasoning;
#[cfg(test)]
mod recognition;
mod recognizer;
mod remedies;
pub(crate) mod rules;
mod spec;
pub(crate) mod stream;
mod tools;
mod variant;

pub(crate) use family::{answer_reader, family_spec};
pub(crate) use remedies::leave_out_refused;
pub(crate) use spec::SPEC;
pub(crate) use variant::ChatVariant;
