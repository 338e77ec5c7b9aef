//! OpenAI Chat Completions as a dialect.

use super::family::{answer_reader, family_spec};
use super::parameters::parameter;
use super::variant::ChatVariant;
use super::{models, remedies, rules};
use crate::message::Dialect;
use crate::provider::neutral::OfferedMedia;
use crate::provider::spec::{
    BAD_REQUEST, ContentMeaning, ContentMember, ContentProfile, DialectSpec, MissingReasoning, RuleSet, is_within,
};

/// The length limit of OpenAI's call ids, in characters (`string_above_max_length`).
const MAX_CALL_ID: usize = 64;

/// Hosts that serve OpenAI's models: its own, and Azure's (2026-11-25). Others that speak its format are services of
/// their own.
const HOSTS: [&str; 4] = ["openai.com", "openai.azure.com", "openai.azure.us", "cognitiveservices.azure.com"];

/// OpenAI Chat Completions, which many servers implement nearly completely.
pub(crate) static SPEC: DialectSpec = family_spec(
    &OPENAI,
    &["anthropic_version", "anthropic_beta", "stop_sequences", "system", "context_management"],
    RuleSet {
        plan: rules::plan,
        refusal_statuses: BAD_REQUEST,
        remedies: remedies::REMEDIES,
        general_refusals: &[],
        leave_out_refused: remedies::leave_out_refused,
        missing_reasoning: Some(MissingReasoning {
            is_rejected: models::demands_reasoning,
            find: rules::find_missing_reasoning,
        }),
        unique_names: None,
    },
    || answer_reader(&OPENAI),
);

static OPENAI: ChatVariant = ChatVariant {
    content: ContentProfile {
        shares_files_with: Some(Dialect::OpenAiResponses),
        accepts_media,
        members: MEMBERS,
        names_file: |_| true,
        ..ContentProfile::common(Dialect::OpenAiChat, |id| id.chars().count() <= MAX_CALL_ID)
    },
    parameter,
    has_allowed_tools: true,
    any_tool_choice: "required",
    usage_on_request: true,
    free_order: true,
    empty_content: "null",
    content_chunks: false,
    service_of: |host| HOSTS.into_iter().any(|domain| is_within(host, domain)).then_some("openai"),
    #[cfg(test)]
    recognition: super::recognition::RECOGNITION,
};

/// An image needs its bytes or a URL. OpenAI takes other files by their bytes alone (`ChatCompletionContentPart.File`).
fn accepts_media(media: &OfferedMedia<'_>) -> bool {
    let by_bytes = media.has_bytes_or_url && (media.is_image || media.inline_type.is_some());
    by_bytes || media.has_known_file_id && !media.is_image
}

/// The members that say more than the neutral form of a message.
const MEMBERS: &[ContentMember] = &[
    ContentMember::new("name", ContentMeaning::Speaker),
    ContentMember::new("annotations", ContentMeaning::Citations),
    ContentMember::new("content/*/image_url/detail", ContentMeaning::ImageDetail),
    ContentMember::new("content/*/file/filename", ContentMeaning::FileName),
];
