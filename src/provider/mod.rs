//! Wire formats, a folder each: rules, encode, decode, stream. [`DialectSpec`] describes a dialect, `registry.rs` lists them.

mod anthropic;
mod decode;
mod foreign_format;
mod gemini;
mod healing;
mod mistral;
mod models;
mod name_charset;
mod neutral;
mod openai_chat;
mod openai_responses;
mod registry;
mod request;
mod rules;
mod spec;
mod stream;
mod wire_template;

pub(crate) use decode::decode_result;
pub use decode::{api_request, blocks_of, decode_answer, decode_body, extra_content};
pub use healing::{Healed, heal, leave_out_refused, refused_rule};
pub use models::{ModelFacts, PrefixBinding, ThinkingKind};
pub use registry::model_facts;
pub(crate) use registry::spec;
pub(crate) use request::{KEY_PREFIXES, TOOLS, Withheld, first_missing, withhold};
pub use request::{
    Parameter, ProviderRequest, Readability, ReasoningField, ReasoningReader, Settings, TOOL_CHOICE, ToolChoice,
    ToolDefinition, check_input_body, check_known_headers, check_owner, compacted_items, compaction_request,
    drop_unavailable_tool_choice, has_tools, is_group, is_plain_header, names_tool_choice, translate_parameter,
    translate_value,
};
pub use rules::{Dangling, RepairOptions, repair, validate};
pub(crate) use rules::{repair_head, repair_rendered};
pub(crate) use spec::{DialectSpec, EncodeContext, Pause, ServiceState, call_id};
pub use spec::{Wire, tool_name};
pub(crate) use stream::read_whole;
pub use stream::{
    AnswerBlock, AnswerStatus, Assembled, AssembledCall, BlockBody, InputTransformation, StreamAssembler, StreamEvent,
    TransformationEffect, TransformedPlace, WireError, is_error_response, read_response,
};
