//! Continues an interrupted run from its journal (R18).

use super::background_answer::BackgroundAnswer;
use super::context::RunContext;
use super::healing::RunHealing;
use super::history_choice::HistoryChoice;
use super::journal::StoredPause;
use super::machine::{Run, enter};
use super::next_state::{CallAttempt, NextState, RetryPause, TurnEnd};
use super::replay_safety::RequestDelivery;
use super::setup::RunSetup;
use super::state::can_pick_up;
use super::stored_run::StoredRun;
use super::stored_turn::{StoredTurn, has_unanswered_call};
use super::turn::{RunData, text_of_last_answer};
use super::turn_totals::TurnTotals;
use crate::clock::Ms;
use crate::error::Result;
use crate::finding::Report;
use crate::history::History;
use crate::message::{Message, Role};
use crate::owner::Delta;

impl Run {
    /// Continues an interrupted run, which the binding has taken over before.
    ///
    /// # Errors
    /// `config_invalid`, and `conflict` for a run that was cancelled; nothing has happened then.
    pub fn resume(setup: RunSetup, mut stored: StoredRun, context: &mut RunContext<'_>) -> Result<Self> {
        let setup = setup.for_owner();
        setup.check()?;
        stored.check_credentials(&setup.provider)?;
        stored.check_continuation(&setup.provider)?;
        stored.check_not_cancelled()?;
        let background = stored.take_background();
        let StoredRun {
            began,
            live,
            model_calls,
            usage,
            mut calls,
            pause,
            is_complete,
            handoffs,
            selection,
            refused,
            restarts_chain,
            records,
            is_replay_safe,
            ..
        } = stored;
        let stored = StoredTurn::from_history(&live, context.history);
        // A tool does not run if its result could not be sent.
        let delta = Delta::new(&setup.owner, setup.provider.dialect, context.history, Some(&live));
        calls.are_closed_elsewhere = delta.check_calls_are_open().is_err();
        let appends = appends_to_conversation(&setup, &delta, restarts_chain);
        let mut totals = TurnTotals { model_calls, usage, ..TurnTotals::default() };
        // Where nothing is picked up, the pause before that says nothing.
        let call_pause = pause.filter(|pause| !pause.is_pick_up);
        let mut next = next_after(call_pause, appends, context.now);
        if add_last_answer(&mut totals, &live, is_complete) && call_pause.is_none() {
            next = NextState::RunTools(calls);
        }
        if is_complete {
            next = NextState::SaveTurn(TurnEnd::Answer);
        }
        // A conversation has what it was sent, whether or not the answer was stored.
        let may_have_sent = appends && !live.messages().last().is_some_and(|last| has_unanswered_call(&live, last));
        let mut turn = RunData::new(setup, live, stored, Report::new());
        turn.set_totals(totals);
        turn.set_request_delivery(delivery_of(may_have_sent, is_replay_safe));
        turn.keep_journal(records);
        turn.report_truncated_part();
        if restarts_chain {
            turn.try_restart_chain();
        }
        *turn.healing_mut() = RunHealing::of(refused);
        *turn.history_choice_mut() = HistoryChoice::new(&began, selection);
        turn.restore_handoffs(handoffs, context.history)?;
        turn.prefer_first_results(context.history);
        if let Some(answer) = background.filter(|answer| !is_complete && can_pick_up(&turn, answer)) {
            next = pick_up(&mut turn, answer, pause, context);
        }
        let state = enter(&mut turn, next, context);
        Ok(Self { turn, state })
    }
}

/// Returns true if the next request is appended to a conversation. One that began a conversation begins another one:
/// what the first one has is in no conversation of the session.
fn appends_to_conversation(setup: &RunSetup, delta: &Delta<'_>, restarts_chain: bool) -> bool {
    let begins = setup.owner.began_here() && (restarts_chain || delta.response_id().is_none());
    setup.owner.is_conversation() && !begins
}

/// Adds what the last answer of a turn says. Returns true if it has calls.
fn add_last_answer(totals: &mut TurnTotals, live: &History, is_complete: bool) -> bool {
    let is_answer = |last: &&Message| last.role == Role::Assistant && !last.source.is_of_provider();
    let Some(last) = live.messages().last().filter(is_answer) else { return false };
    totals.response_id = last.answer.as_ref().and_then(|answer| answer.response_id.clone());
    let has_calls = live.has_calls(last);
    // The last answer of a complete turn has no message if calls are before it.
    if !(is_complete && has_calls) {
        totals.text = text_of_last_answer(live);
    }
    has_calls
}

/// Picks an answer up, after the pause that its journal ends with.
fn pick_up(
    turn: &mut RunData,
    answer: Box<BackgroundAnswer>,
    pause: Option<StoredPause>,
    context: &RunContext<'_>,
) -> NextState {
    // Its request was the newest agent's.
    turn.activate_handoff(context.history);
    NextState::PickUp(answer, pause.map(|pause| pause.not_before).filter(|end| *end > context.now))
}

/// Returns what is known of the newest request.
fn delivery_of(may_have_sent: bool, is_replay_safe: bool) -> RequestDelivery {
    match (may_have_sent, is_replay_safe) {
        (false, _) => RequestDelivery::Answered,
        (true, false) => RequestDelivery::Unconfirmed,
        (true, true) => RequestDelivery::NotDelivered,
    }
}

/// Returns the first state of a resumed run whose journal ends with this pause before a retry, or with none.
fn next_after(pause: Option<StoredPause>, is_conversation: bool, now: Ms) -> NextState {
    match pause {
        None => NextState::CallModel,
        Some(StoredPause { attempt, not_before, .. }) if not_before > now => {
            NextState::Pause(RetryPause { attempt, not_before, request: None, save: None, is_before_sending: true })
        }
        Some(_) if is_conversation => NextState::CallModel,
        Some(pause) => NextState::ResumeCall(CallAttempt { number: pause.attempt, not_before: None }),
    }
}
