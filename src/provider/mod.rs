//! Wire formats, a folder each: rules, encode, decode, stream. [`DialectSpec`] describes a dialect, `registry.rs` lists
//! them.

mod anthropic;
mod bedrock;
mod by_dialect;
mod decode;
mod foreign_format;
mod gemini;
mod gemini_interactions;
mod healing;
#[cfg(test)]
mod javascript;
mod listed_parts;
mod lost_members;
mod mistral;
mod mistral_conversations;
mod models;
mod name_charset;
mod neutral;
mod openai_chat;
mod openai_responses;
mod part_places;
mod registry;
mod request;
mod rules;
mod spec;
mod stream;
mod wire_template;

pub use by_dialect::{
    can_compact, check_input_body, check_owner, compacted_items, compaction_request, drop_unavailable_tool_choice,
    has_compaction, heal, is_error_response, is_group, leave_out_refused, model_facts, names_tool_choice,
    read_provider_summary, read_response, refused_rule, repair, translate_parameter, translate_value, validate,
};
pub(crate) use by_dialect::{first_missing, read_whole, repair_head, repair_rendered, withhold};
pub(crate) use decode::decode_result;
pub use decode::{api_request, blocks_of, decode_answer, decode_body, extra_content};
pub use healing::Healed;
pub(crate) use lost_members::lost_members;
pub use models::{ModelFacts, PrefixBinding, ThinkingKind};
pub(crate) use neutral::{NO_ASSISTANT_MEDIA, REJECTED_MEDIA, SYSTEM_TEXT_ONLY};
pub(crate) use part_places::{PartKind, is_rejected_media, part_places};
pub(crate) use registry::spec;
pub(crate) use request::{KEY_PREFIXES, TOOLS, Withheld, percent_encoded};
pub use request::{
    Parameter, ProviderRequest, Readability, ReasoningField, ReasoningReader, Settings, TOOL_CHOICE, ToolChoice,
    ToolDefinition, check_known_headers, is_plain_header,
};
pub use rules::{Dangling, RepairOptions};
pub(crate) use spec::{
    AnswerForm, ContinuedAnswer, DialectSpec, EncodeContext, Pause, ResumableAnswers, ResumedAnswer, ServiceState,
    StateRefusal, call_id, changed_head,
};
pub use spec::{ProviderSummary, Wire, tool_name};
pub use stream::{
    AnswerBlock, AnswerStatus, Assembled, AssembledCall, BlockBody, InputTransformation, StreamAssembler, StreamEvent,
    TransformationEffect, TransformedPlace, WireError,
};
