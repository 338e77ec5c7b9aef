//! Images and files: `{"image":{"format":"png","source":{"bytes":"iVBORw0…"}}}` and
//! `{"document":{"format":"pdf","name":"report","source":{"bytes":"JVBERi0…"}}}`.

use crate::json::{JsonKind, JsonRef, JsonStr, ObjectWriter};
use crate::message::{Media, Part, PartBody, TemplateSlot, WireTemplate};
use crate::provider::neutral::write_document_context;
use crate::provider::wire_template::template_of;

/// A format's name and its media type.
pub(super) type Format = (&'static str, &'static str);

/// `ImageFormat` of `@aws-sdk/client-bedrock-runtime` 3.1164.
pub(super) const IMAGE_FORMATS: [Format; 4] =
    [("png", "image/png"), ("jpeg", "image/jpeg"), ("gif", "image/gif"), ("webp", "image/webp")];

/// `DocumentFormat` of the same.
pub(super) const DOCUMENT_FORMATS: [Format; 9] = [
    ("pdf", "application/pdf"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("html", "text/html"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
];

/// Of `VideoFormat` and `AudioFormat`, those that other dialects send.
pub(super) const OTHER_FORMATS: [Format; 8] = [
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("mov", "video/quicktime"),
    ("mpeg", "video/mpeg"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("flac", "audio/flac"),
    ("ogg", "audio/ogg"),
];

/// The name of a document without one. "The document name may only contain alphanumeric characters, whitespace
/// characters, hyphens, parentheses, and square brackets".
const DEFAULT_NAME: &str = "Document";
pub(super) const MAX_NAME_LENGTH: usize = 200;

/// Returns the format of a media type.
pub(super) fn format_of(media_type: &str, formats: &[Format]) -> Option<&'static str> {
    let bare = media_type.split(';').next().unwrap_or_default().trim();
    formats.iter().find(|(_, kind)| kind.eq_ignore_ascii_case(bare)).map(|(format, _)| *format)
}

/// Reads the value of an image or file block. Returns `None` for a source that is no bytes and no object of S3: a
/// document's text, for example.
pub(super) fn decode_media(kind: &str, value: JsonRef<'_>) -> Option<Media> {
    let source = value.find("source").filter(|source| source.is_object())?;
    let name = value.text("name").map(std::borrow::Cow::into_owned);
    let format = value.string("format");
    let known = IMAGE_FORMATS.iter().chain(&DOCUMENT_FORMATS).chain(&OTHER_FORMATS);
    let media_type = known.copied().find(|(name, _)| *name == format).map_or_else(
        || format!("{}/{format}", if kind == "document" { "application" } else { kind }),
        |(_, of)| of.into(),
    );
    let media = Media { media_type: Some(media_type), name, ..Media::default() };
    if let Some(bytes) = source.json_str("bytes") {
        return Some(Media { data: Some(bytes), ..media });
    }
    let uri = source.find("s3Location").and_then(|location| location.json_str("uri"))?;
    Some(Media { file_id: Some(uri), ..media })
}

/// Returns the template of the value of an image or file block. Its slot is the member that [`decode_media`] reads.
pub(super) fn media_template(value: JsonRef<'_>) -> WireTemplate {
    let mut uri = |name: &str, value: JsonRef<'_>| {
        (name == "uri" && value.kind() == JsonKind::String).then_some(TemplateSlot::Text)
    };
    let mut source = |name: &str, value: JsonRef<'_>| match name {
        "bytes" if value.kind() == JsonKind::String => Some(TemplateSlot::Text),
        "s3Location" if value.is_object() => Some(TemplateSlot::Object(template_of(value, &mut uri))),
        _ => None,
    };
    template_of(value, &mut |name, value| {
        (name == "source" && value.is_object()).then(|| TemplateSlot::Object(template_of(value, &mut source)))
    })
}

/// Writes an image or file block. Returns false if the part is neither, or if Converse has no format for it.
pub(super) fn write_media(out: &mut String, part: &Part) -> bool {
    let (media, is_image) = match &part.body {
        PartBody::Image(media) => (media, true),
        PartBody::File(media) => (media, false),
        _ => return false,
    };
    let Some((media_type, data)) = media.inline() else { return false };
    let image = format_of(&media_type, &IMAGE_FORMATS).filter(|_| is_image).map(|format| ("image", format));
    let document = || format_of(&media_type, &DOCUMENT_FORMATS).map(|format| (super::block::DOCUMENT, format));
    let other = || {
        let kind = if media_type.starts_with("video") { "video" } else { "audio" };
        format_of(&media_type, &OTHER_FORMATS).map(|format| (kind, format))
    };
    let Some((kind, format)) = image.or_else(document).or_else(other) else { return false };
    let mut block = ObjectWriter::new(out);
    block.object(kind, |inner| {
        inner.text("format", format);
        if kind == super::block::DOCUMENT {
            inner.text("name", &document_name(media.name.as_deref()));
        }
        inner.object("source", |source| _ = source.token("bytes", &data));
        if kind == super::block::DOCUMENT {
            write_document_context(inner, part);
        }
    });
    block.end();
    true
}

/// Returns a name that Converse accepts, without its extension.
pub(super) fn document_name(name: Option<&str>) -> String {
    let name = name.unwrap_or_default();
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let mut fit = String::new();
    for c in name.chars().take(MAX_NAME_LENGTH) {
        if is_name_character(c) {
            fit.push(c);
        } else if !fit.ends_with(' ') {
            fit.push(' ');
        }
    }
    let fit = fit.trim();
    if fit.is_empty() { DEFAULT_NAME.to_owned() } else { fit.to_owned() }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '(' | ')' | '[' | ']')
}

/// Returns true if Converse accepts a document's name.
pub(super) fn is_document_name(name: &str) -> bool {
    let is_doubled_space = |pair: (char, char)| pair.0.is_whitespace() && pair.1.is_whitespace();
    (1..=MAX_NAME_LENGTH).contains(&name.len())
        && name.chars().all(|c| is_name_character(c) || c.is_ascii_whitespace())
        && !name.chars().zip(name.chars().skip(1)).any(is_doubled_space)
}

/// Returns the text of blocks with texts, such as those of `citationsContent`; `None` if there is none.
pub(super) fn joined_text(blocks: JsonRef<'_>) -> Option<JsonStr> {
    let texts: Vec<JsonStr> = blocks.items().filter_map(|block| block.json_str("text")).collect();
    (!texts.is_empty()).then(|| JsonStr::joined(&mut texts.iter(), ""))
}
