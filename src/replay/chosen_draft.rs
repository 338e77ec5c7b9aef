//! Makes a [`ReplaySelection`] of a draft, and a draft of the selection again.

use super::citations::TrimmedResults;
use super::input::{HistoryScope, ReplayInput};
use super::request_draft::{DraftCall, DraftMessage, DraftOrigin, DraftResult, RequestDraft};
use super::select::{LateSelection, sent_calls};
use super::selection::{CallOutcome, ReplayChoice, ReplaySelection, SelectedCall, SelectedRange};
use crate::finding::{Action, Finding, Report};
use crate::history::{History, LateResult};
use crate::message::Message;
use crate::synthetic_result::{EXPIRED, INTERRUPTED, NOT_RUN, PENDING};
use crate::tool::{ToolInvocation, ToolResult};

/// The call with its stored result.
const STORED: CallOutcome = 0;
/// Nothing.
const DROPPED: CallOutcome = 1;
/// The call with a note that its result is too old.
const EXPIRED_RESULT: CallOutcome = 2;
/// The call with a note that it was interrupted.
const INTERRUPTED_CALL: CallOutcome = 3;
/// The call with a note that it was not run.
const NOT_RUN_CALL: CallOutcome = 4;
/// The call with the beginning of its result.
const SHORTENED: CallOutcome = 5;
/// The call with a note that its tool answers later.
const PENDING_CALL: CallOutcome = 6;
/// The bits of the kind.
const KIND: CallOutcome = 7;
/// The bit of a result without its uncited sources.
const TRIMMED: CallOutcome = 8;
/// The number of bits before the length of a shortened result.
const LENGTH_SHIFT: u32 = 4;

/// Returns the draft of the run's choice, if it has one that can be repeated.
pub(super) fn chosen_draft<'h>(input: &ReplayInput<'h, '_>, report: &mut Report) -> Option<RequestDraft<'h>> {
    let HistoryScope::Chosen { choice, .. } = input.scope else { return None };
    let draft = choice.selection.restore(input)?;
    report.extend_from_slice(&choice.report);
    Some(draft)
}

/// Returns the choice that a draft is the result of. `report` has the findings of making it.
#[must_use]
pub fn choice_of(draft: &RequestDraft<'_>, input: &ReplayInput<'_, '_>, report: &[Finding]) -> ReplayChoice {
    let mut builder = RangeBuilder::new(input);
    draft.messages.iter().for_each(|item| builder.add(item));
    // Of a call with another id each pass reports it.
    let is_of_choice = |finding: &&Finding| finding.action != Some(Action::Renamed);
    let report: Report = report.iter().filter(is_of_choice).cloned().collect();
    let selection = ReplaySelection {
        ranges: builder.ranges,
        live_end: input.live.map_or(0, |live| live.messages().len()) as u64,
        handoffs: input.handoffs.len() as u64,
        is_reduced: !report.is_empty(),
        known_results: draft.known_results,
    };
    ReplayChoice { selection, report }
}

impl ReplaySelection {
    /// Returns the draft of the selection, with the messages that the live turn got since. Returns `None` if messages
    /// of it were deleted.
    pub(super) fn restore<'h>(&'h self, input: &ReplayInput<'h, '_>) -> Option<RequestDraft<'h>> {
        let mut messages = Vec::new();
        let late = LateSelection { history: input.history, live: input.live };
        for range in &self.ranges {
            match &range.message {
                None if LateResult::invocation_of_id(&range.first).is_some() => {
                    messages.extend(range.late_result(&late));
                }
                Some(message) => messages.push(range.own_message(message, input)),
                None => range.restore(&mut messages, input)?,
            }
        }
        if let Some(live) = input.live {
            let start = usize::try_from(self.live_end).unwrap_or(usize::MAX);
            for (index, message) in live.messages().iter().enumerate().skip(start) {
                messages.extend(late.before(message).filter(|item| !self.has(item)));
                messages.extend(draft_message(live, DraftOrigin::Live(index), input));
            }
        }
        messages.extend(late.unplaced().filter(|item| !self.has(item)));
        let is_answer = |item: &DraftMessage<'_>| item.origin == DraftOrigin::Stored(input.compacted_before);
        // An answer with a compaction that came during the run is not first.
        let first = messages.iter().find(|item| !item.is_system());
        let compacted_before = first.filter(|item| is_answer(item)).map_or(0, |_| input.compacted_before);
        let known_results = self.known_results;
        Some(RequestDraft { messages, is_repeated: true, cut: None, known_results, compacted_before })
    }
}

impl ReplaySelection {
    /// Returns true if the selection has a late result, whose place it keeps.
    fn has(&self, item: &DraftMessage<'_>) -> bool {
        self.ranges.iter().any(|range| range.message.is_none() && range.first == item.message.id)
    }
}

impl SelectedRange {
    /// Returns the draft of a late result.
    pub(super) fn late_result<'h>(&self, late: &LateSelection<'h>) -> Option<DraftMessage<'h>> {
        let late = late.get(LateResult::invocation_of_id(&self.first)?)?;
        let message = if self.outcome == EXPIRED_RESULT { &late.expired } else { &late.message };
        Some(DraftMessage::created(message, DraftOrigin::LateResult))
    }

    pub(super) fn own_message<'h>(&'h self, message: &'h Message, input: &ReplayInput<'h, '_>) -> DraftMessage<'h> {
        let origin = if self.is_replacement { DraftOrigin::Replacement } else { DraftOrigin::Created };
        let mut draft = DraftMessage::created(message, origin);
        for SelectedCall { invocation, outcome } in &self.calls {
            let found = input.live.and_then(|live| live.invocation(invocation));
            let Some(invocation) = found.or_else(|| input.history.invocation(invocation)) else { continue };
            let call = DraftCall { invocation, result: invocation.result.as_ref().map(DraftResult::Stored) };
            draft.calls.extend(with_outcome(call, *outcome, input));
        }
        if !self.is_replacement {
            draft.extra_content = (input.extra_content)(message);
        }
        draft
    }

    /// Adds the messages of the range. Returns `None` if its first or its last one was deleted.
    pub(super) fn restore<'h>(&self, messages: &mut Vec<DraftMessage<'h>>, input: &ReplayInput<'h, '_>) -> Option<()> {
        let place = |from: &'h History| Some((from.message_index(&self.first)?, from.message_index(&self.last)?));
        let live = input.live.and_then(|live| Some((live, place(live)?)));
        let (from, (first, last)) = match live {
            Some(found) => found,
            None => (input.history, place(input.history)?),
        };
        for index in first..=last {
            let origin = if live.is_some() { DraftOrigin::Live(index) } else { DraftOrigin::Stored(index) };
            let Some(mut draft) = draft_message(from, origin, input) else { continue };
            let mut rest = self.calls.iter().peekable();
            for call in std::mem::take(&mut draft.calls) {
                let of_call = rest.next_if(|one| one.invocation == call.invocation.id);
                let outcome =
                    if self.calls.is_empty() { self.outcome } else { of_call.map_or(DROPPED, |one| one.outcome) };
                draft.calls.extend(with_outcome(call, outcome, input));
            }
            messages.push(draft);
        }
        Some(())
    }
}

/// Returns the draft of a message of history or of the live turn.
pub(super) fn draft_message<'h>(
    from: &'h History,
    origin: DraftOrigin,
    input: &ReplayInput<'h, '_>,
) -> Option<DraftMessage<'h>> {
    let (DraftOrigin::Stored(index) | DraftOrigin::Live(index)) = origin else { return None };
    let message = from.messages().get(index)?;
    let mut draft = DraftMessage::created(message, origin);
    // Its report is part of the choice.
    draft.calls = sent_calls(from, message, matches!(origin, DraftOrigin::Live(_)), &mut Report::new());
    draft.extra_content = (input.extra_content)(message);
    Some(draft)
}

/// Returns a call as it was chosen, or `None` if it is not sent.
fn with_outcome<'h>(call: DraftCall<'h>, outcome: CallOutcome, input: &ReplayInput<'h, '_>) -> Option<DraftCall<'h>> {
    let invocation = call.invocation;
    if invocation.is_deferred {
        // Its result has a place of its own; pairing leaves the call open, or says that it is pending.
        return (outcome != DROPPED).then_some(DraftCall { invocation, result: None });
    }
    let trimmed = || input.trimmed.and_then(|trimmed| trimmed.result_of(input.history, invocation));
    let kept = if outcome & TRIMMED == 0 { None } else { trimmed() }.map(DraftResult::Stored).or(call.result);
    let result = match outcome & KIND {
        STORED => kept,
        EXPIRED_RESULT => Some(DraftResult::Placeholder(EXPIRED)),
        INTERRUPTED_CALL => Some(DraftResult::Closing(INTERRUPTED)),
        NOT_RUN_CALL => Some(DraftResult::Closing(NOT_RUN)),
        PENDING_CALL => Some(DraftResult::Closing(PENDING)),
        SHORTENED => {
            let bytes = u32::try_from(outcome >> LENGTH_SHIFT).unwrap_or(u32::MAX);
            kept.map(|kept| match kept {
                DraftResult::Stored(result) => DraftResult::Cut { result, bytes },
                other => other,
            })
        }
        _ => return None,
    };
    Some(DraftCall { invocation, result })
}

/// Returns the number of what became of a call.
fn outcome_of(call: &DraftCall<'_>) -> CallOutcome {
    let is_trimmed = |result| call.invocation.result.as_ref().is_none_or(|stored| !std::ptr::eq(stored, result));
    match call.result {
        _ if call.invocation.is_deferred => PENDING_CALL,
        None => INTERRUPTED_CALL,
        Some(DraftResult::Stored(result)) => {
            if is_trimmed(result) {
                STORED | TRIMMED
            } else {
                STORED
            }
        }
        Some(DraftResult::Placeholder(_)) => EXPIRED_RESULT,
        Some(DraftResult::Closing(NOT_RUN)) => NOT_RUN_CALL,
        Some(DraftResult::Closing(PENDING)) => PENDING_CALL,
        Some(DraftResult::Closing(INTERRUPTED)) => INTERRUPTED_CALL,
        // A call of the live turn whose result is withheld gets that note whenever it is selected.
        Some(DraftResult::Closing(_)) => STORED,
        Some(DraftResult::Cut { result, bytes }) => {
            let trimmed = if is_trimmed(result) { TRIMMED } else { 0 };
            SHORTENED | trimmed | u64::from(bytes) << LENGTH_SHIFT
        }
    }
}

/// Collects the ranges of a draft.
pub(super) struct RangeBuilder<'b, 'h> {
    input: &'b ReplayInput<'h, 'b>,
    ranges: Vec<SelectedRange>,
    /// The place of the last message of the newest range, if that can grow: true for the live turn, and the index.
    newest: Option<(bool, usize)>,
    /// What became of the calls of the newest range; `None` if it has none.
    rule: Option<CallOutcome>,
}

impl<'b, 'h> RangeBuilder<'b, 'h> {
    pub fn new(input: &'b ReplayInput<'h, 'b>) -> Self {
        Self { input, ranges: Vec::new(), newest: None, rule: None }
    }

    pub fn into_ranges(self) -> Vec<SelectedRange> {
        self.ranges
    }

    /// Adds the summary of the compaction, which history has.
    pub fn add_compaction(&mut self) {
        self.newest = None;
        self.ranges.push(SelectedRange { is_replacement: true, ..SelectedRange::default() });
    }

    pub fn add(&mut self, item: &DraftMessage<'_>) {
        let (is_live, index) = match item.origin {
            DraftOrigin::Stored(index) => (false, index),
            DraftOrigin::Live(index) => (true, index),
            DraftOrigin::Created | DraftOrigin::Replacement => return self.add_own(item),
            DraftOrigin::LateResult => return self.add_late_result(item),
        };
        let outcomes = self.outcomes(item, is_live);
        let first = outcomes.first().map(|call| call.outcome);
        let is_uniform = outcomes.iter().all(|call| Some(call.outcome) == first);
        if is_uniform && let Some(rule) = self.joined_rule(is_live, index, first) {
            self.rule = rule;
            self.newest = Some((is_live, index));
            if let Some(range) = self.ranges.last_mut() {
                range.last.clone_from(&item.message.id);
                range.outcome = rule.unwrap_or_default();
            }
            return;
        }
        let id = &item.message.id;
        let mut range = SelectedRange { first: id.clone(), last: id.clone(), ..SelectedRange::default() };
        if is_uniform {
            range.outcome = first.unwrap_or_default();
        } else {
            range.calls = outcomes.into_iter().filter(|call| call.outcome != DROPPED).collect();
        }
        self.newest = is_uniform.then_some((is_live, index));
        self.rule = first;
        self.ranges.push(range);
    }

    fn add_late_result(&mut self, item: &DraftMessage<'_>) {
        let id = &item.message.id;
        let late = LateSelection { history: self.input.history, live: self.input.live };
        let late = LateResult::invocation_of(item.message).and_then(|invocation| late.get(invocation));
        let is_expired = late.is_some_and(|late| std::ptr::eq(item.message, &late.expired));
        let outcome = if is_expired { EXPIRED_RESULT } else { STORED };
        self.newest = None;
        self.ranges.push(SelectedRange { first: id.clone(), last: id.clone(), outcome, ..SelectedRange::default() });
    }

    fn add_own(&mut self, item: &DraftMessage<'_>) {
        let selected =
            |call: &DraftCall<'_>| SelectedCall { invocation: call.invocation.id.clone(), outcome: outcome_of(call) };
        self.newest = None;
        self.ranges.push(SelectedRange {
            calls: item.calls.iter().map(selected).collect(),
            message: Some(item.message.clone()),
            is_replacement: item.origin == DraftOrigin::Replacement,
            ..SelectedRange::default()
        });
    }

    /// Returns what became of each call that a message has.
    fn outcomes(&self, item: &DraftMessage<'_>, is_live: bool) -> Vec<SelectedCall> {
        let Some(from) = self.source(is_live) else { return Vec::new() };
        let mut outcomes = Vec::new();
        let mut rest = item.calls.iter().peekable();
        for invocation in from.calls_of(item.message).filter(|call| is_live || !is_withheld(call)) {
            // Both are in the order of the calls: a message may have thousands.
            let sent = rest.next_if(|call| call.invocation.id == invocation.id);
            let outcome = sent.map_or(DROPPED, outcome_of);
            outcomes.push(SelectedCall { invocation: invocation.id.clone(), outcome });
        }
        outcomes
    }

    fn source(&self, is_live: bool) -> Option<&History> {
        if is_live { self.input.live } else { Some(self.input.history) }
    }

    /// Returns what becomes of the calls of the newest range if it grows up to this message, whose calls have one
    /// outcome. Returns `None` if it cannot: other calls have another outcome, or a message between them is left out.
    fn joined_rule(&self, is_live: bool, index: usize, outcome: Option<CallOutcome>) -> Option<Option<CallOutcome>> {
        let (_, last) = self.newest.filter(|(of_live, last)| *of_live == is_live && *last < index)?;
        let from = self.source(is_live)?;
        let mut rule = self.rule;
        let mut join = |next: Option<CallOutcome>| {
            let is_joined = rule.is_none() || next.is_none() || rule == next;
            rule = rule.or(next);
            is_joined
        };
        for message in from.messages().get(last + 1..index)? {
            let mut draft = DraftMessage::created(message, DraftOrigin::Stored(0));
            draft.extra_content = (self.input.extra_content)(message);
            // A message of calls alone is in no draft without them.
            if draft.is_sendable(true) {
                return None;
            }
            let has_calls = from.calls_of(message).any(|call| is_live || !is_withheld(call));
            if !join(has_calls.then_some(DROPPED)) {
                return None;
            }
        }
        join(outcome).then_some(rule)
    }
}

fn is_withheld(call: &ToolInvocation) -> bool {
    call.is_withheld() || call.has_withheld_result()
}

impl TrimmedResults {
    /// Returns the result of a call without its uncited sources.
    fn result_of<'t>(&'t self, history: &History, call: &ToolInvocation) -> Option<&'t ToolResult> {
        self.result_at(history.invocation_index(&call.id)?)
    }
}
