//! What differs by model, as of 2026-11-25.
//!
//! Sources: platform.claude.com (preserved-thinking; what's new and migration guides of Opus 5.5, Sonnet 5.5, Haiku
//! 5.5, Fable 5 and 5.1; mid-conversation system messages), the model names of @anthropic-ai/sdk 1.12.0, and error
//! messages in openclaw#91805 (Fable 5 rejects both old kinds), openclaw#117871 (Opus 5 rejects budgets),
//! oh-my-pi#12939 (Opus 5.5 rejects a forced tool). The prefix is checked for accounts made since 2026-08-31, with
//! Fable 5.2 and Mythos 5.2 for all. Haiku 5.5 accepts a forced tool: its guide, which lists what it rejects, does not
//! have it. A prefill: the migration guide to 4.6, magic-context#511 (Sonnet 5), copilot-api#261 (4.7, 4.8); newer
//! models are taken to refuse it as well.

use crate::provider::models::{ModelFacts, PrefixBinding, ThinkingKind};
use ThinkingKind::{Adaptive, BetweenTools, Budget, Disabled};

/// A line of models. A model that names none, or one that is not here, belongs to no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Opus,
    Sonnet,
    Haiku,
    Fable,
    Mythos,
}

const LINES: [(&str, Line); 5] = [
    ("opus", Line::Opus),
    ("sonnet", Line::Sonnet),
    ("haiku", Line::Haiku),
    ("fable", Line::Fable),
    ("mythos", Line::Mythos),
];

/// Models up to 4.5.
const FIRST: ModelFacts = ModelFacts {
    prefix_binding: PrefixBinding::Unbound,
    thinking: &[Budget, Disabled],
    requires_thinking_kind: false,
    allows_forced_tool_choice: true,
    allows_system_messages: false,
    allows_prefill: true,
};
const ALL_KINDS: ModelFacts = ModelFacts { thinking: &[Budget, Disabled, Adaptive], allows_prefill: false, ..FIRST };
const NO_BUDGET: ModelFacts = ModelFacts { thinking: &[Disabled, Adaptive], ..ALL_KINDS };
const OPUS_4_8: ModelFacts = ModelFacts { allows_system_messages: true, ..NO_BUDGET };
const MYTHOS_PREVIEW: ModelFacts = ModelFacts { thinking: &[Budget, Adaptive], ..OPUS_4_8 };
const FABLE_5: ModelFacts = ModelFacts { thinking: &[Adaptive], ..OPUS_4_8 };
const MYTHOS_5_1: ModelFacts = ModelFacts { allows_forced_tool_choice: false, ..FABLE_5 };
const NEWEST: ModelFacts = ModelFacts { prefix_binding: PrefixBinding::Rejected, ..MYTHOS_5_1 };
const SONNET_5_5: ModelFacts =
    ModelFacts { thinking: &[Adaptive, BetweenTools], requires_thinking_kind: true, ..NEWEST };
const HAIKU_5_5: ModelFacts =
    ModelFacts { thinking: &[Disabled, Adaptive], allows_forced_tool_choice: true, ..SONNET_5_5 };

/// The facts of each line from a version on, as 100 × major + minor. The last row of a line is that of its newer
/// models, too.
const TABLE: [(Line, u16, ModelFacts); 20] = [
    (Line::Opus, 0, FIRST),
    (Line::Opus, 406, ALL_KINDS),
    (Line::Opus, 407, NO_BUDGET),
    (Line::Opus, 408, OPUS_4_8),
    (Line::Opus, 500, OPUS_4_8),
    (Line::Opus, 505, NEWEST),
    (Line::Sonnet, 0, FIRST),
    (Line::Sonnet, 406, ALL_KINDS),
    (Line::Sonnet, 500, OPUS_4_8),
    (Line::Sonnet, 505, SONNET_5_5),
    (Line::Haiku, 0, FIRST),
    (Line::Haiku, 505, HAIKU_5_5),
    (Line::Fable, 0, FABLE_5),
    (Line::Fable, 501, NEWEST),
    (Line::Fable, 502, NEWEST),
    (Line::Mythos, 0, MYTHOS_PREVIEW),
    (Line::Mythos, 500, FABLE_5),
    (Line::Mythos, 501, MYTHOS_5_1),
    (Line::Mythos, 502, NEWEST),
    (Line::Mythos, 503, NEWEST),
];

/// The first version of a line that is not in the table.
const FIRST_OF_NEW_LINES: u16 = 500;

/// Words of names of other vendors' models that are served in this format. They check no prefix.
const OTHER_VENDORS: [&str; 12] =
    ["minimax", "glm", "kimi", "deepseek", "qwen", "mimo", "longcat", "doubao", "grok", "gpt", "gemini", "mistral"];

/// Returns the facts of a model, by its name or the URL of a request to it: `claude-opus-5-5`,
/// `anthropic/claude-opus-5.5`, `us.anthropic.claude-opus-4-5-20251101-v1:0`, `claude-sonnet-4-5@20250929`. A model
/// that is newer than the table has the facts of the newest one of its line; one whose name says nothing accepts every
/// parameter, and its reasoning is taken to be bound.
pub(crate) fn model_facts(name: &str) -> ModelFacts {
    let name = name.to_ascii_lowercase();
    let Some((line, version)) = name.match_indices("claude").find_map(|(at, word)| {
        let words = name.get(at + word.len()..)?;
        read_name(words.split(['/', '?']).next()?)
    }) else {
        let is_other = OTHER_VENDORS.iter().any(|vendor| name.contains(vendor));
        let prefix_binding = if is_other { PrefixBinding::Unbound } else { PrefixBinding::Rejected };
        return ModelFacts { prefix_binding, ..ModelFacts::PERMISSIVE };
    };
    let Some(line) = line else {
        return if version < FIRST_OF_NEW_LINES { FIRST } else { NEWEST };
    };
    let row = TABLE.iter().rev().find(|(of, from, _)| *of == line && *from <= version);
    row.map_or(NEWEST, |(_, _, facts)| *facts)
}

/// Returns true if two names are of one model.
pub(crate) fn is_same_model(one: &str, other: &str) -> bool {
    let read = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.rsplit_once("claude").and_then(|(_, words)| read_name(words.split(['/', '?']).next()?))
    };
    one == other || read(one).is_some_and(|model| read(other) == Some(model))
}

/// Reads the line and the version in what follows `claude` in a name; none if it is no name of a model. Without a
/// version it is the newest model of the line, except for the one that was a preview.
fn read_name(words: &str) -> Option<(Option<Line>, u16)> {
    let words: Vec<&str> = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let line = words.iter().find_map(|word| LINES.iter().find(|(name, _)| name == word)).map(|(_, line)| *line);
    let is_number = |word: &&&str| word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
    let mut numbers = words.iter().skip_while(|word| !is_number(word)).take_while(is_number);
    let mut number = || numbers.next().and_then(|word| word.parse::<u16>().ok());
    if let Some(major) = number() {
        return Some((line, major * 100 + number().unwrap_or(0)));
    }
    let is_preview = words.contains(&"preview") || words.contains(&"instant");
    let is_named = line.is_some() || is_preview || words.contains(&"latest");
    is_named.then_some((line, if is_preview { 0 } else { u16::MAX }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r73_names_of_every_host_give_the_facts_of_their_model() {
        for (name, facts) in [
            ("claude-opus-5-5", NEWEST),
            ("anthropic/claude-opus-5.5", NEWEST),
            ("~anthropic/claude-opus-latest", NEWEST),
            ("global.anthropic.claude-opus-5-5-v1:0", NEWEST),
            ("us.anthropic.claude-opus-4-5-20251101-v1:0", FIRST),
            ("claude-opus-4-5@20251101", FIRST),
            ("claude-opus-4@20250514", FIRST),
            ("claude-opus-4-20250514", FIRST),
            ("claude-opus-4-6[1m]", ALL_KINDS),
            ("claude-opus-4-7", NO_BUDGET),
            ("CLAUDE-OPUS-4-8", OPUS_4_8),
            ("claude-opus-5", OPUS_4_8),
            ("claude-opus-5-20260724", OPUS_4_8),
            ("claude-3-5-sonnet-20241022", FIRST),
            ("anthropic/claude-3.7-sonnet:thinking", FIRST),
            ("claude-2.1", FIRST),
            ("claude-instant-v1", FIRST),
            ("claude-sonnet-4-6", ALL_KINDS),
            ("claude-sonnet-5", OPUS_4_8),
            ("anthropic.claude-sonnet-5-5", SONNET_5_5),
            ("claude-haiku-4-5-20251001", FIRST),
            ("claude-haiku-5-5", HAIKU_5_5),
            ("claude-fable-5", FABLE_5),
            ("claude-fable-5-1", NEWEST),
            ("claude-mythos-preview", MYTHOS_PREVIEW),
            ("claude-mythos-5", FABLE_5),
            ("claude-mythos-5-1", MYTHOS_5_1),
            ("claude-mythos-5-2", NEWEST),
            (
                "https://eu.example/v1/projects/p/publishers/anthropic/models/claude-sonnet-5-5@20260928:rawPredict",
                SONNET_5_5,
            ),
            ("https://bedrock.example/model/us.anthropic.claude-fable-5-v1:0/invoke", FABLE_5),
        ] {
            assert_eq!(model_facts(name), facts, "{name}");
        }
    }

    #[test]
    fn r73_a_newer_model_has_the_newest_facts() {
        assert_eq!(model_facts("claude-opus-6"), NEWEST);
        assert_eq!(model_facts("claude-sonnet-7-1-20280101"), SONNET_5_5);
        assert_eq!(model_facts("claude-haiku-6"), HAIKU_5_5);
        assert_eq!(model_facts("claude-saga-6"), NEWEST);
        assert_eq!(model_facts("claude-9"), NEWEST);
    }

    #[test]
    fn r73_a_name_that_says_nothing_accepts_every_parameter_and_binds_reasoning() {
        for name in
            ["", "my-deployment", "https://claude.example.com/v1/messages", "https://api.anthropic.com/v1/messages"]
        {
            let expected = ModelFacts { prefix_binding: PrefixBinding::Rejected, ..ModelFacts::PERMISSIVE };
            assert_eq!(model_facts(name), expected, "{name}");
        }
        assert_eq!(model_facts("MiniMax-M3"), ModelFacts::PERMISSIVE);
        assert_eq!(model_facts("kimi-k3"), ModelFacts::PERMISSIVE);
    }

    #[test]
    fn r76_one_model_has_several_names() {
        assert!(is_same_model("claude-opus-5-5", "us.anthropic.claude-opus-5-5-20260901-v1:0"));
        assert!(is_same_model("claude-opus-5-5@20260901", "anthropic/claude-opus-5.5"));
        assert!(is_same_model("my-deployment", "my-deployment"));
        assert!(!is_same_model("claude-opus-5-5", "claude-opus-5-6"));
        assert!(!is_same_model("claude-opus-5-5", "claude-sonnet-5-5"));
        assert!(!is_same_model("my-deployment", "your-deployment"));
    }
}
