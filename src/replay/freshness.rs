//! Freshness: results that are too old are dropped or replaced by a note (R10, R11).
//!
//! The age counts from the end of the tool call. A result is stale if its age exceeds its window; a window of 0 makes every result
//! stale. A time stamp up to a minute in the future is clock skew and counts as now; one further ahead is stale. The running turn is
//! never stale.

use super::draft::{Draft, DraftCall, DraftOrigin, DraftResult};
use super::policy::{OnStale, Policy, StaleUnit};
use crate::clock::Ms;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::History;
use crate::message::Role;
use crate::sorted::Sorted;
use crate::tool::Window;

/// The highest difference between two clocks, in milliseconds.
const SKEW: Ms = 60_000;

const EXPIRED: &str = "Expired: this result is too old to rely on. Call the tool again if it matters.";

pub(super) fn freshness<'h>(
    draft: &mut Draft<'h>,
    history: &'h History,
    has_live: bool,
    policy: &Policy,
    now: Ms,
    report: &mut Report,
) {
    let running = running_turn(history, has_live);
    let mut by_default = 0_usize;
    // Which calls are too old; then their round or turn with them.
    let mut units: Sorted<(u32, u32), ()> = Sorted::new();
    let unit = policy.stale_unit();
    for item in &draft.messages {
        if matches!(item.origin, DraftOrigin::Live(_)) || Some(item.message.turn) == running {
            continue;
        }
        for call in &item.calls {
            if let Some((_, built_in)) = staleness(call, policy, now) {
                by_default += usize::from(built_in);
                units.insert((item.message.turn, call.invocation.round), ());
            }
        }
    }
    if units.is_empty() {
        return;
    }
    let in_units = |turn: u32| units.from(&(turn, 0)).first().is_some_and(|((own, _), ())| *own == turn);
    for item in &mut draft.messages {
        let turn = item.message.turn;
        if matches!(item.origin, DraftOrigin::Live(_)) || Some(turn) == running || !in_units(turn) {
            continue;
        }
        item.calls.retain_mut(|call| {
            let own = staleness(call, policy, now);
            let goes = match unit {
                StaleUnit::Call => own.is_some(),
                StaleUnit::Round => units.contains(&(turn, call.invocation.round)),
                StaleUnit::Turn => true,
            };
            if !goes {
                return true;
            }
            let placeholder = policy.on_stale() == OnStale::Placeholder;
            // What never came cannot have expired: pairing says what is known of it.
            if placeholder && call.result.is_none() {
                return true;
            }
            let (code, message) = own
                .map_or((FindingCode::Stale, "it goes with another one of its unit that is too old"), |(why, _)| why);
            let finding = Finding::info(code, message).of_message(&item.message.id).of_call(&call.invocation.call_id);
            if placeholder {
                call.result = Some(DraftResult::Placeholder(EXPIRED));
                report.push(finding.with_action(Action::Rewritten));
                return true;
            }
            report.push(finding.with_action(Action::Dropped));
            false
        });
    }
    if by_default > 0 {
        report.push(Finding::warning(FindingCode::StaleDefault,
            format!("{by_default} tool results older than the built-in five minutes are left out; set `replay.freshness` to say otherwise (Infinity keeps all)"),
        ));
    }
}

/// Returns the running turn: the last one, unless it has its final answer.
fn running_turn(history: &History, has_live: bool) -> Option<u32> {
    let last = history.messages().last()?;
    let open = last.role == Role::User || last.role == Role::Assistant && history.has_calls(last);
    // A live turn that begins with an input of its own ends the one before.
    (open && !has_live).then_some(last.turn)
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
