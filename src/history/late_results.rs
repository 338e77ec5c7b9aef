//! Results that came after the conversation had gone on without them (R75), and the messages before which requests
//! contain them.

use crate::json::{JsonKind, JsonRef};
use crate::message::{Dialect, Message, Role};
use crate::synthetic_result::{EXPIRED, LATE_RESULT, WITHHELD};
use crate::tool::ToolInvocation;
use std::collections::{BTreeMap, BTreeSet};

/// The late results of a history.
///
/// A late result has no place of its own in the log: its place is before the message that lists it
/// ([`Message::late_results`]), which is the first one that was sent or stored after it. So it stays where the request
/// had it.
#[derive(Clone, Debug, Default)]
pub struct LateResults {
    /// In the order in which they were stored.
    list: Vec<LateResult>,
    /// The index in `list`, by invocation.
    index: BTreeMap<String, usize>,
    /// The id of the first message that lists a result, by invocation.
    placed: BTreeMap<String, String>,
    /// The indexes of those that no message lists.
    unplaced: BTreeSet<usize>,
    /// In the beginning of a turn: the invocations of those that end its request, which was sent with them.
    end: Option<Vec<String>>,
}

/// A result that came after the conversation had gone on without it.
#[derive(Clone, Debug)]
pub struct LateResult {
    /// The id of the invocation.
    pub invocation: String,
    /// The message that is sent, in dialects in which a result has one place only.
    pub message: Message,
    /// The message that is sent when the result is too old.
    pub expired: Message,
}

impl LateResult {
    /// Returns the late result of a call, which comes after the message `last`. `dialect`: that of the call's message.
    pub(super) fn of(call: &ToolInvocation, last: Option<&Message>, dialect: Option<Dialect>) -> Option<Self> {
        let content = match &call.result {
            Some(result) => text_of(result.content.view()),
            // The model must not wait for it.
            None if call.has_withheld_result() => WITHHELD.to_owned(),
            None => return None,
        };
        let is_error = call.result.as_ref().is_some_and(|result| result.is_error);
        let verb = if is_error { "failed" } else { "returned" };
        let (name, id) = (&call.name, call.wire_id());
        let message = |verb: &str, content: &str| {
            let text = format!("{LATE_RESULT} The call \"{id}\" of the tool \"{name}\" {verb}:\n{content}");
            Message {
                id: format!("{}{ID_SUFFIX}", call.id),
                turn: last.map_or(0, |last| last.turn),
                seq: last.map_or(0, |last| last.seq),
                created_at: call.finished_at.unwrap_or(call.stored_at),
                dialect,
                ..Message::from_text(Role::User, &text)
            }
        };
        let (message, expired) = (message(verb, &content), message("returned", EXPIRED));
        Some(Self { invocation: call.id.clone(), message, expired })
    }

    /// Returns the id of the invocation that a message has the late result of.
    #[must_use]
    pub fn invocation_of(message: &Message) -> Option<&str> {
        Self::invocation_of_id(&message.id)
    }

    /// As [`invocation_of`](Self::invocation_of), by the id of the message.
    #[must_use]
    pub fn invocation_of_id(id: &str) -> Option<&str> {
        id.strip_suffix(ID_SUFFIX)
    }
}

/// What the id of a message has after that of the invocation.
const ID_SUFFIX: &str = "\u{1}result";

/// Returns the text of a result: the string that it is, the texts of its blocks, or its JSON.
fn text_of(content: JsonRef<'_>) -> String {
    let texts: Vec<String> = content.items().filter_map(|block| Some(block.text("text")?.into_owned())).collect();
    match content.kind() {
        JsonKind::String => content.as_text().map_or_else(String::new, std::borrow::Cow::into_owned),
        JsonKind::Array if !texts.is_empty() && texts.len() == content.items().count() => texts.join("\n"),
        _ => content.as_raw().to_owned(),
    }
}

impl LateResults {
    /// Adds a result, or replaces the one of the same call.
    pub(super) fn add(&mut self, late: LateResult) {
        if let Some(known) = self.index.get(&late.invocation).and_then(|at| self.list.get_mut(*at)) {
            *known = late;
            return;
        }
        if !self.placed.contains_key(&late.invocation) {
            self.unplaced.insert(self.list.len());
        }
        self.index.insert(late.invocation.clone(), self.list.len());
        self.list.push(late);
    }

    /// Places the results that a message lists. The first message of several that list one counts.
    pub(super) fn add_message(&mut self, message: &Message) {
        for invocation in &message.late_results {
            self.placed.entry(invocation.clone()).or_insert_with(|| message.id.clone());
            if let Some(at) = self.index.get(invocation) {
                self.unplaced.remove(at);
            }
        }
    }

    pub(super) fn set_end(&mut self, invocations: Vec<String>) {
        self.end = Some(invocations);
    }

    /// Returns the invocations of the results that end a request, if it is to be as one that was sent.
    #[must_use]
    pub fn end(&self) -> Option<&[String]> {
        self.end.as_deref()
    }

    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the late result of a call.
    #[must_use]
    pub fn get(&self, invocation: &str) -> Option<&LateResult> {
        self.list.get(*self.index.get(invocation)?)
    }

    /// Returns the id of the message before which a result is sent, if one lists it.
    #[must_use]
    pub fn place(&self, invocation: &str) -> Option<&str> {
        self.placed.get(invocation).map(String::as_str)
    }

    /// Iterates over the results that no message lists, in the order in which they were stored.
    pub fn unplaced(&self) -> impl Iterator<Item = &LateResult> {
        self.unplaced.iter().filter_map(|at| self.list.get(*at))
    }

    /// Returns the ids of the invocations of the results that no message lists.
    #[must_use]
    pub fn unplaced_ids(&self) -> Vec<String> {
        self.unplaced().map(|late| late.invocation.clone()).collect()
    }
}
