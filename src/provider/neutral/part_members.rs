//! Members of images and documents that several dialects have under one name. They are in the part's template.

use crate::json::{JsonRef, JsonStr, ObjectWriter};
use crate::message::{Part, TemplateSlot, WireTemplate};

/// The values of an image's `detail` that every dialect with the member has (OpenAI's SDK 6 and Mistral's `ImageDetail`
/// of November 2026), without "auto", which is as good as none.
const DETAILS: [&str; 2] = ["low", "high"];

/// Returns a value of `detail` that every dialect with the member has.
pub(crate) fn common_detail(value: JsonRef<'_>) -> Option<&'static str> {
    DETAILS.into_iter().find(|detail| value.is_text(detail))
}

/// Returns the `detail` of an image.
pub(crate) fn image_detail(part: &Part) -> Option<&'static str> {
    common_detail(member(part.template.as_ref()?, "detail")?)
}

/// Returns the `context` of a document, if it is a text.
fn document_context(part: &Part) -> Option<JsonStr> {
    member(part.template.as_ref()?, "context")?.as_json_str().filter(|context| !context.is_empty())
}

/// Returns true for the `citations` of a document whose answer is to cite it.
pub(crate) fn asks_for_citations(value: JsonRef<'_>) -> bool {
    value.get("enabled").and_then(JsonRef::as_bool) == Some(true)
}

/// Writes `"context":"…"` of a document, as Anthropic and Converse both have it.
pub(crate) fn write_document_context(document: &mut ObjectWriter<'_>, part: &Part) {
    if let Some(context) = document_context(part) {
        document.token("context", &context);
    }
}

/// Returns the value of a member of a template, or of an object in it.
fn member<'t>(template: &'t WireTemplate, name: &str) -> Option<JsonRef<'t>> {
    template.0.iter().find_map(|(key, slot)| match slot {
        TemplateSlot::Raw(value) if key.inside() == name => Some(value.view()),
        TemplateSlot::Object(inner) => member(inner, name),
        _ => None,
    })
}
