//! Anthropic Messages.

mod content;
mod decode;
mod encode;
mod messages;
pub(crate) mod models;
mod parameters;
mod paused_turns;
mod provider_compaction;
mod reasoning;
#[cfg(test)]
mod recognition;
mod recognizer;
mod remedies;
pub(crate) mod rules;
mod spec;
pub(crate) mod stream;
mod system;
mod threads;
mod tools;

pub(crate) use spec::SPEC;

/// Its codecs.
struct Anthropic;
