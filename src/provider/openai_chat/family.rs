//! What the dialects of the Chat Completions family have in common.

use super::parameters::STREAM_OPTIONS;
use super::stream;
use super::variant::ChatVariant;
use crate::message::Dialect;
use crate::provider::spec::{
    BodyProfile, DialectSpec, ItemFormat, ModelTable, PromptCache, RuleSet, retained_cache_life,
};
use crate::provider::stream::AnswerReader;

/// Returns the description of a dialect of the family. Each has its own rules, keys that it rejects, and reader of
/// answers.
pub(crate) const fn family_spec(
    variant: &'static ChatVariant,
    rejected_members: &'static [&'static str],
    rules: RuleSet,
    answer_reader: fn() -> Box<dyn AnswerReader>,
) -> DialectSpec {
    DialectSpec {
        body: BodyProfile {
            credential_members: &[
                &["tools", "*", "authorization"],
                &["tools", "*", "headers"],
                &["data_sources", "*", "parameters", "authentication"],
                &["data_sources", "*", "parameters", "embedding_dependency", "authentication"],
            ],
            rejected_members,
            stream_members: &[STREAM_OPTIONS],
            ..BodyProfile::COMMON
        },
        content: &variant.content,
        items: ItemFormat {
            dialect: variant.content.dialect,
            family: Dialect::OpenAiChat,
            list: "messages",
            decode_text: None,
            takes_single_item: false,
            recognizer: variant,
        },
        messages: variant,
        tools: variant,
        parameters: variant,
        reasoning: variant,
        models: ModelTable::NONE,
        rules,
        prompt_cache: PromptCache { breakpoints: None, life: retained_cache_life },
        answer_reader,
        system: None,
        sdk_request: None,
        reasoning_dropping: None,
        service_state: None,
        provider_compaction: None,
        paused_turns: None,
        resumable_answers: None,
        #[cfg(test)]
        recognition: variant.recognition,
    }
}

/// Returns a reader of answers. `empty_content` is that of the variant.
pub(crate) fn answer_reader(variant: &ChatVariant) -> Box<dyn AnswerReader> {
    Box::new(stream::ChatAssembler::new(variant.empty_content))
}
