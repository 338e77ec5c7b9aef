//! Members of a body's messages that another dialect has no place for (R42).

use super::neutral::{asks_for_citations, common_detail, rejected_media};
use super::registry::spec;
use super::spec::{ContentMeaning, ContentMember, ContentProfile, DialectSpec};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{JsonKind, JsonRef};
use crate::message::{Dialect, Media, Part, PartBody};

/// Reports the members of a body's messages that are lost in another dialect, each at its place. Members that say
/// nothing about the conversation, such as marks for a cache, are not reported.
pub fn lost_members(body: JsonRef<'_>, from: Dialect, to: Dialect) -> Report {
    let (source, target) = (spec(from), spec(to));
    let name = source.items.list;
    let (list, path) = match body.kind() {
        JsonKind::Array => (body, String::new()),
        _ => (body.find(name).unwrap_or_default(), format!("/{name}")),
    };
    let mut report = Report::new();
    for member in source.content.members {
        // Few bodies have one of these members, and a search for its name reads the body once.
        if !list.as_raw().contains(&format!("\"{}\"", member.name())) {
            continue;
        }
        let steps: Vec<&str> = member.path.split('/').collect();
        let mut report_lost = |item: JsonRef<'_>, path: &str| {
            visit(Place { value: item, block: None }, (&steps, path), &mut |place, path| {
                if is_said(member, item, place.value) && !is_carried(member, &place, (source, target.content)) {
                    report.push(lost(member, target.content).at(path));
                }
            });
        };
        if source.items.takes_single_item && list.is_object() {
            report_lost(list, &path);
        }
        list.items().enumerate().for_each(|(at, item)| report_lost(item, &format!("{path}/{at}")));
    }
    report
}

fn lost(member: &ContentMember, target: &ContentProfile) -> Finding {
    let (name, to) = (member.name(), target.dialect.as_str());
    let sentence = if member.meaning == ContentMeaning::DocumentCitations && target.has_member(member.meaning) {
        format!(
            "`{name}` of a document is not taken over to the dialect \"{to}\", which refuses it in some requests; \
             where yours takes it, set it for all documents"
        )
    } else {
        format!("`{name}` has no place in the dialect \"{to}\"")
    };
    Finding::info(FindingCode::UnsupportedKey, sentence).with_action(Action::Dropped)
}

/// A value in an item, and the element of the innermost list that it is in.
struct Place<'b> {
    value: JsonRef<'b>,
    block: Option<JsonRef<'b>>,
}

/// Calls a function with each value at a path in an item, and with its JSON pointer.
fn visit<'b>(place: Place<'b>, (steps, path): (&[&str], &str), found: &mut dyn FnMut(Place<'b>, &str)) {
    match steps.split_first() {
        None => found(place, path),
        Some((&"*", rest)) => {
            for (at, value) in place.value.items().enumerate() {
                visit(Place { value, block: Some(value) }, (rest, &format!("{path}/{at}")), found);
            }
        }
        Some((name, rest)) => {
            if let Some(value) = place.value.find(name) {
                visit(Place { value, block: place.block }, (rest, &format!("{path}/{name}")), found);
            }
        }
    }
}

/// Returns true if a member says something: its value is not empty, and not the one that services assume without it.
fn is_said(member: &ContentMember, item: JsonRef<'_>, value: JsonRef<'_>) -> bool {
    match member.meaning {
        // The name in a result is that of the tool.
        ContentMeaning::Speaker => {
            !value.is_text("") && !item.has_text("role", "tool") && !item.has_text("role", "function")
        }
        ContentMeaning::ImageDetail => !value.is_text("auto"),
        ContentMeaning::DocumentCitations => asks_for_citations(value),
        ContentMeaning::Citations => value.items().next().is_some(),
        ContentMeaning::VideoClip => value.entries().next().is_some(),
        ContentMeaning::FileName | ContentMeaning::DocumentContext | ContentMeaning::MediaResolution => {
            !value.is_text("")
        }
    }
}

/// Returns true if the member is sent, or if all that it belongs to is left out with a finding of its own.
fn is_carried(member: &ContentMember, place: &Place<'_>, (source, target): (&DialectSpec, &ContentProfile)) -> bool {
    let part = || place.block.map(|block| source.messages.decode_block(block));
    let is_sent = |part: &Part| rejected_media(part, Some(source.dialect()), target).is_none();
    let file = |part: &Part| match &part.body {
        PartBody::File(media) if is_sent(part) => Some(media.clone()),
        _ => None,
    };
    let keeps_or_drops_file =
        |names: &dyn Fn(&Media) -> bool| part().and_then(|part| file(&part)).is_none_or(|file| names(&file));
    match member.meaning {
        ContentMeaning::Speaker | ContentMeaning::Citations => false,
        ContentMeaning::FileName => keeps_or_drops_file(&target.names_file),
        ContentMeaning::DocumentContext => keeps_or_drops_file(&|_| target.has_member(member.meaning)),
        ContentMeaning::DocumentCitations => keeps_or_drops_file(&|_| false),
        ContentMeaning::ImageDetail | ContentMeaning::MediaResolution | ContentMeaning::VideoClip => {
            // Files have a `detail` in one dialect alone.
            let keeps_detail = member.meaning == ContentMeaning::ImageDetail
                && common_detail(place.value).is_some()
                && target.has_member(member.meaning);
            part().is_none_or(|part| match part.body {
                PartBody::Image(_) => keeps_detail || !is_sent(&part),
                PartBody::File(_) => !is_sent(&part),
                _ => true,
            })
        }
    }
}
