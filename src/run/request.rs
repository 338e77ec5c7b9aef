//! The next model call: builds its body, and asks the application if a reducer needs it.

use super::context::RunContext;
use super::event::RunEvent;
use super::outcome::RunStatus;
use super::state::{PendingRender, Run, RunState};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode};
use crate::render::{RenderInput, RenderRequest, RenderStep};
use crate::replay::{ReducerQuestion, ReducerReplies, ReducerReply};
use std::rc::Rc;

impl Run {
    /// Calls the model, or fails the run if it has called as often as it may.
    pub(super) fn call_model(&mut self, context: &mut RunContext<'_>) {
        if self.model_calls >= self.setup.max_turns {
            let error = Error::new(
                ErrorCode::MaxTurns,
                format!(
                    "the model still calls tools after {} model calls; raise `maxTurns` to allow more",
                    self.model_calls
                ),
            );
            return self.end_early(RunStatus::Failed, error, context);
        }
        self.build(ReducerReplies::default(), context.now, context);
    }

    /// Builds the body from the replies so far; asks the application if a reducer needs another reply.
    fn build(&mut self, replies: ReducerReplies, at: Ms, context: &mut RunContext<'_>) {
        let provider = self.next_provider();
        let request = RenderRequest {
            provider: &provider,
            instructions: self.setup.instructions.as_deref(),
            tools: &self.setup.tools,
            policy: &self.setup.policy,
        };
        let input = RenderInput { history: context.history, live: Some(&self.live), now: at };
        let rendered = match context.renderer.step(input, &request, &replies) {
            Ok(RenderStep::Done(rendered)) => rendered,
            Ok(RenderStep::Question(question)) => {
                self.state =
                    RunState::AwaitingReducer(Box::new(PendingRender { replies, at, question, is_taken: false }));
                return;
            }
            Err(error) => return self.end_early(RunStatus::Failed, error, context),
        };
        self.report.extend_from_slice(&rendered.report);
        self.events.push(RunEvent::ModelCalled { turn: self.model_calls, report: rendered.report });
        self.model_calls += 1;
        self.offer_call(1, Rc::new(rendered.body), context);
    }

    /// Takes the question of a reducer, for the binding. Each question is returned once.
    pub fn take_question(&mut self) -> Option<ReducerQuestion> {
        let RunState::AwaitingReducer(pending) = &mut self.state else { return None };
        (!std::mem::replace(&mut pending.is_taken, true)).then(|| pending.question.clone())
    }

    /// Continues with the application's reply. A reply that the run does not wait for changes nothing.
    pub(super) fn take_reply(&mut self, reply: ReducerReply, context: &mut RunContext<'_>) {
        if !matches!(self.state, RunState::AwaitingReducer(_)) {
            return;
        }
        let state = std::mem::replace(&mut self.state, RunState::AwaitingJournal { save: 0, cancelled: false });
        if let RunState::AwaitingReducer(pending) = state {
            let PendingRender { mut replies, at, question, .. } = *pending;
            context.renderer.take_reply(question, reply, &mut replies);
            self.build(replies, at, context);
        }
    }
}
