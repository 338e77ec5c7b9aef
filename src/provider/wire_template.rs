//! Makes templates of wire objects, and writes objects by them.

use super::neutral::text_of;
use crate::json::{JsonRef, JsonStr};
use crate::message::{Part, PartBody, TemplateSlot, WireTemplate};

/// Returns the template of an object. `slot` returns the slot for a member, by its name and value, or `None` if the
/// template keeps the member's value.
pub fn template_of(
    object: JsonRef<'_>,
    slot: &mut dyn FnMut(&str, JsonRef<'_>) -> Option<TemplateSlot>,
) -> WireTemplate {
    let mut template = WireTemplate(Vec::new());
    for (key, value) in object.entries() {
        if let (Some(name), Some(token)) = (key.as_text(), key.as_json_str()) {
            let slot = slot(&name, value).unwrap_or_else(|| TemplateSlot::Raw(value.to_owned()));
            template.0.push((token, slot));
        }
    }
    template
}

/// Returns the template of an object with these slots, by the names of the members.
pub fn template_with_slots(object: JsonRef<'_>, slots: &[(&str, TemplateSlot)]) -> WireTemplate {
    template_of(object, &mut |name, _| slots.iter().find(|(member, _)| *member == name).map(|(_, slot)| slot.clone()))
}

/// Writes an object by its template. `fill` writes the value of a slot, given the member's name, or returns false to
/// omit the member.
pub fn write_template(
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
                write_template(out, inner, fill);
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

/// Writes an object by its template, with these values in its slots. Omits members whose slot has no value.
pub fn write_filled(out: &mut String, template: &WireTemplate, values: &[(TemplateSlot, &str)]) {
    write_template(out, template, &mut |_, slot, out| {
        let value = match slot {
            TemplateSlot::Raw(value) => value.as_str(),
            _ => match values.iter().find(|(filled, _)| filled == slot) {
                Some((_, value)) => value,
                None => return false,
            },
        };
        out.push_str(value);
        true
    });
}

/// Writes a part by its template. Its slot is its text, or the data or URL of its media; or the file id, in the members
/// `file_id_members`.
pub fn write_part(out: &mut String, part: &Part, template: &WireTemplate, file_id_members: &[&str]) {
    write_template(out, template, &mut |name, slot, out| {
        let token = match (slot, &part.body) {
            (TemplateSlot::Raw(value), _) => Some(value.as_str()),
            (TemplateSlot::Text, PartBody::Image(media) | PartBody::File(media)) => {
                let id = media.file_id.as_ref().filter(|_| file_id_members.contains(&name));
                media.data.as_ref().or(media.url.as_ref()).or(id).map(JsonStr::token)
            }
            (TemplateSlot::Text, _) => text_of(part).map(JsonStr::token),
            _ => None,
        };
        out.push_str(token.unwrap_or_default());
        token.is_some()
    });
}

/// Returns true if a template equals `pattern`, the JSON of an object in which slots are written as `#id`, `#name` and
/// so on. An object with such a template can be written without it.
pub fn matches_pattern(template: &WireTemplate, pattern: &str) -> bool {
    let mut written = String::new();
    write_template(&mut written, template, &mut |_, slot, out| {
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
    written == pattern
}

/// Returns a part with its template, or without it if `write_block` writes the same bytes either way. `write_block`
/// writes a part of its dialect, by its template if the flag is true; it returns false if the dialect has no block for
/// the part.
pub fn without_plain_template(
    write_block: &dyn Fn(&mut String, &Part, bool) -> bool,
    body: PartBody,
    template: WireTemplate,
) -> Part {
    let mut part = Part { body, template: Some(template), phase: None };
    let (mut native, mut plain) = (String::new(), String::new());
    write_block(&mut native, &part, true);
    // A block of another dialect takes members of the template: without it, it has the standard ones alone.
    let template = part.template.take();
    if !(write_block(&mut plain, &part, false) && native == plain) {
        part.template = template;
    }
    part
}
