//! Mistral's conversations: `POST /v1/conversations`, whose `inputs` are entries.
//!
//! Sources: Mistral's SDKs (client-python, `src/mistralai/client/models`, and client-ts, `src/models/components`, both
//! read on 2026-11-28), and its API reference (docs.mistral.ai/api/endpoint/beta/conversations, read the same day). No
//! traffic was recorded.

mod completion_args;
mod content;
mod decode;
mod encode;
mod entry;
mod messages;
mod parameters;
mod reasoning;
#[cfg(test)]
mod recognition;
mod recognizer;
mod rules;
mod spec;
mod stream;
mod system;
mod tools;

pub(crate) use spec::SPEC;

/// Its codecs.
struct MistralConversations;
