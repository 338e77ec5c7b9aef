//! Items of an answer that hold a list, as parts of a message: each entry of the list is a part, and the first has the
//! item's template. In that template the list is a slot:
//!
//! | slot | the list |
//! |---|---|
//! | `Object` | its first entry has that template, further parts follow |
//! | `Content` | its first entry is the part's opaque value, further parts follow |
//! | `Text` | it is a string: the part's text |
//!
//! The template of a further part has two members: a `Parts` slot as a mark, then its own `Object` or `Content`. So
//!
//! ```json
//! {"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}
//! ```
//!
//! becomes two text parts, with the templates `{"type":…,"role":…,"content":Object({"type":…,"text":Text})}` and
//! `{"":Parts,"":Object({"type":…,"text":Text})}`.

use super::neutral::text_of;
use super::wire_template::{template_with_slots, write_part};
use crate::history::IncomingPart;
use crate::json::{ArrayWriter, JsonRef, JsonStr, ObjectWriter};
use crate::message::{Part, PartBody, TemplateSlot, WireTemplate};

/// Decodes an item with a list: each entry of the list becomes a part. `body` reads an entry and names the member that
/// is its text.
pub(crate) fn decode_entries(
    item: JsonRef<'_>,
    (member, list): (&str, JsonRef<'_>),
    body: &dyn Fn(JsonRef<'_>) -> Option<(PartBody, &'static str)>,
    parts: &mut Vec<IncomingPart>,
) {
    for (at, entry) in list.items().enumerate() {
        let (body, slot) = match body(entry) {
            Some((body, text)) => {
                (body, TemplateSlot::Object(template_with_slots(entry, &[(text, TemplateSlot::Text)])))
            }
            None => (PartBody::Opaque(entry.to_owned()), TemplateSlot::Content),
        };
        let template = match at {
            0 => template_with_slots(item, &[(member, slot)]),
            _ => WireTemplate(vec![(JsonStr::new(""), TemplateSlot::Parts), (JsonStr::new(""), slot)]),
        };
        parts.push(IncomingPart::Part(Part { body, template: Some(template), phase: None }));
    }
}

/// Returns true if a part is a further entry in the list of the item before it.
pub(crate) fn continues_item(part: &Part) -> bool {
    part.template.as_ref().is_some_and(|template| matches!(template.0.first(), Some((_, TemplateSlot::Parts))))
}

/// Groups the parts of a message by item: each group is an item of one part, or with the further entries of its list.
/// Further entries whose item was removed are a group of their own. Data parts are left out.
pub(crate) fn grouped_by_item(parts: &[Part]) -> Vec<&[Part]> {
    let mut ranges: Vec<(usize, usize)> = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| !matches!(part.body, PartBody::Data { .. })) {
        match ranges.last_mut().filter(|(first, end)| *end == at && continues_item(part) && holds_list(parts, *first)) {
            Some((_, end)) => *end = at + 1,
            None => ranges.push((at, at + 1)),
        }
    }
    ranges.into_iter().filter_map(|(from, to)| parts.get(from..to)).collect()
}

/// Returns true if the part at that index is an entry of a list.
fn holds_list(parts: &[Part], at: usize) -> bool {
    let is_list = |slot: &TemplateSlot| matches!(slot, TemplateSlot::Object(_) | TemplateSlot::Content);
    let template = parts.get(at).and_then(|part| part.template.as_ref());
    template.is_some_and(|template| template.0.iter().any(|(_, slot)| is_list(slot)))
}

/// Writes an item in its original form; `parts` are the entries of its list. `without_id`: without its member `id`.
pub(crate) fn write_item(out: &mut String, parts: &[Part], template: &WireTemplate, without_id: bool) {
    let mut object = ObjectWriter::new(out);
    for (key, slot) in template.0.iter().filter(|(key, _)| !(without_id && key.inside() == "id")) {
        let out = object.key_token(key.token());
        match slot {
            TemplateSlot::Raw(value) => out.push_str(value.as_str()),
            TemplateSlot::Object(_) | TemplateSlot::Content => write_entries(out, parts, slot),
            _ => out.push_str(parts.first().and_then(text_of).map_or("\"\"", JsonStr::token)),
        }
    }
    object.end();
}

/// Writes the list of an item. `first_slot` is the form of its first entry; further entries have it in their template.
fn write_entries(out: &mut String, parts: &[Part], first_slot: &TemplateSlot) {
    let mut slot = first_slot;
    let mut list = ArrayWriter::new(out);
    for (at, part) in parts.iter().enumerate() {
        if at > 0
            && let Some((_, own)) = part.template.as_ref().and_then(|template| template.0.get(1))
        {
            slot = own;
        }
        let out = list.item();
        match (slot, &part.body) {
            // Gemini's interactions name a stored file in `uri`.
            (TemplateSlot::Object(template), _) => write_part(out, part, template, &["uri"]),
            (_, PartBody::Opaque(value)) => out.push_str(value.as_str()),
            _ => out.push_str("null"),
        }
    }
    list.end();
}
