//! Google Gemini generateContent.

mod codec;
mod config;
mod decode;
mod encode;
mod model_version;
mod parameters;
mod part;
mod reasoning;
mod remedies;
pub(crate) mod rules;
mod sdk_request;
mod stream;
mod tools;

/// Gemini generateContent as a dialect.
pub(crate) struct Gemini;
