//! Decides which reasoning goes back (R70, R76): that of a provider that can read it, and, where the provider binds it
//! to what precedes it, only where that is what it was when the reasoning was made.
//!
//! Freshness, reducers, citations, redaction, filters, history providers and handoffs need not know this: the decision
//! is made after them, about the body as it is sent. Reasoning that is left out changes what follows, so later
//! reasoning goes too, by the same comparison; and reasoning that was made after such an omission stays.

use super::draft_changes::DraftChanges;
use super::encoded_text::extend_prefix;
use crate::finding::{Action, Finding, FindingCode, PrefixChange};
use crate::json::JsonRef;
use crate::message::{AnswerMeta, Message, PrefixMark};
use crate::provider::{DialectSpec, ProviderRequest, Readability, ReasoningReader, spec};
use crate::replay::{Policy, UnboundReasoning};

/// The hashes of what precedes the messages of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeadHashes {
    pub instructions: u64,
    pub tools: u64,
}

/// The hash of the items before a place in a body's list.
///
/// After a provider's own compaction it accepts what it would after the messages that the compaction stands for
/// (documentation of Anthropic, "Compaction and preserved thinking", 2026-11): a second hash is that of the list which
/// has them in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListPrefix {
    /// The hash of the items that are sent.
    pub items: u64,
    original: Option<u64>,
}

impl ListPrefix {
    /// Returns the prefix with another item.
    pub fn extended(self, item: u64) -> Self {
        let original = self.original.map(|original| extend_prefix(original, item));
        Self { items: extend_prefix(self.items, item), original }
    }

    /// Returns the prefix after a compaction, which stands for a list with this hash.
    pub fn standing_for(self, original: u64) -> Self {
        Self { original: Some(original), ..self }
    }

    /// Returns true if an answer with this mark was given to the same items.
    pub fn is_of(self, mark: PrefixMark) -> bool {
        mark.items == self.items || Some(mark.items) == self.original
    }
}

/// Returns the hash of the list that the provider's own compaction stands for, if what precedes the messages is what
/// it was when the compaction was made.
pub(super) fn compacted_list(message: &Message, head: HeadHashes) -> Option<u64> {
    let mark = message.answer.as_ref()?.prefix?;
    (mark.instructions == head.instructions && mark.tools == head.tools).then_some(mark.items)
}

/// What the decision about the reasoning of one answer needs to know.
pub(super) struct AnswerFacts<'a> {
    pub meta: Option<&'a AnswerMeta>,
    /// True if the items before it are those of its mark.
    pub has_same_items: bool,
    /// What changed what precedes it, as far as the draft shows.
    pub change: Option<PrefixChange>,
}

/// The rules of one request.
#[derive(Clone, Debug)]
pub(super) struct PrefixLedger {
    reader: ReasoningReader,
    policy: UnboundReasoning,
    /// False if a service keeps what precedes the messages of the body.
    sees_prefix: bool,
    /// The agent that the request is of, if the run was handed off to one.
    agent: Option<String>,
}

impl PrefixLedger {
    /// Creates the rules of a request.
    pub fn new(provider: &ProviderRequest, policy: &Policy, sees_prefix: bool, agent: Option<&str>) -> Self {
        let reader = ReasoningReader::new(provider, policy.same_makers());
        let ledger =
            Self { reader, policy: policy.unbound_reasoning(), sees_prefix, agent: agent.map(ToOwned::to_owned) };
        ledger.for_body(spec(provider.dialect), provider.params.view())
    }

    /// Returns the rules of a body: its service drops nothing that the body does not let it drop.
    pub fn for_body(&self, spec: &DialectSpec, body: JsonRef<'_>) -> Self {
        let is_dropping = self.policy != UnboundReasoning::DropBlock || spec.is_dropping(body);
        let policy = if is_dropping { self.policy } else { UnboundReasoning::Omit };
        Self { policy, ..self.clone() }
    }

    /// Returns true if the provider compares what precedes reasoning, and what it does not accept is left out.
    pub fn compares(&self) -> bool {
        self.sees_prefix && self.policy == UnboundReasoning::Omit && self.reader.binds_reasoning()
    }

    /// Returns true if the body has everything that precedes its reasoning.
    pub fn sees_prefix(&self) -> bool {
        self.sees_prefix
    }

    /// Returns true if the provider binds reasoning to what precedes it.
    pub fn binds(&self) -> bool {
        self.reader.binds_reasoning()
    }

    /// Returns true if the provider of the request can read what made an answer.
    pub fn reads(&self, spec: &DialectSpec, meta: Option<&AnswerMeta>) -> bool {
        self.unreadable(spec, meta).is_none()
    }

    /// Returns why the reasoning of an answer is left out; `None` if it is sent.
    pub fn omission(&self, spec: &DialectSpec, head: HeadHashes, facts: &AnswerFacts<'_>) -> Option<PrefixChange> {
        if let Some(change) = self.unreadable(spec, facts.meta) {
            return Some(change);
        }
        if !self.compares() {
            return None;
        }
        let is_other_agent = facts.meta.is_some_and(|meta| meta.agent != self.agent);
        let named = |change| if is_other_agent { PrefixChange::Handoff } else { change };
        let Some(mark) = facts.meta.and_then(|meta| meta.prefix) else {
            return changed_kept_head(head, facts.meta).map(named).or(facts.change);
        };
        match mark {
            _ if mark.instructions != head.instructions => Some(named(PrefixChange::Instructions)),
            _ if mark.tools != head.tools => Some(named(PrefixChange::Tools)),
            _ if facts.has_same_items => None,
            PrefixMark { is_filtered: true, .. } => Some(PrefixChange::Filter),
            PrefixMark { has_provided, .. } => Some(facts.change.unwrap_or(if has_provided {
                PrefixChange::HistoryProvider
            } else {
                named(PrefixChange::Branch)
            })),
        }
    }

    fn unreadable(&self, spec: &DialectSpec, meta: Option<&AnswerMeta>) -> Option<PrefixChange> {
        match self.reader.reads(spec.reasoning, meta) {
            Readability::Readable => None,
            Readability::OtherProvider => Some(PrefixChange::Provider),
            // The service drops it itself.
            Readability::OtherModel if self.reader.binds_reasoning() && self.policy != UnboundReasoning::Omit => None,
            Readability::OtherModel => Some(PrefixChange::Model),
        }
    }
}

/// Returns what changed of the instructions and tools that a service kept when it gave an answer.
fn changed_kept_head(head: HeadHashes, meta: Option<&AnswerMeta>) -> Option<PrefixChange> {
    let kept = meta?.service_mark.as_ref()?.kept_head?;
    if kept.instructions != head.instructions {
        return Some(PrefixChange::Instructions);
    }
    (kept.tools != head.tools).then_some(PrefixChange::Tools)
}

/// Returns the finding about reasoning that is left out.
pub fn omitted(message_id: Option<&str>, change: PrefixChange, binds: bool) -> Finding {
    let is_foreign = change == PrefixChange::Provider || change == PrefixChange::Model && !binds;
    let (code, why) = if is_foreign {
        (FindingCode::ReasoningForeign, "the reasoning is left out, which this request's provider cannot read")
    } else {
        (
            FindingCode::ReasoningUnbound,
            "the reasoning is left out, which the provider accepts only after what it was made for",
        )
    };
    let finding = Finding::info(code, format!("{why}: {}", change.sentence())).with_action(Action::Dropped);
    let finding = finding.changed_by(change);
    match message_id.filter(|id| !id.is_empty()) {
        Some(id) => finding.of_message(id),
        None => finding,
    }
}

/// The changes before the answers of a body that is being walked through, with those that leaving out reasoning makes.
pub struct WalkedChanges<'d, 'h> {
    draft: DraftChanges<'d, 'h>,
    /// The reason of the first omission.
    omitted: Option<PrefixChange>,
    /// The reason of the first one since the newest answer that matched its mark.
    omitted_since_match: Option<PrefixChange>,
}

impl<'d, 'h> WalkedChanges<'d, 'h> {
    /// Begins before the first message.
    pub fn new(draft: DraftChanges<'d, 'h>) -> Self {
        Self { draft, omitted: None, omitted_since_match: None }
    }

    /// Returns what changed before the answer at an index of the draft: since the newest one that matched if this one
    /// has a mark, else ever.
    pub fn before(&mut self, index: usize, has_mark: bool) -> Option<PrefixChange> {
        if let Some(change) = self.draft.inside(index) {
            return Some(change);
        }
        if has_mark {
            self.draft.since_match(index).or(self.omitted_since_match)
        } else {
            self.draft.before(index).or(self.omitted)
        }
    }

    /// Returns what changed an answer before its own reasoning.
    pub fn inside(&self, index: usize) -> Option<PrefixChange> {
        self.draft.inside(index)
    }

    /// Notes that an answer matched its mark.
    pub fn note_match(&mut self, index: usize) {
        self.draft.note_match(index);
        self.omitted_since_match = None;
    }

    /// Notes an omission.
    pub fn note_omission(&mut self, change: PrefixChange) {
        self.omitted = self.omitted.or(Some(change));
        self.omitted_since_match = self.omitted_since_match.or(Some(change));
    }
}
