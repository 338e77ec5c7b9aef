//! Thoughts and their signatures: who can read them, and contents without them.

use super::Gemini;
use super::model_version::GEMINI_3;
use super::part::{CALL_NAMES, SIGNATURE_NAMES};
use super::rules::PLACEHOLDER_SIGNATURE;
use super::signature_service::signature_service;
use crate::json::{ArrayWriter, JsonRef, ObjectWriter};
use crate::provider::request::Settings;
use crate::provider::spec::{ReasoningFormat, bare_model};

impl ReasoningFormat for Gemini {
    fn is_of_answer(&self, item: JsonRef<'_>) -> bool {
        item.has_text("role", "model")
    }

    fn reasoning_of<'a>(&self, item: JsonRef<'a>) -> Option<&'a str> {
        parts_of(item).find(|part| is_thought(*part) || is_signed(*part)).map(JsonRef::as_raw)
    }

    fn without_reasoning(&self, items: &[JsonRef<'_>], settings: &Settings) -> Vec<Option<String>> {
        let write = |item: &JsonRef<'_>| {
            if self.is_of_answer(*item) && self.reasoning_of(*item).is_some() {
                without_thoughts(*item, settings.version >= GEMINI_3 || settings.version == 0)
            } else {
                Some(item.as_raw().to_owned())
            }
        };
        items.iter().map(write).collect()
    }

    fn service_of(&self, host: &str) -> Option<&'static str> {
        signature_service(host)
    }

    /// A signature is "corrupted or invalid" for another model (2026-11-25).
    fn reads_reasoning(&self, made_by: &str, model: &str) -> bool {
        bare_model(made_by) == bare_model(model)
    }
}

fn parts_of(item: JsonRef<'_>) -> impl Iterator<Item = JsonRef<'_>> {
    item.get("parts").unwrap_or_default().items()
}

fn is_thought(part: JsonRef<'_>) -> bool {
    part.get("thought").and_then(JsonRef::as_bool) == Some(true)
}

fn is_signed(part: JsonRef<'_>) -> bool {
    let placeholder = PLACEHOLDER_SIGNATURE;
    SIGNATURE_NAMES.iter().any(|name| part.get(name).is_some_and(|value| value.as_raw() != placeholder))
}

/// Returns a content without thoughts and signatures; `None` if it has nothing else. A call whose signature is required
/// gets the placeholder.
fn without_thoughts(item: JsonRef<'_>, requires_signature: bool) -> Option<String> {
    let mut parts = String::new();
    let mut list = ArrayWriter::new(&mut parts);
    let mut is_empty = true;
    for part in parts_of(item).filter(|part| !is_thought(*part)) {
        let is_call = CALL_NAMES.iter().any(|name| part.get(name).is_some());
        // The end of a stream may have only a signature: `{"text":"","thoughtSignature":"…"}`.
        if is_signed(part) && part.get("text").is_some_and(|text| text.is_text("")) {
            continue;
        }
        is_empty = false;
        let mut object = ObjectWriter::new(list.item());
        for (key, value) in part.entries() {
            let is_signature = SIGNATURE_NAMES.iter().any(|name| key.is_text(name));
            if !is_signature {
                object.copy(key, value);
            } else if is_call && requires_signature {
                object.key_token(key.as_raw()).push_str(PLACEHOLDER_SIGNATURE);
            }
        }
        object.end();
    }
    list.end();
    if is_empty {
        return None;
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.copy_with(item, "parts", &parts);
    object.end();
    Some(out)
}
