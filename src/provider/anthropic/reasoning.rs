//! Thinking: who can read it, and messages without it.

use super::Anthropic;
use super::models::{is_same_model, model_facts};
use super::rules::accepted_kind;
use crate::json::{ArrayWriter, Json, JsonKind, JsonRef, ObjectWriter};
use crate::provider::models::{ModelFacts, PrefixBinding, ThinkingKind};
use crate::provider::request::Settings;
use crate::provider::spec::{ReasoningDropping, ReasoningFormat, is_within};

/// The member that tells the provider to cache the body up to there. It is not compared.
const CACHE_CONTROL: &str = "cache_control";

const THINKING: &str = "thinking";
const BLOCK_BINDING: &str = "block_binding";
const MISMATCH_BEHAVIOR: &str = "prefix_mismatch_behavior";
const DROP_BLOCK: &str = "drop_block";

/// The kinds of thinking that have `block_binding` (`@anthropic-ai/sdk` 1.12).
const BINDING_KINDS: [ThinkingKind; 2] = [ThinkingKind::Adaptive, ThinkingKind::Budget];

/// Hosts that serve Anthropic's models: "`signature` values are compatible across platforms" (documentation of extended
/// thinking, 2026-11-25).
const HOSTS: [&str; 5] =
    ["anthropic.com", "claude.com", "amazonaws.com", "aiplatform.googleapis.com", "services.ai.azure.com"];

impl ReasoningFormat for Anthropic {
    /// A text without cache breakpoints; one text block is written as a string, as it is without a breakpoint.
    fn compared_form(&self, json: &str) -> Option<String> {
        let compared = JsonRef::parse(json).ok()?.without_member(CACHE_CONTROL)?;
        let item = compared.view();
        let mut blocks = item.get("content").unwrap_or_default().items();
        let only = blocks.next().filter(|block| block.has_text("type", "text") && block.entries().count() == 2);
        let (Some(only), None) = (only.and_then(|block| block.get("text")), blocks.next()) else {
            return Some(compared.as_str().to_owned());
        };
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        for (key, value) in item.entries() {
            object.copy(key, if key.is_text("content") { only } else { value });
        }
        object.end();
        Some(out)
    }

    fn is_of_answer(&self, item: JsonRef<'_>) -> bool {
        item.has_text("role", "assistant")
    }

    fn reasoning_of<'a>(&self, item: JsonRef<'a>) -> Option<&'a str> {
        let block = item.get("content").unwrap_or_default().items().find(|block| is_thinking(*block))?;
        Some(block.as_raw())
    }

    fn has_inner_reasoning(&self, items: &[JsonRef<'_>]) -> bool {
        items.iter().any(|item| {
            let mut blocks = item.get("content").unwrap_or_default().items().skip_while(|block| is_thinking(*block));
            blocks.any(is_thinking)
        })
    }

    fn without_reasoning(&self, items: &[JsonRef<'_>], _settings: &Settings) -> Vec<Option<String>> {
        items.iter().map(|item| if self.is_of_answer(*item) { without_thinking(*item) } else { raw(*item) }).collect()
    }

    fn service_of(&self, host: &str) -> Option<&'static str> {
        let is_regional = host.ends_with("-aiplatform.googleapis.com");
        let is_known = is_regional || HOSTS.into_iter().any(|domain| is_within(host, domain));
        is_known.then_some("anthropic")
    }

    /// A model that binds thinking drops that of another one: "a model mismatch is no error".
    fn reads_reasoning(&self, made_by: &str, model: &str) -> bool {
        !model_facts(model).binds_reasoning() || is_same_model(made_by, model)
    }
}

/// How a request asks for it.
pub(super) const DROPPING: ReasoningDropping = ReasoningDropping {
    header: ("anthropic-beta", "thinking-binding-controls-2026-08-01"),
    params: dropping_params,
    is_asked_for: is_dropping,
};

/// A model that binds thinking thinks adaptively if no kind is named: naming it changes nothing else (documentation of
/// preserved thinking, 2026-11-25). Without thinking, or with that between tools, there is nothing to set.
fn dropping_params(params: JsonRef<'_>, facts: &ModelFacts) -> Option<Json> {
    if facts.prefix_binding != PrefixBinding::Rejected {
        return None;
    }
    let thinking = params.get(THINKING).filter(|thinking| !thinking.is_null());
    let kind = thinking.map_or(Some(ThinkingKind::Adaptive), |thinking| accepted_kind(thinking, facts))?;
    if !BINDING_KINDS.contains(&kind) {
        return None;
    }
    let binding = thinking.and_then(|thinking| thinking.find(BLOCK_BINDING)).unwrap_or_default();
    // What the application says itself is what is sent.
    if binding.find(MISMATCH_BEHAVIOR).is_some_and(|own| !own.is_text(DROP_BLOCK)) {
        return None;
    }
    Some(ObjectWriter::build(|out| {
        out.copy_all(params, THINKING);
        out.object(THINKING, |out| {
            match thinking {
                Some(thinking) => out.copy_all(thinking, BLOCK_BINDING),
                None => _ = out.text("type", "adaptive"),
            };
            out.object(BLOCK_BINDING, |out| {
                out.copy_all(binding, MISMATCH_BEHAVIOR);
                out.text(MISMATCH_BEHAVIOR, DROP_BLOCK);
            });
        });
    }))
}

fn is_dropping(body: JsonRef<'_>) -> bool {
    let binding = body.get(THINKING).and_then(|thinking| thinking.get(BLOCK_BINDING));
    binding.is_some_and(|binding| binding.has_text(MISMATCH_BEHAVIOR, DROP_BLOCK))
}

fn is_thinking(block: JsonRef<'_>) -> bool {
    block.text("type").is_some_and(|kind| matches!(&*kind, "thinking" | "redacted_thinking"))
}

fn raw(item: JsonRef<'_>) -> Option<String> {
    Some(item.as_raw().to_owned())
}

/// Returns a message without its thinking; `None` if it has nothing else.
fn without_thinking(item: JsonRef<'_>) -> Option<String> {
    let blocks = item.get("content").filter(|content| content.kind() == JsonKind::Array);
    let Some(blocks) = blocks.filter(|blocks| blocks.items().any(is_thinking)) else { return raw(item) };
    let mut content = String::new();
    let mut list = ArrayWriter::new(&mut content);
    let mut is_empty = true;
    for block in blocks.items().filter(|block| !is_thinking(*block)) {
        list.item().push_str(block.as_raw());
        is_empty = false;
    }
    list.end();
    if is_empty {
        return None;
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.copy_with(item, "content", &content);
    object.end();
    Some(out)
}
