//! Google Gemini generateContent.

mod config;
mod content;
mod decode;
mod encode;
mod messages;
pub(in crate::provider) mod model_version;
mod parameters;
mod part;
mod reasoning;
#[cfg(test)]
mod recognition;
mod recognizer;
pub(in crate::provider) mod refusals;
mod remedies;
pub(crate) mod rules;
mod sdk_request;
pub(in crate::provider) mod signature_service;
mod spec;
mod stream;
mod tools;

pub(crate) use spec::SPEC;

/// Its codecs.
struct Gemini;
