//! Redaction of saves (R12): the `persist` function of a tool decides what is stored of a call, before the call is
//! saved and again with its result. The live turn keeps the original values; every [`Save`](super::Save) is redacted
//! here.

use super::effect::{Save, SaveKind};
use super::journal::JournalEntry;
use super::persist_question::{PersistQuestion, PersistReply};
use crate::finding::{Action, Finding, FindingCode};
use crate::history::{History, HistoryEntry, ResultEntry};
use crate::id::{IdMap, Seed};
use crate::json::{Json, JsonRef, JsonStr};
use crate::message::{Message, PartBody};
use crate::replay::Callback;
use crate::tool::{Arguments, ToolInvocation, ToolResult};
use std::collections::BTreeMap;

/// The tools with a `persist` function.
pub(super) type PersistCallbacks = BTreeMap<String, Callback>;

/// The replies for the calls of a run.
#[derive(Clone, Debug)]
pub(super) struct Redactions {
    by_invocation: IdMap<Redaction>,
    /// The save that `next` belongs to.
    save: u64,
    /// Index of the first entry of that save, and of the first call in it, for which `persist` may have to be called.
    next: (usize, usize),
}

#[derive(Clone, Debug, Default)]
struct Redaction {
    /// True if the application was asked with the result.
    with_result: bool,
    arguments: Option<Json>,
    result: Option<Json>,
    withheld: bool,
    /// True if `persist` failed: nothing of the call is stored, and it is not asked again.
    failed: bool,
}

impl Redaction {
    /// Returns true if the call is not stored unchanged.
    fn changes(&self) -> bool {
        self.withheld || self.arguments.is_some() || self.result.is_some()
    }
}

impl Redactions {
    /// Creates an empty set of redactions.
    pub fn new(seed: Seed) -> Self {
        Self { by_invocation: IdMap::with_seed(seed), save: 0, next: (0, 0) }
    }

    /// Takes the next question about the next save. Of a call whose question is not answered, only its existence is
    /// stored.
    pub fn take_question(
        &mut self,
        save: &Save,
        callbacks: &PersistCallbacks,
        live: &History,
    ) -> Option<PersistQuestion> {
        if callbacks.is_empty() {
            return None;
        }
        let (mut entry, mut at) = if self.save == save.id { self.next } else { (0, 0) };
        let mut found = None;
        while let Some(calls) = calls_of_entry(&save.kind, entry, live) {
            found = calls.get(at).and_then(|call| self.question(call, callbacks));
            if found.is_some() {
                break;
            }
            (entry, at) = if at < calls.len() { (entry, at + 1) } else { (entry + 1, 0) };
        }
        (self.save, self.next) = (save.id, (entry, at));
        found
    }

    /// Returns the question about a call, unless it was asked.
    fn question(&self, call: &ToolInvocation, callbacks: &PersistCallbacks) -> Option<PersistQuestion> {
        let callback = callbacks.get(&call.name)?;
        let known = self.by_invocation.get(&call.id);
        // Of a call from a journal, only the stored values are known.
        let is_result_asked = |known: &Redaction| {
            // `Session.answer` has asked about a result that came later.
            known.with_result || call.result.is_none() || call.has_redacted_result
        };
        let is_asked = call.redacted || known.is_some_and(|known| known.failed || is_result_asked(known));
        if is_asked {
            return None;
        }
        let text = call.arguments.text();
        let text = if text.trim().is_empty() { "{}" } else { &text };
        Some(PersistQuestion {
            callback: callback.clone(),
            invocation: call.id.clone(),
            name: call.name.clone(),
            arguments: JsonRef::parse(text).map_or_else(|_| JsonStr::new(text).to_json(), JsonRef::to_owned),
            // Before the call itself is saved, the question is about the call alone.
            result: known.and(call.result.as_ref()).map(|result| result.content.clone()),
        })
    }

    /// Keeps the reply to a question. Returns a finding if `persist` failed for the first time.
    pub fn take_reply(&mut self, question: &PersistQuestion, reply: PersistReply) -> Option<Finding> {
        let known = self.by_invocation.get_or_insert(&question.invocation, Redaction::default());
        known.with_result |= question.result.is_some();
        match reply {
            PersistReply::Replaced { arguments, result } => {
                // An earlier reply withheld the arguments; they stay hidden.
                let is_hidden = known.withheld && known.arguments.is_none();
                known.arguments = arguments.or(known.arguments.take());
                if is_hidden {
                    known.arguments.get_or_insert_with(|| Json::trusted("{}".into()));
                }
                known.result = result;
                known.withheld = false;
            }
            PersistReply::Nothing => known.withheld = true,
            PersistReply::Failed(why) => {
                let first = !std::mem::replace(&mut known.failed, true);
                known.withheld = true;
                if first {
                    let text = format!(
                        "`persist` of the tool \"{}\" failed; nothing of the call is stored: {why}",
                        question.name
                    );
                    return Some(Finding::warning(FindingCode::CallbackFailed, text).with_action(Action::Dropped));
                }
            }
        }
        None
    }

    /// Removes from a save what must not be stored.
    pub fn redact(&self, kind: &mut SaveKind, callbacks: &PersistCallbacks, live: &History) {
        let redaction = TurnRedaction { replies: &self.by_invocation, callbacks, live };
        if let SaveKind::Fail(entry) = kind
            && redaction.has_redacted_call()
        {
            replace_failure_text(entry);
        }
        if !callbacks.is_empty() {
            redaction.redact(kind);
        }
    }
}

/// The redaction of a turn's saves by the replies so far.
struct TurnRedaction<'r> {
    replies: &'r IdMap<Redaction>,
    callbacks: &'r PersistCallbacks,
    live: &'r History,
}

impl TurnRedaction<'_> {
    fn redact(&self, kind: &mut SaveKind) {
        match kind {
            SaveKind::Write(journal) => self.redact_journal(journal),
            SaveKind::Append(history) => self.redact_history(history),
            SaveKind::Store { journal, history } => {
                self.redact_journal(journal);
                self.redact_history(history);
            }
            SaveKind::Begin(_) | SaveKind::Fail(_) => {}
        }
    }

    fn redact_journal(&self, entries: &mut Vec<JournalEntry>) {
        let mut redactions = Vec::new();
        for entry in entries.iter_mut() {
            match entry {
                JournalEntry::Answered { message, invocations } => {
                    for call in invocations.iter_mut() {
                        self.redact_call(call);
                    }
                    if invocations.iter().any(|call| call.redacted) {
                        strip(message);
                    }
                }
                JournalEntry::Partial(message) | JournalEntry::Completed(Some(message)) => strip(message),
                JournalEntry::Finished(entry) => {
                    if let Some(redaction) = self.redact_result(entry) {
                        redactions.push(redaction);
                    }
                }
                JournalEntry::Began(_)
                | JournalEntry::Queued(_)
                | JournalEntry::Started { .. }
                | JournalEntry::Failed { .. }
                | JournalEntry::ApprovalNeeded { .. }
                | JournalEntry::Approved { .. }
                | JournalEntry::Redacted { .. }
                | JournalEntry::Withheld { .. }
                | JournalEntry::Completed(None)
                | JournalEntry::HandedOff { .. }
                | JournalEntry::Selected(_)
                | JournalEntry::Healed { .. }
                | JournalEntry::Background(_)
                | JournalEntry::Retrying { .. } => {}
            }
        }
        entries.retain(|entry| !matches!(entry, JournalEntry::Redacted { .. }));
        entries.append(&mut redactions);
    }

    fn redact_history(&self, entries: &mut [HistoryEntry]) {
        let mut redacted: IdMap<()> = IdMap::with_seed(self.live.seed());
        for entry in entries.iter_mut() {
            match entry {
                HistoryEntry::Invocation(call) => {
                    self.redact_call(call);
                    if call.redacted {
                        redacted.insert(call.message_id.clone(), ());
                    }
                }
                // The arguments were stored before, as `persist` returned them then.
                HistoryEntry::Result(result) => {
                    self.redact_result(result);
                }
                HistoryEntry::Message(_) | HistoryEntry::SetAside(_) => {}
            }
        }
        for entry in entries {
            if let HistoryEntry::Message(message) = entry
                && redacted.contains_key(&message.id)
            {
                strip(message);
            }
        }
    }

    /// Returns true if a call of this turn is redacted. A provider's error may quote it.
    fn has_redacted_call(&self) -> bool {
        self.live.invocations().iter().any(|call| {
            call.redacted
                || self.callbacks.contains_key(&call.name) && self.replies.get(&call.id).is_none_or(Redaction::changes)
        })
    }

    fn redact_call(&self, call: &mut ToolInvocation) {
        if !self.callbacks.contains_key(&call.name) {
            return;
        }
        let Some(known) = self.replies.get(&call.id) else {
            // There was no reply: a call from a journal is stored already, of any other one nothing is stored.
            if !call.redacted {
                call.withhold();
            }
            return;
        };
        if known.withheld {
            return call.withhold();
        }
        if !known.changes() {
            return;
        }
        call.redacted = true;
        call.template = None;
        if let Some(arguments) = stored_arguments(call, known) {
            call.arguments = arguments;
        }
        if let (Some(content), Some(result)) = (&known.result, &mut call.result) {
            *result = replaced(content, result);
        }
    }

    /// Redacts a result. Returns the journal entry that redacts its call, if the call changes with it.
    fn redact_result(&self, entry: &mut ResultEntry) -> Option<JournalEntry> {
        let call = self.live.invocation(&entry.invocation)?;
        if !self.callbacks.contains_key(&call.name) || call.redacted {
            return None;
        }
        let known = self.replies.get(&call.id);
        if known.is_none_or(|known| known.withheld) {
            entry.result = None;
            return Some(JournalEntry::Redacted { invocation: call.id.clone(), arguments: None });
        }
        let known = known.filter(|known| known.changes())?;
        if let (Some(content), Some(result)) = (&known.result, &mut entry.result) {
            *result = replaced(content, result);
        }
        let arguments = stored_arguments(call, known).unwrap_or_else(|| call.arguments.clone());
        Some(JournalEntry::Redacted { invocation: call.id.clone(), arguments: Some(arguments) })
    }
}

/// Returns the calls in an entry of a save; `None` after the last entry.
fn calls_of_entry<'s>(kind: &'s SaveKind, at: usize, live: &'s History) -> Option<&'s [ToolInvocation]> {
    match kind {
        SaveKind::Write(journal) => journal.get(at).map(|entry| calls_in_journal(entry, live)),
        SaveKind::Append(history) => history.get(at).map(|entry| calls_in_history(entry, live)),
        SaveKind::Store { journal, history } => match journal.get(at) {
            Some(entry) => Some(calls_in_journal(entry, live)),
            None => history.get(at.saturating_sub(journal.len())).map(|entry| calls_in_history(entry, live)),
        },
        SaveKind::Begin(_) | SaveKind::Fail(_) => None,
    }
}

fn calls_in_journal<'s>(entry: &'s JournalEntry, live: &'s History) -> &'s [ToolInvocation] {
    match entry {
        JournalEntry::Answered { invocations, .. } => invocations,
        JournalEntry::Finished(result) => answered_call(result, live),
        JournalEntry::Began(_)
        | JournalEntry::Queued(_)
        | JournalEntry::Started { .. }
        | JournalEntry::Failed { .. }
        | JournalEntry::ApprovalNeeded { .. }
        | JournalEntry::Approved { .. }
        | JournalEntry::Redacted { .. }
        | JournalEntry::Withheld { .. }
        | JournalEntry::Retrying { .. }
        | JournalEntry::HandedOff { .. }
        | JournalEntry::Selected(_)
        | JournalEntry::Healed { .. }
        | JournalEntry::Background(_)
        | JournalEntry::Completed(_)
        | JournalEntry::Partial(_) => &[],
    }
}

fn calls_in_history<'s>(entry: &'s HistoryEntry, live: &'s History) -> &'s [ToolInvocation] {
    match entry {
        HistoryEntry::Invocation(call) => std::slice::from_ref(call),
        HistoryEntry::Result(result) => answered_call(result, live),
        HistoryEntry::Message(_) | HistoryEntry::SetAside(_) => &[],
    }
}

fn answered_call<'s>(result: &ResultEntry, live: &'s History) -> &'s [ToolInvocation] {
    live.invocation(&result.invocation).map(std::slice::from_ref).unwrap_or_default()
}

/// Returns the arguments to store instead of a call's own, in the same form. `None` keeps its own. Empty arguments
/// would mean that the call is withheld, so `{}` replaces them.
fn stored_arguments(call: &ToolInvocation, known: &Redaction) -> Option<Arguments> {
    let empty = matches!(&call.arguments, Arguments::Text(text) if text.is_empty());
    let own = known.arguments.as_ref().map(Json::as_str).or(empty.then_some("{}"))?;
    Some(match &call.arguments {
        Arguments::Text(_) => Arguments::Text(JsonStr::new(own)),
        Arguments::Value(_) => Arguments::Value(Json::trusted(own.to_owned())),
    })
}

fn replaced(content: &Json, result: &ToolResult) -> ToolResult {
    ToolResult { content: content.clone(), is_error: result.is_error, dialect: None, template: None }
}

/// Replaces the text of a stored failure, which may quote the provider, the host or the application.
fn replace_failure_text(failure: &mut JournalEntry) {
    if let JournalEntry::Failed { code, message, .. } = failure
        && !matches!(code.as_str(), "max_turns" | "aborted")
    {
        *message = format!(
            "the run failed ({code}); the text of the error is not stored, since a tool call of this turn is redacted"
        );
    }
}

/// Removes the provider's own blocks and members from a message, which may repeat the content of a redacted call.
fn strip(message: &mut Message) {
    message.template = None;
    message.parts.retain(|part| !matches!(part.body, PartBody::Opaque(_)));
}
