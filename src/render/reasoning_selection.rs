//! Selects the reasoning of a body that is being composed, and says what became of the body before.

use super::body_builder::{BodyBuilder, BodySpan};
use super::composed_head::HeadMembers;
use super::draft_changes::DraftChanges;
use super::encoding_cache::{HeadTexts, StablePrefix};
use super::joined_message::JoinedMessage;
use super::missing_reasoning::LoopMessages;
use super::prefix_ledger::{AnswerFacts, HeadHashes, ListPrefix, PrefixLedger, WalkedChanges, compacted_list, omitted};
use super::prefix_reuse::PrefixReuse;
use super::reasoning_choice::{ReasoningChoice, ReasoningContext};
use super::request::RenderRequest;
use super::settled_body::{AnswerInBody, BodyLedger, SettledBody, reasoning_key};
use crate::finding::{Action, Finding, PrefixChange, Report, Severity};
use crate::json::Json;
use crate::message::{Message, PrefixMark, Role};
use crate::provider::{DialectSpec, ProviderRequest, RepairOptions, repair_rendered};
use crate::replay::{DraftMessage, DraftOrigin, RequestDraft};
use std::collections::BTreeMap;

/// The selection of one body's reasoning.
pub struct ReasoningSelection<'c> {
    spec: &'static DialectSpec,
    context: ReasoningContext<'c>,
    choice: ReasoningChoice<'c>,
    ledger: PrefixLedger,
    provider: &'c ProviderRequest,
    /// The hashes of instructions and tools, if a provider of the dialect compares them.
    head: Option<HeadHashes>,
    /// The omissions, by index in the draft.
    omissions: BTreeMap<usize, PrefixChange>,
}

impl<'c> ReasoningSelection<'c> {
    /// Prepares the selection for a body.
    pub fn new(
        request: &'c RenderRequest<'c>,
        choice: ReasoningChoice<'c>,
        members: &HeadMembers<'_>,
        body: &mut BodyBuilder<'_, '_, '_>,
    ) -> Self {
        let spec = body.encoder.spec;
        let context = choice.context();
        let sees_prefix = !context.is_kept_by_service;
        let ledger = PrefixLedger::new(request.provider, request.policy, sees_prefix, context.agent);
        let ledger = match members.repaired {
            Some(repaired) => ledger.for_body(spec, repaired),
            None => ledger,
        };
        let is_compared = spec.body.bound_instructions.is_some() && sees_prefix;
        let head = is_compared.then(|| members.hashes(spec, request.provider, body.cache));
        Self { spec, context, choice, ledger, provider: request.provider, head, omissions: BTreeMap::new() }
    }

    /// Returns true if the body is changed before its reasoning is selected.
    pub fn is_deferred(&self) -> bool {
        matches!(self.choice, ReasoningChoice::AfterChanges(_))
    }

    /// Returns true if the composed body is what is sent, unless a rule repairs it.
    pub fn is_final(&self) -> bool {
        matches!(self.choice, ReasoningChoice::Accepted(_))
    }

    /// Leaves out the reasoning that the provider would not accept in the body as it is composed.
    pub fn leave_out(&mut self, body: &mut BodyBuilder<'_, '_, '_>, draft: &RequestDraft<'_>, report: &mut Report) {
        if !self.is_final() {
            return;
        }
        if !body.spans.iter().any(|body_span| body_span.span.has_reasoning) {
            return;
        }
        let compares = self.ledger.compares();
        let mut changes = None;
        let (mut findings, mut prefix) = (Report::new(), self.beginning(body, draft));
        for at in 0..body.spans.len() {
            let Some(body_span) = body.spans.get(at).copied() else { break };
            let answer = body_span.index.filter(|_| body_span.span.has_reasoning);
            let answer = answer.and_then(|index| JoinedMessage::at(draft, index).map(|message| (index, message)));
            if let Some((index, message)) = answer
                && (compares || !self.ledger.reads(self.spec, message.item.message.answer.as_deref()))
            {
                let changes = changes
                    .get_or_insert_with(|| WalkedChanges::new(DraftChanges::new(draft, self.context.history, report)));
                if let Some(change) = self.omission(index, message, prefix, changes) {
                    findings.push(omitted(Some(&message.item.message.id), change, self.ledger.binds()));
                    changes.note_omission(change);
                    self.omissions.insert(index, change);
                    let bare = body.without_reasoning(body_span, message);
                    if let Some(span) = body.spans.get_mut(at) {
                        *span = bare;
                    }
                }
            }
            if compares {
                prefix = body.spans.get(at).map_or(prefix, |span| self.extended(body, span, draft, prefix));
            }
        }
        drop(changes);
        report.append(&mut findings);
        if self.is_in_open_turn(draft) {
            body.require_check();
        }
    }

    fn omission(
        &self,
        index: usize,
        message: JoinedMessage<'_, '_>,
        prefix: ListPrefix,
        changes: &mut WalkedChanges<'_, '_>,
    ) -> Option<PrefixChange> {
        let meta = message.item.message.answer.as_deref();
        let mark = meta.and_then(|meta| meta.prefix);
        let has_same_items = mark.is_some_and(|mark| prefix.is_of(mark)) && changes.inside(index).is_none();
        let change = if has_same_items { None } else { changes.before(index, mark.is_some()) };
        let facts = AnswerFacts { meta, has_same_items, change };
        let omission = self.ledger.omission(self.spec, self.head.unwrap_or_default(), &facts);
        if has_same_items && omission.is_none() {
            changes.note_match(index);
        }
        omission
    }

    /// Returns true if reasoning of the turn that is still running is left out: the rules know whether the model needs
    /// it.
    fn is_in_open_turn(&self, draft: &RequestDraft<'_>) -> bool {
        let asked = draft.messages.iter().rposition(|item| item.message.role == Role::User).unwrap_or(0);
        self.omissions.keys().next_back().is_some_and(|index| *index > asked)
    }

    /// Repairs a body that the rules of its dialect may reject, and leaves out the reasoning that the provider would
    /// not accept in it. Stored messages do not change. Returns the body, and the index of its first changed byte.
    pub fn repaired(
        &self,
        composed: Vec<u8>,
        body: &BodyBuilder<'_, '_, '_>,
        draft: &RequestDraft<'_>,
        report: &mut Report,
    ) -> (SettledBody, usize) {
        let (repaired, findings) = repair_rendered(&composed, self.spec.dialect(), &RepairOptions::default());
        // Merged messages are complete.
        let is_reported =
            |finding: &Finding| finding.severity == Severity::Error && finding.action != Some(Action::Merged);
        let errors = findings.into_iter().filter(is_reported);
        report.extend(errors.map(|finding| finding.with_severity(Severity::Warning)));
        let settled = match self.choice {
            ReasoningChoice::Accepted(_) => {
                self.body_ledger(body, draft, report).settle(repaired, PrefixChange::Repair, report)
            }
            ReasoningChoice::All | ReasoningChoice::AfterChanges(_) => SettledBody { body: repaired, mark: None },
        };
        if settled.body == composed {
            return (settled, usize::MAX);
        }
        let changed = settled.body.iter().zip(&composed).take_while(|(new, old)| new == old).count();
        (settled, changed)
    }

    /// Returns what is known of the answers in a body.
    pub fn body_ledger(&self, body: &BodyBuilder<'_, '_, '_>, draft: &RequestDraft<'_>, report: &Report) -> BodyLedger {
        let mut changes = WalkedChanges::new(DraftChanges::new(draft, self.context.history, report));
        let (mut answers, mut prefix) = (BTreeMap::new(), self.beginning(body, draft));
        let mut compacted = self.first_with_compaction(body, draft).map(|message| (0, message.clone()));
        for body_span in &body.spans {
            if let Some(index) = body_span.index.filter(|_| body_span.span.has_reasoning)
                && let Some(item) = draft.messages.get(index)
            {
                let meta = item.message.answer.clone();
                let change = changes.before(index, meta.as_ref().is_some_and(|meta| meta.prefix.is_some()));
                let range = body_span.span.start..body_span.span.end;
                let text = body.encoded(body_span).text.get(range).unwrap_or_default();
                let is_whole = changes.inside(index).is_none();
                let keys = self.reasoning_in(text);
                for (at, key) in keys.into_iter().enumerate() {
                    let answer = AnswerInBody {
                        message_id: item.message.id.clone(),
                        meta: meta.clone(),
                        composed_prefix: prefix.items,
                        change,
                        is_whole: is_whole && at == 0,
                    };
                    answers.insert(key, answer);
                }
            }
            let is_first = prefix == ListPrefix::default();
            prefix = self.extended(body, body_span, draft, prefix);
            if let Some(message) = compaction_in(draft, body_span).filter(|_| is_first) {
                compacted = Some((prefix.items, message.clone()));
            }
        }
        let hashes = |body_span: &BodySpan| body_span.span.hashes(body.encoded(body_span));
        let composed = body.spans.iter().flat_map(hashes).copied().collect();
        BodyLedger {
            dialect: self.spec.dialect(),
            settings: (self.spec.models.settings)(self.provider),
            ledger: self.ledger.clone(),
            is_filtered: false,
            has_provided: has_provided(draft),
            answers,
            composed,
            compacted,
            in_loop: Some(LoopMessages::new(body, draft, self.provider)),
        }
    }

    /// Returns the prefix before the first item.
    fn beginning(&self, body: &BodyBuilder<'_, '_, '_>, draft: &RequestDraft<'_>) -> ListPrefix {
        let first = self.first_with_compaction(body, draft);
        let original = first.and_then(|message| compacted_list(message, self.head.unwrap_or_default()));
        original.map_or_else(ListPrefix::default, |original| ListPrefix::default().standing_for(original))
    }

    /// Returns the first message of the list, if it is an answer that begins with a compaction.
    fn first_with_compaction<'d>(
        &self,
        body: &BodyBuilder<'_, '_, '_>,
        draft: &'d RequestDraft<'_>,
    ) -> Option<&'d Message> {
        let first = body.spans.iter().find(|body_span| body_span.span.count > 0)?;
        let item = draft.messages.get(first.index?)?;
        let is_stored = matches!(item.origin, DraftOrigin::Stored(index) if index > 0);
        (is_stored && self.spec.begins_with_compaction(item.message)).then_some(item.message)
    }

    /// Returns a prefix that is extended by the items of a span.
    fn extended(
        &self,
        body: &BodyBuilder<'_, '_, '_>,
        body_span: &BodySpan,
        draft: &RequestDraft<'_>,
        prefix: ListPrefix,
    ) -> ListPrefix {
        let items = body_span.span.hashes(body.encoded(body_span));
        let extended = items.iter().fold(prefix, |prefix, item| prefix.extended(*item));
        let is_first = prefix == ListPrefix::default();
        let compaction = compaction_in(draft, body_span).filter(|_| is_first);
        let original = compaction.and_then(|message| compacted_list(message, self.head.unwrap_or_default()));
        original.map_or(extended, |original| extended.standing_for(original))
    }

    fn reasoning_in(&self, text: &str) -> Vec<u64> {
        let list = Json::trusted(format!("[{text}]"));
        let keys = list.view().items().filter_map(|item| self.spec.reasoning.reasoning_of(item).map(reasoning_key));
        keys.collect()
    }

    /// Returns what the composed request contains, for its answer. `items` is the hash of its list.
    pub fn mark(&self, draft: &RequestDraft<'_>, items: u64) -> Option<PrefixMark> {
        let HeadHashes { instructions, tools } = self.head?;
        Some(PrefixMark { instructions, tools, items, is_filtered: false, has_provided: has_provided(draft) })
    }

    /// Returns how much of the last body this one repeats, and what changed the rest.
    pub fn reuse(
        &self,
        (stable, changed): (StablePrefix, usize),
        texts: HeadTexts,
        body: &mut BodyBuilder<'_, '_, '_>,
        (draft, report): (&RequestDraft<'_>, &Report),
    ) -> PrefixReuse {
        let Some(last) = body.cache.replace_head(texts) else { return PrefixReuse::default() };
        let changed_head = match texts {
            _ if texts.model != last.model => Some(PrefixChange::Model),
            _ if texts.tools != last.tools => Some(PrefixChange::Tools),
            _ if texts.instructions != last.instructions => Some(PrefixChange::Instructions),
            _ => None,
        };
        if let Some(change) = changed_head {
            let change = if texts.agent == last.agent { change } else { PrefixChange::Handoff };
            return PrefixReuse { changed_by: Some(change), ..PrefixReuse::default() };
        }
        let changed_by = (!stable.is_whole).then(|| {
            let sent = body.spans.iter().filter(|body_span| body_span.span.count > 0);
            let index = match stable.first_changed {
                Some(first) => sent.map(|body_span| body_span.index).nth(first).flatten().unwrap_or(0),
                None if changed != usize::MAX => return PrefixChange::Repair,
                None => draft.messages.len(),
            };
            let omission = self.omissions.get(&index).copied();
            let change = || DraftChanges::new(draft, self.context.history, report).at(index);
            omission.or_else(change).unwrap_or(PrefixChange::Branch)
        });
        PrefixReuse { reused_bytes: stable.bytes, changed_by, cut: None }
    }
}

/// Returns what a provider's own compaction returned, if a span is that.
fn compaction_in<'d>(draft: &'d RequestDraft<'_>, body_span: &BodySpan) -> Option<&'d Message> {
    let item = draft.messages.get(body_span.index?)?;
    (item.origin == DraftOrigin::Replacement && item.message.answer.is_some()).then_some(item.message)
}

fn has_provided(draft: &RequestDraft<'_>) -> bool {
    draft.messages.iter().any(DraftMessage::is_provided)
}
