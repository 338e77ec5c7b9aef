//! The next model call: its body, and the state in which the application is asked because a reducer needs it.

use crate::error::{Error, ErrorCode};
use crate::render::{RenderInput, RenderRequest, RenderStep};
use crate::replay::{ReducerQuestion, ReducerReplies, ReducerReply};
use crate::run::answer::next_provider;
use crate::run::context::RunContext;
use crate::run::event::RunEvent;
use crate::run::next_state::{CallAttempt, EarlyStop, ModelRequest, NextState, RenderPlan};
use crate::run::turn::RunData;
use std::rc::Rc;

/// Begins an attempt of a model call, or fails the run if it has called as often as it may.
pub fn begin_call(turn: &RunData, attempt: CallAttempt, context: &RunContext<'_>) -> NextState {
    let model_calls = turn.totals().model_calls;
    if model_calls >= turn.setup().max_turns {
        let message =
            format!("the model still calls tools after {model_calls} model calls; raise `maxTurns` to allow more");
        return EarlyStop::failed(Error::new(ErrorCode::MaxTurns, message)).into();
    }
    NextState::Render(RenderPlan { replies: ReducerReplies::default(), at: context.now, attempt })
}

/// Builds the body from the replies so far; asks the application if a reducer needs another reply.
pub fn build_body(turn: &mut RunData, plan: RenderPlan, context: &mut RunContext<'_>) -> NextState {
    let setup = turn.setup();
    let provider = next_provider(turn);
    let request = RenderRequest {
        provider: &provider,
        instructions: setup.instructions.as_deref(),
        tools: &setup.tools,
        policy: &setup.policy,
    };
    let input = RenderInput { history: context.history, live: Some(turn.live()), owner: &setup.owner, now: plan.at };
    let rendered = match context.renderer.step(input, &request, &plan.replies) {
        Ok(RenderStep::Done(rendered)) => rendered,
        Ok(RenderStep::Question(question)) => return NextState::AskReducer(plan, question),
        Err(error) => return EarlyStop::failed(error).into(),
    };
    let is_stateful = setup.owner.is_stateful();
    turn.add_to_report(&rendered.report);
    turn.prepare_mark(context.history);
    let number = turn.count_model_call();
    turn.emit(RunEvent::ModelCalled { turn: number, report: rendered.report });
    NextState::Send(ModelRequest { attempt: plan.attempt, body: Rc::new(rendered.body), is_stateful })
}

/// The run waits for the application's reply to a reducer's question, without which the next body cannot be built.
pub struct AwaitingReducer {
    plan: RenderPlan,
    question: ReducerQuestion,
    /// True if the binding has taken the question.
    question_taken: bool,
}

impl AwaitingReducer {
    pub fn new(plan: RenderPlan, question: ReducerQuestion) -> Self {
        Self { plan, question, question_taken: false }
    }

    /// Takes the question, for the binding. It is returned once.
    pub fn take_question(&mut self) -> Option<ReducerQuestion> {
        (!std::mem::replace(&mut self.question_taken, true)).then(|| self.question.clone())
    }

    /// Continues with the application's reply.
    pub fn reply(&mut self, reply: ReducerReply, context: &mut RunContext<'_>) -> NextState {
        let mut replies = std::mem::take(&mut self.plan.replies);
        context.renderer.take_reply(self.question.clone(), reply, &mut replies);
        NextState::Render(RenderPlan { replies, ..self.plan })
    }
}
