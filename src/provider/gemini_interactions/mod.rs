//! Gemini's Interactions API: a conversation is a list of steps.

mod background;
mod content;
mod continuation;
mod decode;
mod encode;
mod generation_config;
mod media;
mod messages;
mod parameters;
mod reasoning;
#[cfg(test)]
mod recognition;
mod recognizer;
mod remedies;
mod results;
mod rules;
mod service_state;
mod spec;
mod step;
mod stream;
mod system;
mod tools;

pub(crate) use spec::SPEC;

/// Its codecs.
struct Interactions;
