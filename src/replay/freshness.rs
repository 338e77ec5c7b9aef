//! Freshness: results that are too old are dropped or replaced by a note (R10, R11).
//!
//! The age counts from the end of the tool call. A result is stale if its age exceeds its window; a window of 0 makes
//! every result stale. A time stamp up to a minute in the future is clock skew and counts as now; one further ahead is
//! stale. The running turn is never stale.

use super::input::ReplayInput;
use super::policy::{OnStale, Policy, StaleUnit};
use super::request_draft::{DraftCall, DraftMessage, DraftOrigin, DraftResult, RequestDraft};
use crate::clock::Ms;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::{History, LateResult, LateResults};
use crate::message::{Message, Role};
use crate::synthetic_result::EXPIRED;
use crate::tool::Window;

/// The highest difference between two clocks, in milliseconds.
const SKEW: Ms = 60_000;

/// Drops stale results, or replaces them by a note.
pub(super) fn drop_stale_results<'h>(draft: &mut RequestDraft<'h>, input: &ReplayInput<'h, '_>, report: &mut Report) {
    let pass = FreshnessPass { policy: input.policy, now: input.now, running: running_turn(input) };
    let stale = pass.find_stale(draft);
    if has_late_results(input) {
        pass.replace_late_results(draft, input, report);
    }
    if stale.rounds.is_empty() {
        return;
    }
    for item in &mut draft.messages {
        if pass.is_exempt(item) || !stale.has_turn(item.message.turn) {
            continue;
        }
        let message = item.message;
        item.calls.retain_mut(|call| pass.keep(call, message, &stale, report));
    }
    if stale.by_default > 0 {
        let text = format!(
            "{} tool results older than the built-in five minutes are left out; set `replay.freshness` to choose another age (Infinity keeps all)",
            stale.by_default,
        );
        report.push(Finding::warning(FindingCode::StaleDefault, text));
    }
}

/// The settings of the pass.
struct FreshnessPass<'p> {
    policy: &'p Policy,
    now: Ms,
    /// The running turn. It is never stale.
    running: Option<u32>,
}

/// Where a draft has stale results.
#[derive(Default)]
struct StaleRounds {
    /// Turn and round of each stale result, ascending, each once.
    rounds: Vec<(u32, u32)>,
    /// The number of results that are stale by the built-in window.
    by_default: usize,
}

impl StaleRounds {
    /// Adds a round. It is the last one, unless the history is damaged.
    fn add(&mut self, turn: u32, round: u32) {
        if let Err(at) = self.rounds.binary_search(&(turn, round)) {
            self.rounds.insert(at, (turn, round));
        }
    }

    fn has_turn(&self, turn: u32) -> bool {
        self.rounds.binary_search_by_key(&turn, |(turn, _)| *turn).is_ok()
    }

    fn has_round(&self, turn: u32, round: u32) -> bool {
        self.rounds.binary_search(&(turn, round)).is_ok()
    }
}

impl FreshnessPass<'_> {
    /// Returns true for a message that is never stale. A service waits for the results of the calls that it has.
    fn is_exempt(&self, item: &DraftMessage<'_>) -> bool {
        matches!(item.origin, DraftOrigin::Live(_)) || item.is_acknowledged || Some(item.message.turn) == self.running
    }

    fn find_stale(&self, draft: &RequestDraft<'_>) -> StaleRounds {
        let mut stale = StaleRounds::default();
        for item in draft.messages.iter().filter(|item| !self.is_exempt(item)) {
            for call in &item.calls {
                if let Some((_, built_in)) = staleness(call, self.policy, self.now) {
                    stale.by_default += usize::from(built_in);
                    stale.add(item.message.turn, call.invocation.round);
                }
            }
        }
        stale
    }

    /// Replaces late results that are too old by a note, whatever the policy does with other results: their calls stay,
    /// and where they stand the model was told to wait. The age counts from the answer. A result that no request has
    /// contained yet, or that the live turn began with, is not stale.
    fn replace_late_results<'h>(&self, draft: &mut RequestDraft<'h>, input: &ReplayInput<'h, '_>, report: &mut Report) {
        let history = input.history;
        let live = input.live.map(History::late_results);
        let is_in_end = |invocation: &str| {
            live.and_then(LateResults::end).is_some_and(|end| end.iter().any(|sent| sent == invocation))
        };
        let is_placed_in_live =
            |invocation: &str| live.is_some_and(|live| live.place(invocation).is_some()) || is_in_end(invocation);
        for item in &mut draft.messages {
            let late = LateResult::invocation_of(item.message).filter(|_| item.origin == DraftOrigin::LateResult);
            let is_placed = |invocation: &&str| {
                let stored_after = history.overtaken_results().stored_after(invocation);
                history.late_results().place(invocation).is_some()
                    || stored_after.is_some_and(|stored_after| stored_after < history.messages().len())
            };
            let placed = late.filter(|late| is_placed(late) && !is_placed_in_live(late));
            let invocation = placed.and_then(|invocation| history.invocation(invocation));
            let Some((invocation, result)) = invocation.and_then(|call| Some((call, call.result.as_ref()?))) else {
                continue;
            };
            let call = DraftCall { invocation, result: Some(DraftResult::Stored(result)) };
            let stale = staleness(&call, self.policy, self.now);
            let late = history.late_results().get(&invocation.id);
            let note = late.or_else(|| history.overtaken_results().get(&invocation.id)).map(|late| &late.expired);
            if let Some((((code, text), _), note)) = stale.zip(note) {
                item.message = note;
                let finding = Finding::info(code, text).of_message(&invocation.message_id).of_call(&invocation.call_id);
                report.push(finding.with_action(Action::Rewritten));
            }
        }
    }

    /// Returns false for a call that is dropped: it is stale, or another call of its unit is. Replaces its result if
    /// the policy wants a note instead.
    fn keep(&self, call: &mut DraftCall<'_>, message: &Message, stale: &StaleRounds, report: &mut Report) -> bool {
        let reason = staleness(call, self.policy, self.now);
        let is_dropped = match self.policy.stale_unit() {
            StaleUnit::Call => reason.is_some(),
            StaleUnit::Round => stale.has_round(message.turn, call.invocation.round),
            StaleUnit::Turn => true,
        };
        let placeholder = self.policy.on_stale() == OnStale::Placeholder;
        // A call without a result cannot have expired: pairing writes a result for it.
        if !is_dropped || call.invocation.is_deferred || placeholder && call.result.is_none() {
            return true;
        }
        let (code, text) = reason
            .map_or((FindingCode::Stale, "another result of the same round or turn is stale"), |(reason, _)| reason);
        let finding = Finding::info(code, text).of_message(&message.id).of_call(&call.invocation.call_id);
        if placeholder {
            call.result = Some(DraftResult::Placeholder(EXPIRED));
            report.push(finding.with_action(Action::Rewritten));
        } else {
            report.push(finding.with_action(Action::Dropped));
        }
        placeholder
    }
}

fn has_late_results(input: &ReplayInput<'_, '_>) -> bool {
    let has_some = |history: &History| !history.late_results().is_empty() || !history.overtaken_results().is_empty();
    [Some(input.history), input.live].into_iter().flatten().any(has_some)
}

/// Returns the running turn: the last one, unless it has its final answer.
fn running_turn(input: &ReplayInput<'_, '_>) -> Option<u32> {
    // A live turn that begins with an input of its own ends the one before.
    let first_live = input.live.and_then(|live| live.messages().first());
    if first_live.is_some_and(|first| first.role != Role::Assistant) {
        return None;
    }
    let last = input.history.messages().last()?;
    let is_open = last.role == Role::User || last.role == Role::Assistant && input.history.has_calls(last);
    is_open.then_some(last.turn)
}

/// Returns why a call's result is stale, and whether by the built-in window. A call without a result is never stale.
fn staleness(call: &DraftCall<'_>, policy: &Policy, now: Ms) -> Option<((FindingCode, &'static str), bool)> {
    let Some(DraftResult::Stored(result)) = call.result else { return None };
    let (window, built_in) = policy.window(call.invocation, result.is_error);
    let Window::Millis(window) = window else { return None };
    let why = match call.invocation.finished_at {
        None => (FindingCode::Stale, "the result has no time stamp"),
        Some(at) if at > now.saturating_add(SKEW) => (FindingCode::Future, "the result's time stamp is in the future"),
        Some(at) if window == 0 || now.saturating_sub(at) > window => {
            (FindingCode::Stale, "the result is older than its window")
        }
        Some(_) => return None,
    };
    Some((why, built_in))
}
