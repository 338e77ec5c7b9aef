//! What must hold of any bytes: the same functions for the fuzzer and for the test that replays its corpus.
//! Each panics where a promise is broken.
#![allow(dead_code, reason = "a fuzz target uses one of them")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod body;
mod record;
mod stream;

pub use body::{convert, decode, repair};
pub use record::record;
pub use stream::stream;

use rethread::message::Dialect;

/// A target by its name, and what judges one input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets, by the names of their corpora.
pub const TARGETS: [Target; 12] = [
    ("decode_openai_chat", |data| decode(Dialect::OpenAiChat, data)),
    ("decode_openai_responses", |data| decode(Dialect::OpenAiResponses, data)),
    ("decode_anthropic", |data| decode(Dialect::Anthropic, data)),
    ("decode_gemini", |data| decode(Dialect::Gemini, data)),
    ("decode_bedrock", |data| decode(Dialect::Bedrock, data)),
    ("decode_mistral", |data| decode(Dialect::Mistral, data)),
    ("decode_mistral_conversations", |data| decode(Dialect::MistralConversations, data)),
    ("decode_gemini_interactions", |data| decode(Dialect::GeminiInteractions, data)),
    ("stream", stream),
    ("repair", repair),
    ("convert", convert),
    ("record", record),
];

/// A dialect, drawn by a number.
fn drawn(number: u8) -> Dialect {
    Dialect::ALL[usize::from(number) % Dialect::ALL.len()]
}
