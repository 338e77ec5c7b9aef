//! The parts of a message's content.

use super::variant::ChatVariant;
use crate::json::{JsonStr, ObjectWriter};
use crate::message::{Media, Part, PartBody, TemplateSlot};
use crate::provider::neutral::{default_name, image_detail};
use crate::provider::wire_template::{write_filled, write_part};

/// Writes a content part. `own`: in its original form, if it has one.
pub(super) fn write_block(variant: &ChatVariant, out: &mut String, part: &Part, own: bool) {
    if let Some(template) = part.template.as_ref().filter(|_| own) {
        return match &part.body {
            PartBody::Reasoning(text) => write_filled(out, template, &[(TemplateSlot::Parts, &thinking_chunks(text))]),
            _ => write_part(out, part, template, &["file_id"]),
        };
    }
    if let PartBody::Opaque(value) = &part.body {
        out.push_str(value.as_str());
        return;
    }
    let mut block = ObjectWriter::new(out);
    match &part.body {
        PartBody::Reasoning(text) if variant.content_chunks => {
            block.text("type", "thinking").raw("thinking", &thinking_chunks(text));
        }
        PartBody::Text(text) | PartBody::Reasoning(text) => {
            block.text("type", "text").token("text", text);
        }
        PartBody::Refusal(text) if variant.content_chunks => {
            block.text("type", "text").token("text", text);
        }
        PartBody::Refusal(text) => {
            block.text("type", "refusal").token("refusal", text);
        }
        PartBody::Image(media) => {
            block.text("type", "image_url").object("image_url", |image| {
                image.raw("url", &media.address());
                if let Some(detail) = image_detail(part) {
                    image.text("detail", detail);
                }
            });
        }
        PartBody::File(media) if variant.content_chunks => write_mistral_file(&mut block, media),
        PartBody::File(media) => write_file(&mut block, media),
        PartBody::Data { .. } | PartBody::ToolCall { .. } | PartBody::Opaque(_) => {}
    }
    block.end();
}

/// Writes `{"type":"file","file":{"file_data":"data:…","filename":"a.pdf"}}`, or the same with a `file_id`.
fn write_file(block: &mut ObjectWriter<'_>, media: &Media) {
    block.text("type", "file").object("file", |file| {
        let data = media.address();
        let mut name = media.name.as_deref();
        match &media.file_id {
            Some(id) => _ = file.token("file_id", id),
            None => {
                file.raw("file_data", &data);
                // OpenAI takes data only with a name, whose extension tells its type.
                name = name.or_else(|| Some(default_name(&data)));
            }
        }
        if let Some(name) = name {
            file.text("filename", name);
        }
    });
}

/// Writes Mistral's `{"type":"file","file_id":"…"}` or
/// `{"type":"document_url","document_url":"https://…","document_name":"a.pdf"}`.
fn write_mistral_file(block: &mut ObjectWriter<'_>, media: &Media) {
    if let Some(id) = &media.file_id {
        block.text("type", "file").token("file_id", id);
        return;
    }
    block.text("type", "document_url").raw("document_url", &media.address());
    if let Some(name) = &media.name {
        block.text("document_name", name);
    }
}

/// Returns the `thinking` list of Mistral's reasoning chunk for a text.
pub(super) fn thinking_chunks(text: &JsonStr) -> String {
    format!(r#"[{{"type":"text","text":{}}}]"#, text.token())
}
