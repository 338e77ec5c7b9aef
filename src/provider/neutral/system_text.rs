//! System messages for dialects that take them as text alone.

use super::text::MessageText;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{Json, JsonStr};
use crate::message::{Message, Part, PartBody, Role};
use crate::provider::spec::ContentProfile;

/// The sentence about a part of a system message that is no text.
pub(crate) const SYSTEM_TEXT_ONLY: &str = "a system message of this dialect holds only text; this part is left out";

/// Returns true if a part of a system message is text. Reports reasoning, images, files and opaque blocks.
pub(crate) fn is_system_text(part: &Part, message: &Message, report: &mut Report) -> bool {
    match part.body {
        PartBody::Text(_) | PartBody::Refusal(_) => true,
        PartBody::Data { .. } | PartBody::ToolCall { .. } => false,
        PartBody::Reasoning(_) | PartBody::Image(_) | PartBody::File(_) | PartBody::Opaque(_) => {
            let finding = Finding::info(FindingCode::UnsupportedPart, SYSTEM_TEXT_ONLY);
            report.push(finding.of_message(&message.id).with_action(Action::Dropped));
            false
        }
    }
}

/// Returns the texts of system messages as paragraphs of one text, for a member beside the list. Reports what `target`
/// has no place for there.
pub(crate) fn system_texts(messages: &[&Message], target: &ContentProfile, report: &mut Report) -> Option<Json> {
    let mut texts = Vec::new();
    for message in messages {
        for part in &message.parts {
            is_system_text(part, message, report);
        }
        // What this drops is reported.
        let text = MessageText::of(message, target, &mut Report::new()).joined();
        texts.extend((!text.is_empty()).then_some(text));
    }
    (!texts.is_empty()).then(|| JsonStr::joined(&mut texts.iter(), "\\n\\n").to_json())
}

/// Reads a message of the user or the system for `target`, which has only text in the system's, unless they are its
/// own. Reports images and files that are left out. Reasoning and opaque blocks are reported for every target.
pub(crate) fn input_text<'m>(message: &'m Message, target: &ContentProfile, report: &mut Report) -> MessageText<'m> {
    if message.role == Role::User || message.dialect == Some(target.dialect) {
        return MessageText::of(message, target, report);
    }
    for part in &message.parts {
        if matches!(part.body, PartBody::Image(_) | PartBody::File(_)) {
            is_system_text(part, message, report);
        }
    }
    MessageText::of(message, target, &mut Report::new())
}
