//! What is stored of a call whose tool has `persist` (R12): the application says, before the call is written and again with
//! its result. The live turn keeps the raw values; everything that a [`Save`](super::Save) holds is redacted here.

use super::effect::SaveKind;
use super::{JournalEntry, Run};
use crate::finding::{Action, Finding, FindingCode};
use crate::history::{HistoryEntry, ResultEntry};
use crate::id::{IdMap, Seed};
use crate::json::{Json, JsonRef, JsonStr};
use crate::message::{Message, PartBody};
use crate::replay::Callback;
use crate::tool::{Arguments, ToolInvocation, ToolResult};

/// A question: what is stored of this call.
#[derive(Clone, Debug, PartialEq)]
pub struct PersistQuestion {
    /// Whom.
    pub callback: Callback,
    /// Which invocation.
    pub invocation: String,
    /// Its tool.
    pub name: String,
    /// What the model wrote; a text where that is no JSON.
    pub arguments: Json,
    /// What came back, if that is known.
    pub result: Option<Json>,
}

/// What is stored.
#[derive(Clone, Debug, PartialEq)]
pub enum PersistReply {
    /// These in the place of what was said; what is absent is stored as it is.
    Replaced {
        /// In the place of the arguments.
        arguments: Option<Json>,
        /// In the place of the result.
        result: Option<Json>,
    },
    /// Nothing but that it was called.
    Nothing,
    /// The callback threw, or gave something else: then nothing, too.
    Failed(String),
}

/// What was said of a run's calls.
#[derive(Clone, Debug)]
pub struct Redactions {
    by_invocation: IdMap<Redaction>,
    /// The save that `next` belongs to.
    save: u64,
    /// Index of the first entry of that save, and of the first call in it, for which `persist` may have to be called.
    next: (usize, usize),
}

impl Redactions {
    /// Starts without any redaction.
    pub fn new(seed: Seed) -> Self {
        Self { by_invocation: IdMap::with_seed(seed), save: 0, next: (0, 0) }
    }
}

#[derive(Clone, Debug, Default)]
struct Redaction {
    /// It was asked with the result.
    with_result: bool,
    arguments: Option<Json>,
    result: Option<Json>,
    withheld: bool,
    /// It threw: nothing of this call is stored, and it is not asked again.
    failed: bool,
}

impl Redaction {
    fn changes(&self) -> bool {
        self.withheld || self.arguments.is_some() || self.result.is_some()
    }
}

impl Run {
    /// The next question about what is to be written next. Where it is not answered, nothing of the call is stored.
    pub fn take_persist_question(&mut self) -> Option<PersistQuestion> {
        if self.setup.persist.is_empty() {
            return None;
        }
        let save = self.saves.front()?;
        let (mut entry, mut at) = if self.redactions.save == save.id { self.redactions.next } else { (0, 0) };
        let mut found = None;
        while let Some(calls) = self.calls_of_entry(&save.kind, entry) {
            found = calls.get(at).and_then(|call| self.question(call));
            if found.is_some() {
                break;
            }
            (entry, at) = if at < calls.len() { (entry, at + 1) } else { (entry + 1, 0) };
        }
        (self.redactions.save, self.redactions.next) = (save.id, (entry, at));
        found
    }

    /// Returns the calls in an entry of a save; `None` after the last entry.
    fn calls_of_entry<'s>(&'s self, kind: &'s SaveKind, at: usize) -> Option<&'s [ToolInvocation]> {
        match kind {
            SaveKind::Write(entries) => entries.get(at).map(|entry| match entry {
                JournalEntry::Answered { invocations, .. } => invocations.as_slice(),
                JournalEntry::Finished(entry) => {
                    self.live.invocation(&entry.invocation).map(std::slice::from_ref).unwrap_or_default()
                }
                _ => &[],
            }),
            SaveKind::Append(entries) => entries.get(at).map(|entry| match entry {
                HistoryEntry::Invocation(call) => std::slice::from_ref(call),
                _ => &[],
            }),
            SaveKind::Begin(_) | SaveKind::Fail(_) => None,
        }
    }

    /// What is to be asked about a call, if anything is.
    fn question(&self, call: &ToolInvocation) -> Option<PersistQuestion> {
        let callback = self.setup.persist.get(&call.name)?;
        let known = self.redactions.by_invocation.get(&call.id);
        // Of a call that comes from a journal, only what was stored is known.
        let asked =
            call.redacted || known.is_some_and(|known| known.failed || known.with_result || call.result.is_none());
        if asked {
            return None;
        }
        let text = call.arguments.text();
        let text = if text.trim().is_empty() { "{}" } else { &text };
        Some(PersistQuestion {
            callback: callback.clone(),
            invocation: call.id.clone(),
            name: call.name.clone(),
            arguments: JsonRef::parse(text).map_or_else(|_| JsonStr::new(text).to_json(), JsonRef::to_owned),
            // Before the call itself is written it is asked about the call alone.
            result: known.and(call.result.as_ref()).map(|result| result.content.clone()),
        })
    }

    /// Keeps what was said.
    pub(super) fn persisted(&mut self, ask: &PersistQuestion, said: PersistReply) {
        let known = self.redactions.by_invocation.get_or_insert(&ask.invocation, Redaction::default());
        known.with_result |= ask.result.is_some();
        match said {
            PersistReply::Replaced { arguments, result } => {
                // It knew the arguments and would not have them stored.
                let hidden = known.withheld && known.arguments.is_none();
                known.arguments = arguments.or(known.arguments.take());
                if hidden {
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
                    let text =
                        format!("`persist` of the tool \"{}\" failed; nothing of the call is stored: {why}", ask.name);
                    self.warn(Finding::warning(FindingCode::CallbackFailed, text).with_action(Action::Dropped));
                }
            }
        }
    }

    /// Takes out of a write what must not be stored.
    pub(super) fn redact(&self, kind: &mut SaveKind) {
        if let SaveKind::Fail(entry) = kind
            && self.has_redacted_call()
        {
            replace_failure_text(entry);
        }
        if self.setup.persist.is_empty() {
            return;
        }
        match kind {
            SaveKind::Write(entries) => {
                let mut behind = Vec::new();
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
                        JournalEntry::Partial(message) => strip(message),
                        JournalEntry::Finished(entry) => {
                            if let Some(more) = self.redact_result(entry) {
                                behind.push(more);
                            }
                        }
                        _ => {}
                    }
                }
                entries.retain(|entry| !matches!(entry, JournalEntry::Redacted { .. }));
                entries.append(&mut behind);
            }
            SaveKind::Append(entries) => {
                let mut redacted: IdMap<()> = IdMap::with_seed(self.live.seed());
                for entry in entries.iter_mut() {
                    if let HistoryEntry::Invocation(call) = entry {
                        self.redact_call(call);
                        if call.redacted {
                            redacted.insert(call.message_id.clone(), ());
                        }
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
            SaveKind::Begin(_) | SaveKind::Fail(_) => {}
        }
    }

    /// Whether a call of this turn is redacted. A provider's error may quote it.
    fn has_redacted_call(&self) -> bool {
        self.live.invocations().iter().any(|call| {
            call.redacted
                || self.setup.persist.contains(&call.name)
                    && self.redactions.by_invocation.get(&call.id).is_none_or(Redaction::changes)
        })
    }

    fn redact_call(&self, call: &mut ToolInvocation) {
        if !self.setup.persist.contains(&call.name) {
            return;
        }
        let Some(known) = self.redactions.by_invocation.get(&call.id) else {
            // Nobody was asked: a call from a journal is as it was stored, any other one stays here.
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

    /// Of a result; gives what the journal must know of its call beside that.
    fn redact_result(&self, entry: &mut ResultEntry) -> Option<JournalEntry> {
        let call = self.live.invocation(&entry.invocation)?;
        if !self.setup.persist.contains(&call.name) || call.redacted {
            return None;
        }
        let known = self.redactions.by_invocation.get(&call.id);
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

/// The arguments in the place of a call's own, in the same form; none where these stay. Empty ones would say that the call is
/// withheld.
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
    if let JournalEntry::Failed { code, message } = failure
        && !matches!(code.as_str(), "max_turns" | "aborted")
    {
        *message = format!(
            "the run failed ({code}); the text of the error is not stored, since a tool call of this turn is redacted"
        );
    }
}

/// Nobody knows what of a call a provider repeats beside it: its own blocks and members go.
fn strip(message: &mut Message) {
    message.template = None;
    message.parts.retain(|part| !matches!(part.body, PartBody::Opaque(_)));
}
