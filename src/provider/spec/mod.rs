//! What a dialect is: [`DialectSpec`], one static a folder, and the parts of it.

mod begun_conversation;
mod body_profile;
mod call_ids;
mod content_member;
mod content_profile;
mod conversation_address;
mod dialect_spec;
mod item_format;
mod message_codec;
mod model_table;
mod named_dialect;
mod parameter_codec;
mod paused_turns;
mod prompt_cache;
mod provider_compaction;
mod reasoning_format;
#[cfg(test)]
mod recognition;
mod resumable_answers;
mod rule_set;
mod service_state;
mod system_member;
mod tool_codec;
mod wire;

pub(crate) use begun_conversation::BegunConversation;
pub(crate) use body_profile::BodyProfile;
pub use call_ids::tool_name;
pub(crate) use call_ids::{call_id, call_ids, id_of_service};
pub(crate) use content_member::{ContentMeaning, ContentMember};
pub(crate) use content_profile::ContentProfile;
pub(crate) use dialect_spec::DialectSpec;
pub(crate) use item_format::{ItemFormat, ItemFormats, ItemRecognizer, Mention};
pub(crate) use message_codec::{DecodeResult, EncodeContext, MessageCodec};
pub(crate) use model_table::ModelTable;
pub(crate) use named_dialect::{AllDialects, NamedDialect};
pub(crate) use parameter_codec::{DefaultsContext, ParameterCodec, TranslateForeign};
pub use paused_turns::Pause;
pub(crate) use paused_turns::{AnswerTokens, ContinuedAnswer, PausedTurns};
pub(crate) use prompt_cache::{CACHE_RETENTION, CacheBreakpoints, PromptCache, SHORT_CACHE_LIFE, retained_cache_life};
pub(crate) use provider_compaction::ProviderCompaction;
pub use provider_compaction::ProviderSummary;
pub(crate) use reasoning_format::{ReasoningDropping, ReasoningFormat, bare_model, is_within};
#[cfg(test)]
pub(crate) use recognition::{BodyMember, Marks, Recognition};
pub(crate) use resumable_answers::{AnswerForm, ResumableAnswers, ResumedAnswer};
pub(crate) use rule_set::{BAD_REQUEST, MissingReasoning, RuleSet, UniqueNames};
pub(crate) use service_state::{ChainCompaction, ChainForm, ServiceState, StateRefusal, changed_head};
pub(crate) use system_member::SystemMember;
pub(crate) use tool_codec::{ToolCodec, ToolMembers};
pub use wire::Wire;
