//! OpenAI Responses.

pub(crate) mod rules;
