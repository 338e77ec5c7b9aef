//! The parts of a message's content, or of an output.

use crate::json::{ArrayWriter, JsonStr, ObjectWriter};
use crate::message::{Dialect, Media, Message, Part, PartBody};
use crate::provider::neutral::{default_name, image_detail, is_content_part};
use crate::provider::openai_responses::content::CONTENT;
use crate::provider::wire_template::write_part;

/// Writes a message's content as a list, without the parts that the endpoint does not take.
pub(super) fn write_blocks(out: &mut String, message: &Message) {
    let native = message.dialect == Some(Dialect::OpenAiResponses);
    let is_block = |part: &Part| is_content_part(part, message.dialect, (&CONTENT, native));
    let mut list = ArrayWriter::new(out);
    for part in message.parts.iter().filter(|part| is_block(part)) {
        write_block(list.item(), part, native);
    }
    list.end();
}

/// Writes a part of a user's message or of an output. `native`: in its original form, if it has one.
pub(in super::super) fn write_block(out: &mut String, part: &Part, native: bool) {
    if let Some(template) = part.template.as_ref().filter(|_| native) {
        return write_part(out, part, template, &["file_id"]);
    }
    if let PartBody::Opaque(value) = &part.body {
        return out.push_str(value.as_str());
    }
    let mut block = ObjectWriter::new(out);
    match &part.body {
        PartBody::Text(text) | PartBody::Reasoning(text) | PartBody::Refusal(text) => {
            block.text("type", "input_text").token("text", text);
        }
        PartBody::Image(media) => {
            block.text("type", "input_image");
            match id_alone(media) {
                Some(id) => block.token("file_id", id),
                None => block.raw("image_url", &media.address()),
            };
            if let Some(detail) = image_detail(part) {
                block.text("detail", detail);
            }
        }
        PartBody::File(media) => write_file(block.text("type", "input_file"), media),
        PartBody::Data { .. } | PartBody::ToolCall { .. } | PartBody::Opaque(_) => {}
    }
    block.end();
}

/// Returns a file's id, if the file has neither a URL nor data.
fn id_alone(media: &Media) -> Option<&JsonStr> {
    media.file_id.as_ref().filter(|_| media.url.is_none() && media.data.is_none())
}

fn write_file(block: &mut ObjectWriter<'_>, media: &Media) {
    let address = media.address();
    if let Some(id) = id_alone(media) {
        block.token("file_id", id);
    } else if address.starts_with("\"data:") {
        // OpenAI takes data only with a name, whose extension tells its type.
        block.text("filename", media.name.as_deref().unwrap_or(default_name(&address)));
        block.raw("file_data", &address);
    } else {
        block.raw("file_url", &address);
    }
}
