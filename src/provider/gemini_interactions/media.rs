//! Contents: `{"type":"text","text":"Hi"}`, `{"type":"image","data":"…","mime_type":"image/png"}`,
//! `{"type":"document","uri":"…"}`.

use super::step::CONTENT_TYPES;
use crate::json::{JsonKind, JsonRef, JsonStr, ObjectWriter};
use crate::message::{Media, Part, PartBody, TemplateSlot};
use crate::provider::neutral::media_type_of;
use crate::provider::wire_template::{template_of, without_plain_template, write_part};

/// Decodes a content. One of a type without a neutral meaning becomes opaque.
pub(super) fn decode_content(content: JsonRef<'_>) -> Part {
    let body = match content.text("type").as_deref() {
        Some("text") => content.json_str("text").map(PartBody::Text),
        Some("image") => decode_media(content).map(PartBody::Image),
        Some(media) if CONTENT_TYPES.contains(&media) => decode_media(content).map(PartBody::File),
        _ => None,
    };
    let Some(body) = body else { return PartBody::Opaque(content.to_owned()).into() };
    let slot = match &body {
        PartBody::Text(_) => "text",
        PartBody::Image(media) | PartBody::File(media) if media.data.is_some() => "data",
        _ => "uri",
    };
    let template = template_of(content, &mut |name, value| {
        (name == slot && value.kind() == JsonKind::String).then_some(TemplateSlot::Text)
    });
    without_plain_template(&write_content, body, template)
}

/// Decodes the data or the URI of a media content.
fn decode_media(content: JsonRef<'_>) -> Option<Media> {
    let mut media = Media { media_type: content.text("mime_type").map(Into::into), ..Media::default() };
    media.data = content.json_str("data");
    if media.data.is_none() {
        let uri = content.json_str("uri")?;
        // Only Google can read a file of its Files API, or of a scheme like `gs:`.
        let is_stored = {
            let uri = uri.decode();
            !uri.starts_with("http") && !uri.starts_with("data:") || uri.contains("generativelanguage.googleapis.com/")
        };
        if is_stored {
            media.file_id = Some(uri);
        } else {
            media.url = Some(uri);
        }
    }
    Some(media)
}

/// Writes a part as a content, by its template if `native` (the part was decoded from this dialect). Returns false if
/// the dialect has no content for it.
pub(super) fn write_content(out: &mut String, part: &Part, native: bool) -> bool {
    if let Some(template) = part.template.as_ref().filter(|_| native) {
        write_part(out, part, template, &["uri"]);
        return true;
    }
    match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => {
            let mut content = ObjectWriter::new(out);
            content.text("type", "text").token("text", text);
            content.end();
        }
        PartBody::Image(media) => write_media(out, media, true),
        PartBody::File(media) => write_media(out, media, false),
        PartBody::Opaque(value) => out.push_str(value.as_str()),
        PartBody::Reasoning(_) | PartBody::Data { .. } | PartBody::ToolCall { .. } => return false,
    }
    true
}

fn write_media(out: &mut String, media: &Media, is_image: bool) {
    let inline = media.inline();
    let url = media.url.as_ref().filter(|_| inline.is_none());
    let guessed = || url.and_then(|url| media_type_of(&url.decode())).map(str::to_owned);
    let media_type = match &inline {
        Some((media_type, _)) => Some(media_type.clone()),
        None => media.media_type.clone().or_else(guessed),
    };
    let family = media_type.as_deref().and_then(|kind| kind.split('/').next());
    let mut content = ObjectWriter::new(out);
    content.text(
        "type",
        match family {
            _ if is_image => "image",
            Some(family @ ("image" | "audio" | "video")) => family,
            _ => "document",
        },
    );
    match (&inline, url.or(media.file_id.as_ref())) {
        (Some((_, data)), _) => content.token("data", data),
        (None, uri) => content.token("uri", uri.unwrap_or(&JsonStr::new(""))),
    };
    if let Some(media_type) = media_type {
        content.text("mime_type", &media_type);
    }
    content.end();
}
