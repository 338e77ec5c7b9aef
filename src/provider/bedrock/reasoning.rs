//! Reasoning: who can read it, and messages without it.

use super::Bedrock;
use super::block::{CACHE_POINT, REASONING, kind_of};
use super::models::{Vendor, model_facts};
use crate::json::{ArrayWriter, JsonKind, JsonRef, ObjectWriter};
use crate::provider::anthropic::models::is_same_model;
use crate::provider::request::Settings;
use crate::provider::spec::{ReasoningFormat, is_within};

impl ReasoningFormat for Bedrock {
    /// A message or a list without cache points, which tell the service to cache the body up to there.
    fn compared_form(&self, json: &str) -> Option<String> {
        if !json.contains("\"cachePoint\"") {
            return None;
        }
        let value = JsonRef::parse(json).ok()?;
        if value.kind() == JsonKind::Array {
            return Some(list_without(value, CACHE_POINT)?.0);
        }
        content_without(value, CACHE_POINT)?
    }

    fn is_of_answer(&self, item: JsonRef<'_>) -> bool {
        item.has_text("role", "assistant")
    }

    fn reasoning_of<'a>(&self, item: JsonRef<'a>) -> Option<&'a str> {
        blocks_of(item).find(|block| is_of_kind(*block, REASONING)).map(JsonRef::as_raw)
    }

    fn has_inner_reasoning(&self, items: &[JsonRef<'_>]) -> bool {
        items.iter().any(|item| {
            let mut blocks = blocks_of(*item).skip_while(|block| is_of_kind(*block, REASONING));
            blocks.any(|block| is_of_kind(block, REASONING))
        })
    }

    fn without_reasoning(&self, items: &[JsonRef<'_>], _settings: &Settings) -> Vec<Option<String>> {
        let write = |item: &JsonRef<'_>| {
            let changed = if self.is_of_answer(*item) { content_without(*item, REASONING) } else { None };
            changed.unwrap_or_else(|| Some(item.as_raw().to_owned()))
        };
        items.iter().map(write).collect()
    }

    fn service_of(&self, host: &str) -> Option<&'static str> {
        is_within(host, "amazonaws.com").then_some("bedrock")
    }

    /// A model that binds reasoning drops that of another one, as with Anthropic's own API.
    fn reads_reasoning(&self, made_by: &str, model: &str) -> bool {
        let is_claude = Vendor::of(model) == Vendor::Claude && Vendor::of(made_by) == Vendor::Claude;
        if is_claude {
            !model_facts(model).binds_reasoning() || is_same_model(made_by, model)
        } else {
            Vendor::of(made_by) == Vendor::of(model)
        }
    }
}

fn blocks_of(item: JsonRef<'_>) -> impl Iterator<Item = JsonRef<'_>> {
    item.get("content").unwrap_or_default().items()
}

fn is_of_kind(block: JsonRef<'_>, kind: &str) -> bool {
    kind_of(block).is_some_and(|(own, _)| own == kind)
}

/// Returns a list without the blocks of a kind, and true if nothing is left; `None` if it has no such block.
fn list_without(list: JsonRef<'_>, kind: &str) -> Option<(String, bool)> {
    if !list.items().any(|block| is_of_kind(block, kind)) {
        return None;
    }
    let (mut out, mut is_empty) = (String::new(), true);
    let mut array = ArrayWriter::new(&mut out);
    for block in list.items().filter(|block| !is_of_kind(*block, kind)) {
        array.item().push_str(block.as_raw());
        is_empty = false;
    }
    array.end();
    Some((out, is_empty))
}

/// Returns a message without the blocks of a kind: the inner `None` if nothing is left, the outer one if it has no such
/// block.
fn content_without(item: JsonRef<'_>, kind: &str) -> Option<Option<String>> {
    let (content, is_empty) = list_without(item.get("content")?, kind)?;
    if is_empty {
        return Some(None);
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.copy_with(item, "content", &content);
    object.end();
    Some(Some(out))
}
