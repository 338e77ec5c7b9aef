//! The decision about reasoning in a body that is complete as text: a rule repaired it, or a filter of the application
//! changed it.

use super::encoded_text::{extend_prefix, item_hash, member_hash};
use super::missing_reasoning::LoopMessages;
use super::prefix_ledger::{AnswerFacts, HeadHashes, ListPrefix, PrefixLedger, compacted_list, omitted};
use super::request::RenderRequest;
use crate::finding::{Action, Finding, PrefixChange, Report, Severity};
use crate::id::hash_words;
use crate::json::{ArrayWriter, Json, JsonRef, ObjectWriter};
use crate::message::{AnswerMeta, Dialect, Message, PrefixMark};
use crate::provider::{RepairOptions, Settings, repair_rendered, spec};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The reasoning of an answer in a body.
#[derive(Clone, Debug)]
pub(super) struct AnswerInBody {
    pub message_id: String,
    pub meta: Option<Box<AnswerMeta>>,
    /// The hash of the items before it in the composed body.
    pub composed_prefix: u64,
    /// What changed what precedes it, as far as the draft shows.
    pub change: Option<PrefixChange>,
    /// True if this is its first reasoning, and nothing of the answer was dropped before reasoning of it.
    pub is_whole: bool,
}

/// What is known of the answers in a composed body.
#[derive(Clone, Debug)]
pub struct BodyLedger {
    pub(super) dialect: Dialect,
    pub(super) settings: Settings,
    pub(super) ledger: PrefixLedger,
    /// True if the application's filter changed the body before.
    pub(super) is_filtered: bool,
    /// True if history providers added messages.
    pub(super) has_provided: bool,
    /// The answers, by the hash of their reasoning.
    pub(super) answers: BTreeMap<u64, AnswerInBody>,
    /// The hashes of the composed items.
    pub(super) composed: BTreeSet<u64>,
    /// What the provider's own compaction returned, which begins the list, with the hash of the list up to its end; or
    /// the answer that begins with one, with that of an empty list.
    pub(super) compacted: Option<(u64, Message)>,
    /// The messages of which it is reported if they lack the reasoning that the model demands (R73).
    pub(super) in_loop: Option<LoopMessages>,
}

/// A body that is sent as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct SettledBody {
    /// UTF-8 JSON.
    pub body: Vec<u8>,
    /// What the request contains, for its answer.
    pub mark: Option<PrefixMark>,
}

/// Returns the key of reasoning in [`BodyLedger::answers`].
pub(super) fn reasoning_key(reasoning: &str) -> u64 {
    hash_words(2, reasoning.as_bytes())
}

impl BodyLedger {
    /// Creates the ledger of a body that was sent, for one that is repaired and sent again: its reasoning is bound to
    /// what precedes it there. `mark` is that of the body; without one, reasoning is not compared.
    #[must_use]
    pub fn of_sent(body: &[u8], mark: Option<PrefixMark>, request: &RenderRequest<'_>) -> Self {
        let dialect = request.provider.dialect;
        let spec = spec(dialect);
        let ledger = PrefixLedger::new(&request.sent_provider(), request.policy, mark.is_some(), None);
        let (mut answers, mut composed, mut prefix) = (BTreeMap::new(), BTreeSet::new(), 0);
        let text = String::from_utf8_lossy(body);
        let list = JsonRef::parse(&text).ok().and_then(|view| view.get(spec.items.list)).filter(|_| ledger.compares());
        for item in list.unwrap_or_default().items() {
            if let (Some(reasoning), Some(mark)) = (spec.reasoning.reasoning_of(item), mark) {
                let meta = AnswerMeta { prefix: Some(PrefixMark { items: prefix, ..mark }), ..AnswerMeta::default() };
                let answer = AnswerInBody {
                    message_id: String::new(),
                    meta: Some(Box::new(meta)),
                    composed_prefix: prefix,
                    change: None,
                    is_whole: true,
                };
                answers.insert(reasoning_key(reasoning), answer);
            }
            let hash = item_hash(spec, item.as_raw());
            composed.insert(hash);
            prefix = extend_prefix(prefix, hash);
        }
        let mark = mark.unwrap_or_default();
        Self {
            dialect,
            settings: (spec.models.settings)(request.provider),
            ledger,
            is_filtered: mark.is_filtered,
            has_provided: mark.has_provided,
            answers,
            composed,
            // The mark is that of the composed body, which begins with the compaction already.
            compacted: None,
            // The composed body was checked.
            in_loop: None,
        }
    }

    /// Leaves out of a body the reasoning that its provider would not accept, and reports it. `changed_by` is what
    /// changed the composed body.
    pub fn settle(&self, body: Vec<u8>, changed_by: PrefixChange, report: &mut Report) -> SettledBody {
        let mut body = body;
        loop {
            let pass = self.pass(&body, changed_by, report);
            let Some(changed) = pass.changed else { return SettledBody { body, mark: pass.mark } };
            let (repaired, findings) =
                repair_rendered(changed.as_str().as_bytes(), self.dialect, &RepairOptions::default());
            let is_reported =
                |finding: &Finding| finding.severity == Severity::Error && finding.action != Some(Action::Merged);
            let errors = findings.into_iter().filter(is_reported);
            report.extend(errors.map(|finding| finding.with_severity(Severity::Warning)));
            // Each pass but the last leaves out more.
            body = repaired;
        }
    }

    fn pass(&self, body: &[u8], changed_by: PrefixChange, report: &mut Report) -> Pass {
        let spec = spec(self.dialect);
        let text = String::from_utf8_lossy(body);
        let Ok(view) = JsonRef::parse(&text) else { return Pass::default() };
        let instructions = spec.body.bound_instructions;
        let head = HeadHashes {
            instructions: member_hash(spec, instructions.and_then(|member| view.get(member))),
            tools: member_hash(spec, spec.tools.list_in(view)),
        };
        let list = view.get(spec.items.list).unwrap_or_default();
        let begun = self.compacted.as_ref().filter(|(end, _)| *end == 0);
        let original = begun.and_then(|(_, message)| compacted_list(message, head));
        let prefix = ListPrefix::default();
        let mut walk = ListWalk {
            ledger: self,
            rules: self.ledger.for_body(spec, view),
            head,
            changed_by,
            items: list.items().collect(),
            prefix: original.map_or(prefix, |original| prefix.standing_for(original)),
            written: Vec::new(),
            omitted: None,
        };
        walk.walk(report);
        let mark = instructions.filter(|_| self.ledger.sees_prefix()).map(|_| PrefixMark {
            instructions: head.instructions,
            tools: head.tools,
            items: walk.prefix.items,
            is_filtered: self.is_filtered || changed_by == PrefixChange::Filter,
            has_provided: self.has_provided,
        });
        let changed = walk.omitted.map(|_| with_list(view, spec.items.list, &walk.written));
        if let Some(in_loop) = self.in_loop.as_ref().filter(|_| changed.is_none()) {
            in_loop.report_missing(spec, view, report);
        }
        Pass { mark, changed }
    }
}

/// The result of one pass over a body.
#[derive(Default)]
struct Pass {
    mark: Option<PrefixMark>,
    /// The body without some of its reasoning; `None` if all of it is sent.
    changed: Option<Json>,
}

/// Walks through the items of a body.
struct ListWalk<'b> {
    ledger: &'b BodyLedger,
    /// The rules of this body.
    rules: PrefixLedger,
    head: HeadHashes,
    changed_by: PrefixChange,
    items: Vec<JsonRef<'b>>,
    /// The items that are written.
    prefix: ListPrefix,
    written: Vec<Cow<'b, str>>,
    /// The reason of the first omission.
    omitted: Option<PrefixChange>,
}

impl<'b> ListWalk<'b> {
    fn walk(&mut self, report: &mut Report) {
        let spec = spec(self.ledger.dialect);
        // The hashes before the items of the answers in a row that is being read: an answer may begin at any of them.
        let mut starts = Vec::new();
        let mut at = 0;
        while let Some(item) = self.items.get(at).copied() {
            let reasoning = spec.reasoning.reasoning_of(item).filter(|_| spec.reasoning.is_of_answer(item));
            let Some(reasoning) = reasoning else {
                if spec.reasoning.is_of_answer(item) {
                    starts.push(self.prefix)
                } else {
                    starts.clear()
                }
                self.write(Cow::Borrowed(item.as_raw()));
                at += 1;
                continue;
            };
            starts.push(self.prefix);
            let answer = self.ledger.answers.get(&reasoning_key(reasoning));
            let end = self.end_of_answer(at, answer);
            match self.omission(answer, &starts, at..end) {
                None => (at..end).for_each(|index| {
                    if let Some(item) = self.items.get(index).copied() {
                        self.write(Cow::Borrowed(item.as_raw()));
                    }
                }),
                Some(change) => {
                    self.omitted = self.omitted.or(Some(change));
                    let message = answer.map(|answer| answer.message_id.as_str());
                    report.push(omitted(message, change, self.ledger.ledger.binds()));
                    let items = self.items.get(at..end).unwrap_or_default();
                    for item in spec.reasoning.without_reasoning(items, &self.ledger.settings).into_iter().flatten() {
                        self.write(Cow::Owned(item));
                    }
                }
            }
            starts.clear();
            at = end;
        }
    }

    fn write(&mut self, item: Cow<'b, str>) {
        self.prefix = self.prefix.extended(item_hash(spec(self.ledger.dialect), &item));
        let compacted = self.ledger.compacted.as_ref().filter(|(end, _)| *end == self.prefix.items);
        if let Some(original) = compacted.and_then(|(_, message)| compacted_list(message, self.head)) {
            self.prefix = self.prefix.standing_for(original);
        }
        self.written.push(item);
    }

    /// Returns the index after the items of an answer, of which the one at `at` has reasoning.
    fn end_of_answer(&self, at: usize, answer: Option<&AnswerInBody>) -> usize {
        let spec = spec(self.ledger.dialect);
        let id = answer.map(|answer| answer.message_id.as_str());
        let is_of_other_answer = |item: JsonRef<'_>| {
            let reasoning =
                spec.reasoning.reasoning_of(item).map(|reasoning| self.ledger.answers.get(&reasoning_key(reasoning)));
            reasoning.is_some_and(|other| other.map(|other| other.message_id.as_str()) != id)
        };
        let rest = self.items.iter().skip(at + 1);
        at + 1 + rest.take_while(|item| spec.reasoning.is_of_answer(**item) && !is_of_other_answer(**item)).count()
    }

    /// Returns why the reasoning of an answer is left out. `starts` are the hashes before the items at which it may
    /// begin.
    fn omission(
        &self,
        answer: Option<&AnswerInBody>,
        starts: &[ListPrefix],
        items: Range<usize>,
    ) -> Option<PrefixChange> {
        let meta = answer.and_then(|answer| answer.meta.as_deref());
        let mark = meta.and_then(|meta| meta.prefix);
        let spec = spec(self.ledger.dialect);
        let items = self.items.get(items).unwrap_or_default();
        let is_composed = |item: &JsonRef<'_>| self.ledger.composed.contains(&item_hash(spec, item.as_raw()));
        let is_whole = answer.is_none_or(|answer| answer.is_whole)
            && (!spec.reasoning.has_inner_reasoning(items) || items.iter().all(is_composed));
        let is_as_composed =
            is_whole && answer.is_some_and(|answer| starts.iter().any(|start| start.items == answer.composed_prefix));
        let change = answer.and_then(|answer| answer.change).or(self.omitted);
        let facts = AnswerFacts {
            meta,
            has_same_items: is_whole && mark.is_some_and(|mark| starts.iter().any(|start| start.is_of(mark))),
            change: change.or((!is_as_composed).then_some(self.changed_by)),
        };
        self.rules.omission(spec, self.head, &facts)
    }
}

/// Returns a body with another list.
fn with_list(body: JsonRef<'_>, list: &str, items: &[Cow<'_, str>]) -> Json {
    ObjectWriter::build(|out| {
        for (key, value) in body.entries() {
            if key.is_text(list) {
                let mut array = ArrayWriter::new(out.key_token(key.as_raw()));
                items.iter().for_each(|item| array.item().push_str(item));
                array.end();
            } else {
                out.copy(key, value);
            }
        }
    })
}
