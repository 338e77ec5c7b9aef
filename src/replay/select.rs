//! The first pass: every stored message with its calls, and each call with its stored result, in their order. A call
//! whose content is not stored is dropped, unless it is in the live turn (R12).

use super::input::ReplayInput;
use super::request_draft::{DraftCall, DraftMessage, DraftOrigin, DraftResult, RequestDraft};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::{ActiveSummary, History, LateResult, LateResults};
use crate::message::{Message, PartBody, ResultPlaces, Role};
use crate::owner::{Delta, Unacknowledged};
use crate::synthetic_result::WITHHELD;
use crate::tool::ToolInvocation;
use std::cell::Cell;

/// Drafts the messages of the history, then those of the live turn.
pub(super) fn select<'h>(input: &ReplayInput<'h, '_>, report: &mut Report) -> RequestDraft<'h> {
    let ReplayInput { history, live, .. } = *input;
    let count = history.messages().len() + live.map_or(0, |live| live.messages().len());
    let mut messages = Vec::with_capacity(if input.delta.is_some() { 0 } else { count });
    let late_results = LateSelection { history, live };
    let next_call = Cell::new(0);
    let is_live = input.in_live_turn();
    let keeps_open = input.dialect.is_some_and(|dialect| dialect.result_places() == ResultPlaces::Later);
    let mut add = |from: &'h History, origin: DraftOrigin, message: &'h Message, sent: Unacknowledged| {
        let is_acknowledged = sent == Unacknowledged::Results;
        let selection = CallSelection {
            is_live: matches!(origin, DraftOrigin::Live(_)),
            acknowledged_in: input.delta.filter(|_| is_acknowledged),
            keeps_open,
            next_call: &next_call,
        };
        let calls = selection.calls(from, message, report);
        if !is_acknowledged && !message.late_results.is_empty() {
            messages.extend(late_results.before(message));
        }
        if !is_acknowledged || !calls.is_empty() {
            let extra_content = (input.extra_content)(message);
            let created = DraftMessage::created(message, origin);
            messages.push(DraftMessage { calls, is_acknowledged, extra_content, ..created });
        }
    };
    let all = |count: usize| (0..count).map(|index| (index, Unacknowledged::Message)).collect();
    let end = input.scope.end_of(history);
    let compaction = input.delta.map_or(input.compaction, Delta::compaction);
    let end_of_covered = compaction.map_or(input.compacted_before, |compaction| compaction.end);
    for (at, sent) in input.delta.map_or_else(|| not_covered(history, end_of_covered), Delta::stored) {
        if let Some(message) = history.messages().get(at).filter(|message| at < end && !is_live(message)) {
            add(history, DraftOrigin::Stored(at), message, sent);
        }
    }
    if let Some(live) = live {
        for (at, sent) in input.delta.map_or_else(|| all(live.messages().len()), Delta::live) {
            if let Some(message) = live.messages().get(at) {
                add(live, DraftOrigin::Live(at), message, sent);
            }
        }
    }
    if !input.delta.is_some_and(Delta::continues_answer) {
        messages.extend(late_results.unplaced());
    }
    if let Some(delta) = input.delta {
        messages.sort_by_key(|draft| place_in_delta(delta, draft, keeps_open));
    }
    if let Some(compaction) = compaction {
        insert_compaction(&mut messages, compaction, report);
    }
    if input.compacted_before > 0 {
        begin_with_answer(&mut messages, history, input.compacted_before, report);
    }
    let known_results = history.late_results_hash();
    RequestDraft { messages, known_results, compacted_before: input.compacted_before, ..RequestDraft::default() }
}

/// Lets a draft begin with the answer at an index of the history, whose compaction stands for the messages before it,
/// and adds what that does not know.
fn begin_with_answer<'h>(
    messages: &mut Vec<DraftMessage<'h>>,
    history: &'h History,
    answer: usize,
    report: &mut Report,
) {
    insert_overtaken_results(messages, history, answer);
    begin_with_compaction(messages, history, answer, report);
}

/// Returns where a message is sent to a service: what is repeated, then results of calls that it has, then what is new.
/// The results follow their calls so. And they precede the calls of other runs, whose ids may be the same: a service
/// pairs an output with the newest call of its id. Before them comes what was held back of the live turn, where a
/// service takes anything before results: `keeps_open`.
fn place_in_delta(delta: &Delta<'_>, draft: &DraftMessage<'_>, keeps_open: bool) -> u8 {
    match draft.origin {
        DraftOrigin::Stored(index) if delta.is_repeated(index) => 0,
        DraftOrigin::Live(index) if delta.is_repeated_live(index) => 0,
        DraftOrigin::Live(index) if keeps_open && index < delta.answered_live_count() => 1,
        _ if draft.is_acknowledged => 1,
        _ => 2,
    }
}

/// Returns the indexes of the stored messages that a compaction of those before the index `end` does not cover.
fn not_covered(history: &History, end: usize) -> Vec<(usize, Unacknowledged)> {
    let messages = history.messages().iter().enumerate();
    let sent = messages.filter(|(index, message)| *index >= end || message.is_system());
    sent.map(|(index, _)| (index, Unacknowledged::Message)).collect()
}

/// Inserts the summary of a compaction after the system messages at the beginning.
fn insert_compaction<'h>(messages: &mut Vec<DraftMessage<'h>>, compaction: &'h ActiveSummary, report: &mut Report) {
    let is_before =
        |item: &&DraftMessage<'_>| matches!(item.origin, DraftOrigin::Stored(index) if index < compaction.first);
    let position = messages.iter().take_while(is_before).count();
    messages.insert(position, DraftMessage::created(&compaction.stored.message, DraftOrigin::Replacement));
    let last = &compaction.stored.coverage.last_message_id;
    let finding =
        Finding::info(FindingCode::Reduced, "the messages up to this one are compacted; their summary is sent");
    report.push(finding.of_message(last).with_action(Action::Synthesized));
}

/// Inserts the results that came after the answer at an index, of calls before it: the answer stands for the calls, and
/// for what stood in place of their results.
fn insert_overtaken_results<'h>(messages: &mut Vec<DraftMessage<'h>>, history: &'h History, answer: usize) {
    let mut results = history.results_unknown_to(answer, 0).into_iter().peekable();
    if results.peek().is_none() {
        return;
    }
    let mut merged = Vec::with_capacity(messages.len() + results.len());
    for item in messages.drain(..) {
        let end = match item.origin {
            DraftOrigin::Stored(index) => index,
            DraftOrigin::Live(_) => usize::MAX,
            _ => 0,
        };
        while let Some((_, late)) = results.next_if(|(place, _)| *place <= end) {
            merged.push(created(late));
        }
        merged.push(item);
    }
    merged.extend(results.map(|(_, late)| created(late)));
    *messages = merged;
}

/// Moves the answer at an index of the history to the place after the system messages at the beginning: it begins with
/// what stands for the messages before it.
fn begin_with_compaction(messages: &mut [DraftMessage<'_>], history: &History, answer: usize, report: &mut Report) {
    let first = history.messages().iter().take_while(|message| message.is_system()).count();
    messages.sort_by_key(|item| match item.origin {
        DraftOrigin::Stored(index) if index < first => 0,
        DraftOrigin::Stored(index) if index == answer => 1,
        _ => 2,
    });
    let text = "the messages up to this one are compacted; the answer with the compaction is sent";
    let last = answer.checked_sub(1).and_then(|last| history.messages().get(last));
    let finding = Finding::info(FindingCode::Reduced, text).with_action(Action::Dropped);
    report.extend(last.map(|last| finding.of_message(&last.id)));
}

/// Returns the calls of a message that are sent, with their results, if no service has the message.
pub(super) fn sent_calls<'h>(
    history: &'h History,
    message: &'h Message,
    is_live: bool,
    report: &mut Report,
) -> Vec<DraftCall<'h>> {
    CallSelection { is_live, acknowledged_in: None, keeps_open: false, next_call: &Cell::new(0) }
        .calls(history, message, report)
}

/// Selects the late results of a history and of the live turn.
pub(super) struct LateSelection<'h> {
    pub history: &'h History,
    pub live: Option<&'h History>,
}

impl<'h> LateSelection<'h> {
    /// Returns the late results that are sent before a message: those that it lists first. What the live turn has been
    /// sent does not move.
    pub fn before(&self, message: &'h Message) -> impl Iterator<Item = DraftMessage<'h>> {
        let is_first = |invocation: &&String| {
            let in_live = self.live.and_then(|live| live.late_results().place(invocation));
            in_live.or_else(|| self.history.late_results().place(invocation)) == Some(&message.id)
        };
        message.late_results.iter().filter(is_first).filter_map(|invocation| self.get(invocation)).map(created)
    }

    /// Returns the late results that end the request: those that no message lists, or that it was sent with.
    pub fn unplaced(&self) -> impl Iterator<Item = DraftMessage<'h>> {
        let (stored, live) = (self.history.late_results(), self.live.map(History::late_results));
        let is_unplaced_in_live =
            move |late: &&LateResult| live.is_none_or(|live| live.place(&late.invocation).is_none());
        let is_live_only = move |late: &&LateResult| {
            stored.get(&late.invocation).is_none() && stored.place(&late.invocation).is_none()
        };
        let of_live = live.into_iter().flat_map(LateResults::unplaced).filter(is_live_only);
        let end = live.and_then(LateResults::end);
        let unplaced = stored.unplaced().filter(is_unplaced_in_live).chain(of_live).filter(move |_| end.is_none());
        let sent = end.unwrap_or_default().iter().filter_map(|invocation| self.get(invocation));
        unplaced.chain(sent).map(created)
    }

    pub fn get(&self, invocation: &str) -> Option<&'h LateResult> {
        let in_live = || self.live.and_then(|live| live.late_results().get(invocation));
        let overtaken = || self.history.overtaken_results().get(invocation);
        self.history.late_results().get(invocation).or_else(in_live).or_else(overtaken)
    }
}

fn created(late: &LateResult) -> DraftMessage<'_> {
    DraftMessage::created(&late.message, DraftOrigin::LateResult)
}

/// Which calls of a message are sent.
struct CallSelection<'d, 'h> {
    /// True if the message is in the live turn.
    is_live: bool,
    /// If the service has the message: what it has not acknowledged.
    acknowledged_in: Option<&'d Delta<'h>>,
    /// True if a service leaves a call open until its result comes.
    keeps_open: bool,
    /// The place in history after the last call that was selected.
    next_call: &'d Cell<usize>,
}

impl<'h> CallSelection<'_, 'h> {
    /// Returns the calls of a message that are sent, with their results.
    fn calls(&self, history: &'h History, message: &'h Message, report: &mut Report) -> Vec<DraftCall<'h>> {
        if message.role != Role::Assistant {
            return Vec::new();
        }
        let ids = message.parts.iter().filter_map(|part| match &part.body {
            PartBody::ToolCall { invocation, .. } => Some(invocation),
            _ => None,
        });
        let mut calls = Vec::new();
        for invocation in ids.filter_map(|id| history.next_invocation(id, self.next_call)) {
            if self.acknowledged_in.is_some_and(|delta| !delta.is_pending_result(message, &invocation.id)) {
                continue;
            }
            if invocation.is_deferred {
                // The conversation went on without its result, which is sent elsewhere. A service has the call, and may
                // leave it open.
                if self.acknowledged_in.is_none() || !self.keeps_open {
                    calls.push(DraftCall { invocation, result: None });
                }
                continue;
            }
            let is_withheld = invocation.is_withheld() || invocation.has_withheld_result();
            if is_withheld && (self.is_live || self.acknowledged_in.is_some()) {
                // In a resumed run the model must know that it called the tool, and a service waits for the result.
                let result = invocation.result.as_ref().map_or(DraftResult::Closing(WITHHELD), DraftResult::Stored);
                calls.push(DraftCall { invocation, result: Some(result) });
                continue;
            }
            if is_withheld {
                report_withheld(message, invocation, report);
                continue;
            }
            calls.push(DraftCall { invocation, result: invocation.result.as_ref().map(DraftResult::Stored) });
        }
        calls
    }
}

/// Reports a call that is left out because its content is not stored.
fn report_withheld(message: &Message, invocation: &ToolInvocation, report: &mut Report) {
    let text = if invocation.is_withheld() {
        "nothing is stored of this call but that it was made; it is left out"
    } else {
        "the result of this call is withheld from the store; the call is left out"
    };
    let finding = Finding::info(FindingCode::Redacted, text).of_message(&message.id).of_call(&invocation.call_id);
    report.push(finding.with_action(Action::Dropped));
}
