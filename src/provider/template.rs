//! Wire objects as shapes: taking one apart, and writing it again.

use super::neutral::text_of;
use crate::json::{JsonRef, JsonStr};
use crate::message::{Part, PartBody, TemplateSlot, WireTemplate};

/// Takes an object apart: `slot` names the holes, every other member is kept as it came.
pub fn shape_of(object: JsonRef<'_>, slot: &mut dyn FnMut(&str, JsonRef<'_>) -> Option<TemplateSlot>) -> WireTemplate {
    let mut template = WireTemplate(Vec::new());
    for (key, value) in object.entries() {
        if let (Some(name), Some(token)) = (key.as_text(), key.as_json_str()) {
            let slot = slot(&name, value).unwrap_or_else(|| TemplateSlot::Raw(value.to_owned()));
            template.0.push((token, slot));
        }
    }
    template
}

/// As [`shape_of`], where the members of those names are holes.
pub fn shape_with(object: JsonRef<'_>, holes: &[(&str, TemplateSlot)]) -> WireTemplate {
    shape_of(object, &mut |name, _| holes.iter().find(|(own, _)| *own == name).map(|(_, slot)| slot.clone()))
}

/// Writes an object of that shape. `fill` writes a hole's value, or gives false: then the member goes.
/// It is called with the member's name.
pub fn write_shape(
    out: &mut String,
    template: &WireTemplate,
    fill: &mut dyn FnMut(&str, &TemplateSlot, &mut String) -> bool,
) {
    out.push('{');
    let mut first = true;
    for (key, slot) in &template.0 {
        let start = out.len();
        if !first {
            out.push(',');
        }
        out.push_str(key.token());
        out.push(':');
        let written = match slot {
            TemplateSlot::Object(inner) => {
                write_shape(out, inner, fill);
                true
            }
            _ => fill(&key.decode(), slot, out),
        };
        if written {
            first = false;
        } else {
            out.truncate(start);
        }
    }
    out.push('}');
}

/// Writes an object of that shape with those values in its holes. A member goes whose hole has none.
pub fn write_filled(out: &mut String, template: &WireTemplate, values: &[(TemplateSlot, &str)]) {
    write_shape(out, template, &mut |_, slot, out| {
        let value = match slot {
            TemplateSlot::Raw(value) => value.as_str(),
            _ => match values.iter().find(|(own, _)| own == slot) {
                Some((_, value)) => value,
                None => return false,
            },
        };
        out.push_str(value);
        true
    });
}

/// Writes a part in its shape: its one hole is its text, or what stands for a medium. A file's id goes where one stood.
pub fn write_part(out: &mut String, part: &Part, template: &WireTemplate) {
    write_shape(out, template, &mut |name, slot, out| {
        let token = match (slot, &part.body) {
            (TemplateSlot::Raw(value), _) => Some(value.as_str()),
            (TemplateSlot::Text, PartBody::Image(media) | PartBody::File(media)) => {
                let id = media.file_id.as_ref().filter(|_| matches!(name, "file_id" | "fileUri" | "file_uri"));
                media.data.as_ref().or(media.url.as_ref()).or(id).map(JsonStr::token)
            }
            (TemplateSlot::Text, _) => text_of(part).map(JsonStr::token),
            _ => None,
        };
        out.push_str(token.unwrap_or_default());
        token.is_some()
    });
}

/// Whether a shape is the one that is written so, each hole by its kind: what is plain needs no shape of its own.
pub fn is_shape(template: &WireTemplate, written: &str) -> bool {
    let mut own = String::new();
    write_shape(&mut own, template, &mut |_, slot, out| {
        out.push_str(match slot {
            TemplateSlot::Raw(value) => value.as_str(),
            TemplateSlot::Part(0) => "#part",
            TemplateSlot::Parts => "#parts",
            TemplateSlot::ResultsThenParts => "#results",
            TemplateSlot::Calls => "#calls",
            TemplateSlot::Text => "#text",
            TemplateSlot::Id => "#id",
            TemplateSlot::Name => "#name",
            TemplateSlot::Arguments => "#arguments",
            TemplateSlot::Content => "#content",
            TemplateSlot::Part(_) | TemplateSlot::Object(_) => "#",
        });
        true
    });
    own == written
}

/// Returns a part with its template, or without it if `write_block` writes the same bytes either way. `write_block` is the
/// [`write_block`](super::Codec::write_block) of the part's dialect.
pub fn without_plain_shape(
    write_block: &dyn Fn(&mut String, &Part, bool) -> bool,
    body: PartBody,
    template: WireTemplate,
) -> Part {
    let mut part = Part { body, template: Some(template) };
    let (mut native, mut plain) = (String::new(), String::new());
    write_block(&mut native, &part, true);
    if write_block(&mut plain, &part, false) && native == plain {
        part.template = None;
    }
    part
}
