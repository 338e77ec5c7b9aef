//! Reasoning: chunks of the content of the model's messages.

use super::MistralConversations;
use super::entry::is_of_answer;
use crate::json::{ArrayWriter, JsonKind, JsonRef, ObjectWriter};
use crate::provider::request::Settings;
use crate::provider::spec::{ReasoningFormat, is_within};

impl ReasoningFormat for MistralConversations {
    fn is_of_answer(&self, item: JsonRef<'_>) -> bool {
        is_of_answer(item)
    }

    fn reasoning_of<'a>(&self, item: JsonRef<'a>) -> Option<&'a str> {
        let mut chunks = item.get("content").unwrap_or_default().items();
        chunks.find(|chunk| is_thinking(*chunk)).map(JsonRef::as_raw)
    }

    fn without_reasoning(&self, items: &[JsonRef<'_>], _settings: &Settings) -> Vec<Option<String>> {
        let write = |item: &JsonRef<'_>| {
            let has_reasoning = self.is_of_answer(*item) && self.reasoning_of(*item).is_some();
            if has_reasoning { without_thinking(*item) } else { Some(item.as_raw().to_owned()) }
        };
        items.iter().map(write).collect()
    }

    fn service_of(&self, host: &str) -> Option<&'static str> {
        is_within(host, "mistral.ai").then_some("mistral")
    }
}

fn is_thinking(chunk: JsonRef<'_>) -> bool {
    chunk.has_text("type", "thinking")
}

/// Returns an entry without its reasoning; `None` if it has no other content.
fn without_thinking(item: JsonRef<'_>) -> Option<String> {
    let content = item.get("content").filter(|content| content.kind() == JsonKind::Array)?;
    let mut list = String::new();
    let mut chunks = ArrayWriter::new(&mut list);
    for chunk in content.items().filter(|chunk| !is_thinking(*chunk)) {
        chunks.item().push_str(chunk.as_raw());
    }
    chunks.end();
    if list == "[]" {
        return None;
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.copy_with(item, "content", &list);
    object.end();
    Some(out)
}
