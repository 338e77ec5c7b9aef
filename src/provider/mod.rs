//! Wire formats, a folder each: rules, encode, decode, stream. What they share is here and in `sse` and `assembler`.

pub mod anthropic;
mod assembled;
mod assembler;
mod codec;
pub mod openai_chat;
mod request;
mod settings;
mod shape;
mod sse;
mod words;

pub use assembled::{AnswerStatus, Assembled, AssembledCall, StreamEvent, WireError};
pub use assembler::{StreamAssembler, read_response};
pub use codec::{Wire, blocks_of, call_id, decode_answer, decode_body, encode_message, stands_apart, supported};
pub use request::{ProviderRequest, ToolDefinition};
pub use settings::{ReasoningField, Settings};
