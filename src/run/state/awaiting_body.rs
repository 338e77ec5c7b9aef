//! Builds the body of the next model call; the state that waits for a callback that changes it: a reducer, or
//! `inputFilter`.

use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::History;
use crate::json::Json;
use crate::message::KeptHead;
use crate::render::{
    BodyFilterReply, FilterableBody, RenderInput, RenderRequest, RenderStep, Rendered, conversation_body,
};
use crate::replay::{HistoryScope, Policy, ReducerQuestion, ReducerReply, ReplayChoice, SentRequest};
use crate::run::answer::next_provider;
use crate::run::body_filter_question::BodyFilterQuestion;
use crate::run::context::RunContext;
use crate::run::event::RunEvent;
use crate::run::late_results::{prepare_late_results, take_stored_results};
use crate::run::next_state::{
    BodyFilterPlan, CallAttempt, ComposedRequest, EarlyStop, ModelRequest, NextState, RenderPlan,
};
use crate::run::state::chain_restart::restart_changed_chain;
use crate::run::state::settled_request::{ChangedBody, render_request, settle};
use crate::run::state_behavior::StateBehavior;
use crate::run::turn::RunData;
use std::rc::Rc;

/// Activates a pending handoff, then begins an attempt of a model call. Fails the run with `max_turns` at the limit.
pub fn begin_call(turn: &mut RunData, attempt: CallAttempt, context: &RunContext<'_>) -> NextState {
    turn.activate_handoff(context.history);
    let model_calls = turn.totals().model_calls;
    if model_calls >= turn.setup().max_turns {
        let is_open = !turn.open_parts().is_empty();
        let what = if is_open { "the answer is not finished" } else { "the model still calls tools" };
        let message = format!("{what} after {model_calls} model calls; raise `maxTurns` to allow more");
        return EarlyStop::failed(Error::new(ErrorCode::MaxTurns, message)).into();
    }
    NextState::Render(RenderPlan { replies: turn.handoffs().replies(), at: context.now, attempt })
}

/// Builds the body from the replies so far; asks the application if a reducer needs another reply, or if it has a
/// filter.
pub fn build_body(turn: &mut RunData, plan: RenderPlan, context: &mut RunContext<'_>) -> NextState {
    if turn.open_parts().is_empty() {
        take_stored_results(turn, context.history);
    }
    let setup = turn.setup();
    let live = turn.live_of_request();
    let provider = next_provider(turn);
    let request = render_request(turn, &provider);
    // What a service keeps of a conversation changes by its own rules.
    let is_stateful = setup.owner.is_stateful();
    let handoff_views = turn.handoffs().views();
    let choice = turn.history_choice();
    let last = context.renderer.last_request(context.last_request);
    let input = RenderInput {
        history: context.history,
        live: Some(&live),
        owner: turn.owner_of_request(),
        begins_chain: turn.restarts_chain(),
        handoffs: handoff_views,
        agent: turn.handoffs().agent().map(String::as_str),
        scope: if is_stateful { HistoryScope::Whole } else { choice.scope(handoff_views.len()) },
        sent: last.as_ref().and_then(|last| last.sent.as_deref()),
        now: if is_stateful { plan.at } else { choice.time(plan.at) },
    };
    let is_changed = setup.input_filter.is_some() || turn.healing().has_refused(context.refused);
    let step = if is_changed {
        context.renderer.step_before_changes(input, &request, &plan.replies)
    } else {
        context.renderer.step(input, &request, &plan.replies).map(|step| (step, None))
    };
    let (rendered, ledger) = match step {
        Ok((RenderStep::Done(rendered), ledger)) => (rendered, ledger),
        Ok((RenderStep::HeadChanged, _)) => return restart_changed_chain(turn, plan),
        Ok((RenderStep::Question(question), _)) => return NextState::AskReducer(plan, question),
        Err(error) => return EarlyStop::failed(error).into(),
    };
    let Rendered { body, report, prefix, mark, kept_head, choice: new_choice, sent, .. } = rendered;
    let composed = ComposedRequest { attempt: plan.attempt, body: Rc::new(body), report, prefix, mark };
    let filter = setup.input_filter.clone().map(|callback| {
        let renderer = &context.renderer;
        let items = is_stateful.then(|| renderer.composed_items(input, &request, &plan.replies)).transpose()?;
        Ok((callback, FilterableBody::new(provider.dialect, &composed.body, items)?))
    });
    keep_built(turn, &plan, kept_head, context.history);
    let next = match filter {
        Some(Ok((callback, filterable))) => {
            NextState::AskBodyFilter(BodyFilterPlan { callback, filterable, composed, ledger })
        }
        Some(Err(error)) => return EarlyStop::failed(error).into(),
        None if is_changed => {
            let changed = ChangedBody { ledger, filtered: None };
            NextState::SendComposed(settle(turn, composed, changed, context.refused))
        }
        None => NextState::SendComposed(composed),
    };
    let is_chosen = new_choice.is_some();
    keep_choice(turn, new_choice, (plan.at, sent, last.is_some()));
    // Nobody is asked again after a kill.
    if is_chosen && plan.replies.has_any() { NextState::SaveChoice(Box::new(next)) } else { next }
}

/// Records what the body that was built contains.
fn keep_built(turn: &mut RunData, plan: &RenderPlan, kept_head: Option<KeptHead>, history: &History) {
    turn.prepare_mark(history, kept_head);
    prepare_late_results(turn, history);
    turn.handoffs_mut().keep_replies(&plan.replies);
}

/// Keeps what a request contains of history: for the next ones of the run, and, with its time, for the next one of the
/// session. `was_known`: the session has a last request.
fn keep_choice(
    turn: &mut RunData,
    choice: Option<Box<ReplayChoice>>,
    (at, sent, was_known): (Ms, Option<Rc<SentRequest>>, bool),
) {
    let has_redactable_calls = turn.has_redactable_calls();
    let sent = sent.map(|sent| {
        let is_storable = !(has_redactable_calls && sent.record.has_own_messages());
        if is_storable { sent } else { Rc::new(sent.without_ranges()) }
    });
    turn.history_choice_mut().keep_last_request(at, sent, was_known);
    if let Some(choice) = choice {
        turn.history_choice_mut().keep(*choice, has_redactable_calls);
    }
}

/// Returns what the application gives as the input of its next run: the conversation with the answer of this one.
pub fn replay_body(turn: &mut RunData, now: Ms) -> Option<Json> {
    let setup = turn.setup();
    let policy = Policy::default();
    let request = RenderRequest { provider: &setup.provider, instructions: None, tools: &setup.tools, policy: &policy };
    match conversation_body(turn.live(), &request, now) {
        Ok(replay) => Some(replay),
        Err(error) => {
            let message = format!("the conversation cannot be written as the next input: {}", error.message);
            turn.warn(Finding::warning(FindingCode::Malformed, message));
            None
        }
    }
}

/// Sends a request. `held_back` are the ids of the messages that the application's filter held back.
pub fn send(turn: &mut RunData, composed: ComposedRequest, held_back: Vec<String>) -> NextState {
    let ComposedRequest { attempt, body, report, prefix, mark } = composed;
    let body = match turn.continued_body(&body) {
        Ok(continued) => continued.map_or(body, Rc::new),
        Err(error) => return EarlyStop::failed(error).into(),
    };
    // A request that continues an answer contains nothing that could be held back.
    let still_held = turn.continued_mark().map(|mark| mark.pending.clone());
    turn.set_held_back(still_held.unwrap_or(held_back));
    turn.set_prefix_mark(mark);
    turn.add_to_report(&report);
    let number = turn.count_model_call();
    turn.emit(RunEvent::ModelCalled { turn: number, report, prefix });
    NextState::Send(ModelRequest { attempt, body, is_stateful: turn.setup().owner.is_stateful() })
}

/// The run waits for the application's reply, which decides about the next body.
pub struct AwaitingBody {
    question: BodyQuestion,
    /// True if the binding has taken the question.
    question_taken: bool,
}

/// What the application is asked.
enum BodyQuestion {
    /// A reducer's question, and the body that needs the reply.
    Reducer(RenderPlan, ReducerQuestion),
    /// What is sent of the body.
    Filter(BodyFilterPlan),
}

impl AwaitingBody {
    pub fn ask_reducer(plan: RenderPlan, question: ReducerQuestion) -> Self {
        Self { question: BodyQuestion::Reducer(plan, question), question_taken: false }
    }

    pub fn ask_body_filter(plan: BodyFilterPlan) -> Self {
        Self { question: BodyQuestion::Filter(plan), question_taken: false }
    }

    /// Takes the question of a reducer, for the binding. It is returned once.
    pub fn take_reducer_question(&mut self) -> Option<ReducerQuestion> {
        let BodyQuestion::Reducer(_, question) = &self.question else { return None };
        (!std::mem::replace(&mut self.question_taken, true)).then(|| question.clone())
    }

    /// Takes the question to the filter, for the binding. It is returned once.
    pub fn take_body_filter_question(&mut self) -> Option<BodyFilterQuestion> {
        let BodyQuestion::Filter(BodyFilterPlan { callback, filterable, .. }) = &self.question else { return None };
        let question = || BodyFilterQuestion { callback: callback.clone(), body: filterable.redacted().clone() };
        (!std::mem::replace(&mut self.question_taken, true)).then(question)
    }

    /// Continues with the application's reply to a reducer's question, or fails the run if it is an unusable one of a
    /// handoff's filter.
    pub fn reply_to_reducer(&mut self, reply: ReducerReply, context: &mut RunContext<'_>) -> Option<NextState> {
        let BodyQuestion::Reducer(plan, question) = &mut self.question else { return None };
        if let Err(error) = question.check_handoff_reply(&reply) {
            return Some(EarlyStop::failed(error).into());
        }
        let mut replies = std::mem::take(&mut plan.replies);
        context.renderer.take_reply(question.clone(), reply, &mut replies);
        Some(NextState::Render(RenderPlan { replies, at: plan.at, attempt: plan.attempt }))
    }

    /// Sends what the application's filter returned, or fails the run. `refused` are the marks of what was refused in
    /// other runs.
    pub fn reply_to_body_filter(
        &mut self,
        turn: &mut RunData,
        reply: Result<BodyFilterReply>,
        refused: &[String],
    ) -> Option<NextState> {
        let BodyQuestion::Filter(BodyFilterPlan { filterable, composed, ledger, .. }) = &mut self.question else {
            return None;
        };
        let filtered = match reply.and_then(|returned| filterable.apply(&returned)) {
            Ok(filtered) => filtered,
            Err(error) => {
                // The error may quote the body.
                let message = turn.credential_filter().redact(&error.message);
                return Some(EarlyStop::failed(error.with_message(message)).into());
            }
        };
        let changed = ChangedBody { ledger: ledger.take(), filtered: filtered.body };
        let composed = settle(turn, composed.clone(), changed, refused);
        Some(send(turn, composed, filtered.held_back))
    }
}

impl StateBehavior for AwaitingBody {}
