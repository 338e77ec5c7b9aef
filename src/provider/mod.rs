//! Wire formats, a folder each: rules, encode, decode, stream. What they share is here and in `sse` and `assembler`.

mod anthropic;
mod assembled;
mod assembler;
mod codec;
mod credentials;
mod facts;
mod gemini;
mod list;
mod media;
mod mistral;
mod newest;
mod openai_chat;
mod openai_responses;
mod parameter;
mod request;
mod rules;
mod settings;
mod shape;
mod show;
mod sse;
mod withheld;
mod words;

pub use assembled::{AnswerStatus, Assembled, AssembledCall, StreamEvent, WireError};
pub(crate) use assembler::read_whole;
pub use assembler::{StreamAssembler, is_error_response, read_response};
pub(crate) use codec::{Codec, call_id, call_ids, codec};
pub use codec::{Wire, api_request, blocks_of, decode_answer, decode_body, tool_name};
pub(crate) use credentials::KEY_PREFIXES;
pub use credentials::{check_known_headers, is_plain_header};
pub(crate) use parameter::spelled;
pub use parameter::{NO_PARALLEL, is_group, place_in, value_in};
pub use request::{ProviderRequest, ToolChoice, ToolDefinition};
pub use rules::{Dangling, INTERRUPTED, RepairOptions, repair, validate};
pub use settings::{ReasoningField, Settings};
pub(crate) use withheld::{Withheld, missing, withhold};
