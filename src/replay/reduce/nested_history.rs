//! The conversation before a handoff as one message (R31):
//!
//! ```text
//! For context, the conversation so far between the user and the agents before you:
//! <conversation>
//! 1. user: Hello
//! 2. assistant called look (call_1): {"n":1}
//! 3. result of look (call_1): It is
//!     two lines long.
//! </conversation>
//! ```
//!
//! The lines of the message of an earlier handoff are taken over, so it is not nested again. The same text from anybody
//! else is one entry.

use super::context::dropped;
use crate::finding::Report;
use crate::json::{JsonKind, JsonRef};
use crate::message::{Message, PartBody, Role};
use crate::replay::request_draft::{DraftCall, DraftMessage, DraftOrigin, DraftResult, RequestDraft};
use crate::synthetic_result::{INTERRUPTED, PENDING};
use crate::tool::ToolResult;
use std::borrow::Cow;
use std::cell::OnceCell;

/// What precedes the lines.
const PREFIX: &str =
    "For context, the conversation so far between the user and the agents before you:\n<conversation>\n";
/// What follows the lines.
const SUFFIX: &str = "</conversation>";
/// What the further lines of an entry begin with, so that no text can be taken for another entry.
const INDENT: &str = "    ";

/// Replaces all messages, except system messages and the user's newest message, by one message with a transcript. It
/// precedes the user's, so that the request ends with a question.
pub(super) fn nest<'h>(draft: &mut RequestDraft<'h>, nested: &'h OnceCell<Message>, report: &mut Report) {
    let is_question = |item: &DraftMessage<'_>| {
        let is_user = item.message.role == Role::User && item.origin != DraftOrigin::LateResult;
        is_user && item.origin != DraftOrigin::Replacement && item.has_content()
    };
    let question = draft.messages.iter().rposition(is_question);
    let is_nested = |at: usize, item: &DraftMessage<'_>| !item.is_system() && Some(at) != question;
    if nested.get().is_none() {
        let mut transcript = Transcript::default();
        let covered = draft.messages.iter().enumerate().filter(|(at, item)| is_nested(*at, item));
        covered.for_each(|(_, item)| transcript.add(item));
        if transcript.entries.is_empty() {
            return;
        }
        // The assistant's before a message of the user, so that roles alternate.
        let role = if question.is_some() { Role::Assistant } else { Role::User };
        nested.get_or_init(|| Message::from_text(role, &transcript.text()));
    }
    let Some(message) = nested.get() else { return };
    let mut created = Some(DraftMessage::created(message, DraftOrigin::Replacement));
    let mut messages = Vec::new();
    for (at, item) in std::mem::take(&mut draft.messages).into_iter().enumerate() {
        if !item.is_system() {
            messages.extend(created.take());
        }
        if is_nested(at, &item) {
            report.push(dropped(&item, "it is part of the history that is nested for the next agent"));
        } else {
            messages.push(item);
        }
    }
    draft.messages = messages;
}

/// The lines of a conversation.
#[derive(Default)]
struct Transcript {
    /// Without their numbers.
    entries: Vec<String>,
}

impl Transcript {
    fn push(&mut self, speaker: &str, text: &str) {
        self.entries.push(format!("{speaker}: {text}").replace('\n', &format!("\n{INDENT}")));
    }

    /// Adds the content of a message, and its calls with their results.
    fn add(&mut self, item: &DraftMessage<'_>) {
        let message = item.message;
        let agent = message.answer.as_ref().and_then(|answer| answer.agent.as_deref());
        let role = message.role.as_str();
        let speaker = agent.map_or_else(|| role.to_owned(), |agent| format!("{role} {agent}"));
        for part in &message.parts {
            match &part.body {
                PartBody::Text(text) => {
                    let text = text.decode();
                    let is_nested = item.origin == DraftOrigin::Replacement && self.add_nested(&text);
                    if !is_nested && !text.is_empty() {
                        self.push(&speaker, &text);
                    }
                }
                PartBody::Refusal(text) => self.push(&format!("{speaker} refused"), &text.decode()),
                PartBody::Reasoning(text) if !text.is_empty() => {
                    self.push(&format!("{speaker} thought"), &text.decode());
                }
                PartBody::Image(_) => self.push(&speaker, "[an image]"),
                PartBody::File(media) => {
                    let name = media.name.as_deref().unwrap_or("without a name");
                    self.push(&speaker, &format!("[a file, {name}]"));
                }
                PartBody::Opaque(_) => self.push(&speaker, "[content that only its provider reads]"),
                PartBody::ToolCall { .. } => {
                    if let Some(call) = item.call(&part.body) {
                        let invocation = call.invocation;
                        let title = format!("{speaker} called {} ({})", invocation.name, invocation.wire_id());
                        self.push(&title, &invocation.arguments.text());
                    }
                }
                PartBody::Reasoning(_) | PartBody::Data { .. } => {}
            }
        }
        for call in &item.calls {
            let (kind, text) = result_text(call);
            self.push(&format!("{kind} of {} ({})", call.invocation.name, call.invocation.wire_id()), &text);
        }
    }

    /// Adds the lines of a text that is such a message itself. Returns false for any other text.
    fn add_nested(&mut self, text: &str) -> bool {
        let Some(lines) = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) else { return false };
        for line in lines.lines() {
            match (line.strip_prefix(INDENT), self.entries.last_mut()) {
                (Some(_), Some(entry)) => {
                    entry.push('\n');
                    entry.push_str(line);
                }
                _ => {
                    let entry = line.split_once(". ").map_or(line, |(_, entry)| entry);
                    self.entries.push(entry.to_owned());
                }
            }
        }
        true
    }

    fn text(&self) -> String {
        let mut text = PREFIX.to_owned();
        for (index, entry) in self.entries.iter().enumerate() {
            text.push_str(&format!("{}. {entry}\n", index + 1));
        }
        text.push_str(SUFFIX);
        text
    }
}

fn result_text<'c>(call: &DraftCall<'c>) -> (&'static str, Cow<'c, str>) {
    match call.result {
        Some(DraftResult::Stored(result) | DraftResult::Cut { result, .. }) => {
            (if result.is_error { "error" } else { "result" }, content_text(result))
        }
        Some(DraftResult::Closing(text) | DraftResult::Placeholder(text)) => ("error", text.into()),
        None if call.invocation.is_deferred => ("result", PENDING.into()),
        None => ("error", INTERRUPTED.into()),
    }
}

fn content_text(result: &ToolResult) -> Cow<'_, str> {
    let content: JsonRef<'_> = result.content.view();
    match content.kind() {
        JsonKind::String => content.as_text().unwrap_or_default(),
        _ => content.as_raw().into(),
    }
}
