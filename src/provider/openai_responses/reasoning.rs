//! Reasoning items: who can read them, and answers without them.

use super::Responses;
use super::kinds::{kind_of, pair_of};
use super::models::model_facts;
use crate::json::{JsonRef, ObjectWriter};
use crate::provider::request::Settings;
use crate::provider::spec::{ReasoningFormat, bare_model, is_within};

/// Hosts that serve OpenAI's models: its own, and Azure's (2026-11-25).
const HOSTS: [&str; 6] = [
    "openai.com",
    "openai.azure.com",
    "openai.azure.us",
    "cognitiveservices.azure.com",
    "services.ai.azure.com",
    "models.ai.azure.com",
];

/// Items that belong to reasoning only by their id: they are valid without it.
const ITEMS_WITH_OPTIONAL_ID: [&str; 3] = ["message", "function_call", "custom_tool_call"];

impl ReasoningFormat for Responses {
    fn is_of_answer(&self, item: JsonRef<'_>) -> bool {
        let kind = kind_of(item);
        match &*kind {
            "message" => item.has_text("role", "assistant"),
            "item_reference" | "configuration_update" | "compaction_trigger" | "additional_tools" => false,
            _ => pair_of(&kind).is_none_or(|(_, is_call)| is_call) && !kind.ends_with("_output"),
        }
    }

    fn reasoning_of<'a>(&self, item: JsonRef<'a>) -> Option<&'a str> {
        item.has_text("type", "reasoning").then(|| item.as_raw())
    }

    fn has_inner_reasoning(&self, items: &[JsonRef<'_>]) -> bool {
        let is_reasoning = |item: &&JsonRef<'_>| self.reasoning_of(**item).is_some();
        items.iter().skip_while(is_reasoning).any(|item| is_reasoning(&item))
    }

    /// "Item 'fc_…' of type 'function_call' was provided without its required 'reasoning' item": what followed the
    /// reasoning is written without its id. Call and output pair by `call_id`.
    fn without_reasoning(&self, items: &[JsonRef<'_>], _settings: &Settings) -> Vec<Option<String>> {
        let mut lost_reasoning = false;
        let mut write = |item: &JsonRef<'_>| {
            if self.reasoning_of(*item).is_some() {
                lost_reasoning = true;
                return None;
            }
            let is_tied = lost_reasoning && self.is_of_answer(*item);
            let loses_id = is_tied && ITEMS_WITH_OPTIONAL_ID.contains(&&*kind_of(*item));
            Some(if loses_id { without_id(*item) } else { item.as_raw().to_owned() })
        };
        items.iter().map(&mut write).collect()
    }

    fn service_of(&self, host: &str) -> Option<&'static str> {
        HOSTS.into_iter().any(|domain| is_within(host, domain)).then_some("openai")
    }

    /// The service removes reasoning of another model (`model_mismatch`).
    fn reads_reasoning(&self, made_by: &str, model: &str) -> bool {
        !model_facts(model).binds_reasoning() || without_date(bare_model(made_by)) == without_date(bare_model(model))
    }
}

/// Returns a model's name without the date of its version: `gpt-5.2` for `gpt-5.2-2026-03-01`.
fn without_date(model: &str) -> &str {
    let is_date = |text: &str| text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    match model.len().checked_sub(11).and_then(|at| model.split_at_checked(at)) {
        Some((name, date)) if date.strip_prefix('-').is_some_and(is_date) => name,
        _ => model,
    }
}

fn without_id(item: JsonRef<'_>) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.copy_all(item, "id");
    object.end();
    out
}
