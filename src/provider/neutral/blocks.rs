//! Parts and results as texts and media.

use crate::json::{Json, JsonStr};
use crate::message::{Part, PartBody};

/// Returns the text of a part that is text, reasoning or a refusal.
pub fn text_of(part: &Part) -> Option<&JsonStr> {
    match &part.body {
        PartBody::Text(text) | PartBody::Reasoning(text) | PartBody::Refusal(text) => Some(text),
        _ => None,
    }
}

/// Returns a result's content as one text: the string that it is, or its JSON.
pub(crate) fn text_or_json(content: &Json) -> JsonStr {
    content.view().as_json_str().unwrap_or_else(|| JsonStr::new(content.as_str()))
}

/// Splits the blocks of a result into texts, and images and files. An opaque block becomes its JSON text.
pub(crate) fn split_media(parts: impl IntoIterator<Item = Part>) -> (Vec<JsonStr>, Vec<Part>) {
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    for part in parts {
        match part.body {
            PartBody::Text(text) => texts.push(text),
            PartBody::Image(_) | PartBody::File(_) => media.push(part),
            PartBody::Opaque(value) => texts.push(JsonStr::new(value.as_str())),
            _ => {}
        }
    }
    (texts, media)
}
