//! The renderer of a session: builds request bodies from replay and a provider, with cached encodings.
//!
//! A message is encoded once per dialect. A body is a copy of cached encodings, so its cost follows what is new. The
//! cache is in memory only.

mod body;
mod body_buffer;
mod body_builder;
mod body_filter;
mod called_tools;
mod checked_head;
mod composed_head;
mod conversation_body;
mod convert;
mod draft_changes;
mod dropped_parts;
mod encoded_text;
mod encoding_cache;
mod item_matcher;
mod joined_message;
mod last_request;
mod message_encoder;
mod missing_reasoning;
mod prefix_ledger;
mod prefix_reuse;
mod provider_compaction_body;
mod reasoning_choice;
mod reasoning_selection;
mod renderer;
mod replayed_messages;
mod request;
mod service_reference;
mod settled_body;
mod summary_body;
mod system_placement;

pub use body_buffer::BodyBuffer;
pub use body_filter::{BodyFilterReply, ComposedItem, FilterableBody, FilteredBody};
pub use conversation_body::conversation_body;
pub use convert::convert;
pub use last_request::LastRequest;
pub use prefix_reuse::PrefixReuse;
pub use provider_compaction_body::{ProviderCompactionBody, provider_compaction_body};
pub use renderer::{RenderStep, Rendered, Renderer};
pub use replayed_messages::replayed_messages;
pub use request::{RenderInput, RenderRequest};
pub use settled_body::{BodyLedger, SettledBody};
pub use summary_body::{compaction_body, estimated_tokens};

#[cfg(test)]
mod tests;
