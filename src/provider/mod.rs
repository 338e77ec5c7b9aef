//! Wire formats, a folder each: rules, encode, decode, stream. What they share is here and in `sse` and `assembler`.

pub mod anthropic;
mod assembled;
mod assembler;
mod codec;
mod gemini;
mod mistral;
pub mod openai_chat;
mod openai_responses;
mod request;
mod rules;
mod settings;
mod shape;
mod show;
mod sse;
mod words;

pub use assembled::{AnswerStatus, Assembled, AssembledCall, StreamEvent, WireError};
pub use assembler::{StreamAssembler, read_response};
pub use codec::{
    Wire, blocks_of, call_id, decode_answer, decode_body, encode_message, stands_apart, supported, tool_name,
};
pub use request::{ProviderRequest, ToolDefinition};
pub use rules::{Dangling, INTERRUPTED, RepairOptions, repair, validate};
pub use settings::{ReasoningField, Settings};
