//! OpenAI Responses.

mod background;
mod content;
mod decode;
mod encode;
mod kinds;
mod messages;
mod models;
mod parameters;
mod provider_compaction;
mod reasoning;
#[cfg(test)]
mod recognition;
mod recognizer;
mod remedies;
pub(crate) mod rules;
mod service_state;
mod spec;
mod stream;
mod system;
mod tools;
mod unknown_params;

pub(crate) use spec::SPEC;

/// Its codecs.
struct Responses;
