//! Gives each part that a conversion leaves out a finding with its place in the given body (R42).

use super::message_encoder::{LEFT_OUT_PARTS, LEFT_OUT_REASONING};
use crate::finding::{Finding, FindingCode, Report};
use crate::history::History;
use crate::json::JsonRef;
use crate::message::{Dialect, Part, PartBody, Role};
use crate::provider::{NO_ASSISTANT_MEDIA, PartKind, REJECTED_MEDIA, SYSTEM_TEXT_ONLY, is_rejected_media, part_places};
use std::collections::{BTreeMap, VecDeque};

/// The findings of one sentence, and the parts that they are about.
struct DroppedParts<'k> {
    sentence: &'static str,
    is_of_kind: PartKind<'k>,
}

/// Returns a report of rendering in which findings about parts have a place in the body that the history was decoded
/// from: one finding a part. A finding keeps its form if its parts cannot be found there.
pub fn with_places(mut report: Report, history: &History, body: JsonRef<'_>, (from, to): (Dialect, Dialect)) -> Report {
    let is_media = |part: &Part| matches!(part.body, PartBody::Image(_) | PartBody::File(_));
    for kind in [
        DroppedParts { sentence: LEFT_OUT_PARTS, is_of_kind: &|_, part| matches!(part.body, PartBody::Opaque(_)) },
        DroppedParts {
            sentence: LEFT_OUT_REASONING,
            is_of_kind: &|_, part| matches!(&part.body, PartBody::Reasoning(text) if !text.is_empty()),
        },
        DroppedParts { sentence: REJECTED_MEDIA, is_of_kind: &|_, part| is_rejected_media(part, from, to) },
        DroppedParts {
            sentence: NO_ASSISTANT_MEDIA,
            is_of_kind: &|role, part| role == Role::Assistant && is_media(part),
        },
        DroppedParts {
            sentence: SYSTEM_TEXT_ONLY,
            is_of_kind: &|role, part| {
                let is_other = matches!(part.body, PartBody::Reasoning(_) | PartBody::Opaque(_));
                matches!(role, Role::System | Role::Developer) && (is_other || is_media(part))
            },
        },
    ] {
        report = kind.place(report, history, (body, from));
    }
    report
}

impl DroppedParts<'_> {
    fn place(&self, report: Report, history: &History, (body, from): (JsonRef<'_>, Dialect)) -> Report {
        let mut findings_left: BTreeMap<String, usize> = BTreeMap::new();
        for id in report.iter().filter_map(|finding| self.message_of(finding)) {
            *findings_left.entry(id.to_owned()).or_default() += 1;
        }
        if findings_left.is_empty() {
            return report;
        }
        let Some(mut places) = self.places_by_message(history, part_places(body, from, self.is_of_kind)) else {
            return report;
        };
        let mut placed = Report::new();
        for finding in report {
            let id = self.message_of(&finding).unwrap_or_default();
            let (Some(left), Some(own)) = (findings_left.get_mut(id), places.get_mut(id)) else {
                placed.push(finding);
                continue;
            };
            // The last finding of a message is about all of its parts that are left.
            let count = if *left == 1 { own.len() } else { own.len().min(1) };
            *left = left.saturating_sub(1);
            if count == 0 {
                placed.push(finding.clone());
            }
            placed.extend(own.drain(..count).map(|place| finding.clone().at(place)));
        }
        placed
    }

    /// Returns the id of the message that a finding of this sentence is about.
    fn message_of<'f>(&self, finding: &'f Finding) -> Option<&'f str> {
        let is_own =
            finding.code == FindingCode::UnsupportedPart && finding.path.is_none() && finding.message == self.sentence;
        finding.message_id.as_deref().filter(|_| is_own)
    }

    /// Returns the places of the parts of each message; `None` if the history has not the parts that the body has: a
    /// repair has changed it.
    fn places_by_message(&self, history: &History, places: Vec<String>) -> Option<BTreeMap<String, VecDeque<String>>> {
        let mut rest: VecDeque<String> = places.into();
        let mut by_message = BTreeMap::new();
        for message in history.messages() {
            let count = message.parts.iter().filter(|part| (self.is_of_kind)(message.role, part)).count();
            if count > rest.len() {
                return None;
            }
            if count > 0 {
                by_message.insert(message.id.clone(), rest.drain(..count).collect());
            }
        }
        rest.is_empty().then_some(by_message)
    }
}
