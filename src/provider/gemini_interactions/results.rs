//! Which results a model accepts.

use crate::json::{JsonRef, JsonStr};
use crate::provider::gemini::model_version::GEMINI_3;

/// Returns true if a model of that version accepts a list of contents as a result. Of one whose version is unknown, the
/// service says so. "The content-array form is a 'multimodal function response', which Gemini 2.5 models reject with a
/// 400" (obsidian-gemini, `interactions-mapper.ts`, 2026-07). A text is accepted by all.
pub(super) fn accepts_lists(version: u16) -> bool {
    !(1..GEMINI_3).contains(&version)
}

/// Returns the text that a list of texts is; `None` if it has other contents.
pub(super) fn text_of_list(list: JsonRef<'_>) -> Option<JsonStr> {
    let text = |content: JsonRef<'_>| {
        content.as_json_str().or_else(|| content.json_str("text").filter(|_| content.has_text("type", "text")))
    };
    let texts: Vec<JsonStr> = list.items().map(text).collect::<Option<_>>()?;
    Some(JsonStr::joined(&mut texts.iter().filter(|text| !text.is_empty()), "\\n\\n"))
}
