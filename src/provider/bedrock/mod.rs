//! Amazon Bedrock's Converse and ConverseStream.

mod block;
mod content;
mod decode;
mod encode;
mod frames;
mod inference_config;
mod media;
mod messages;
mod models;
mod parameters;
mod reasoning;
#[cfg(test)]
mod recognition;
mod recognizer;
mod remedies;
mod rules;
mod spec;
mod stream;
mod system;
mod tools;

pub(crate) use spec::SPEC;

/// Its codecs.
struct Bedrock;
