//! Mistral's conversations: `POST /v1/conversations`, whose `inputs` are entries.
//!
//! Sources: Mistral's SDKs (client-python, `src/mistralai/client/models`, and client-ts, `src/models/components`, both
//! read on 2026-11-28), its API reference (docs.mistral.ai/api/endpoint/beta/conversations, read the same day), and the
//! answers that braintrust-sdk-python recorded from June to October 2026 (`integrations/mistral/cassettes`), the requests
//! with `store: false` that ruby_llm recorded on 2026-09-07, and refusals that issues quote (`remedies.rs`).

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
mod remedies;
mod rules;
mod sent_form;
mod service_state;
mod spec;
mod stream;
mod system;
mod tools;

pub(crate) use spec::SPEC;

/// The codecs of the dialect.
struct MistralConversations;
