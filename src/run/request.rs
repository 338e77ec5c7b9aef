//! The next request: its body is built, and where a reducer asks, the application is asked first.

use super::event::RunEvent;
use super::outcome::RunStatus;
use super::state::RunState;
use super::{Run, RunContext};
use crate::clock::Ms;
use crate::error::{Code, Error};
use crate::render::{RenderRequest, RenderStep};
use crate::replay::{ReducerQuestion, ReducerReplies, ReducerReply};
use std::rc::Rc;

/// A body in the making.
pub(super) struct PendingRender {
    progress: ReducerReplies,
    /// The time that counts for this body.
    at: Ms,
    ask: ReducerQuestion,
    /// The binding has the question.
    taken: bool,
}

impl Run {
    /// Builds the next body and calls.
    pub(super) fn call_model(&mut self, context: &mut RunContext<'_>) {
        if self.turns >= self.setup.max_turns {
            let error = Error::new(
                Code::MaxTurns,
                format!("the model still calls tools after {} calls; raise `maxTurns` if that is meant", self.turns),
            );
            return self.end_early(RunStatus::Failed, error, context);
        }
        self.build(ReducerReplies::default(), context.now, context);
    }

    /// Builds the body with what the application told so far, or asks it.
    fn build(&mut self, progress: ReducerReplies, at: Ms, context: &mut RunContext<'_>) {
        let provider = self.next_provider();
        let request = RenderRequest {
            provider: &provider,
            instructions: self.setup.instructions.as_deref(),
            tools: &self.setup.tools,
            policy: &self.setup.policy,
        };
        let rendered = match context.renderer.step(context.history, Some(&self.live), &request, at, &progress) {
            Ok(RenderStep::Done(rendered)) => rendered,
            Ok(RenderStep::Question(ask)) => {
                self.state = RunState::Asking(Box::new(PendingRender { progress, at, ask, taken: false }));
                return;
            }
            Err(error) => return self.end_early(RunStatus::Failed, error, context),
        };
        self.report.extend_from_slice(&rendered.report);
        self.events.push(RunEvent::ModelCalled { turn: self.turns, report: rendered.report });
        self.turns += 1;
        self.offer_call(1, Rc::new(rendered.body), context);
    }

    /// The question of a reducer, for the binding; each is given once.
    pub fn take_question(&mut self) -> Option<ReducerQuestion> {
        let RunState::Asking(asking) = &mut self.state else { return None };
        (!std::mem::replace(&mut asking.taken, true)).then(|| asking.ask.clone())
    }

    /// Goes on with an answer. One that comes when nobody waits for it any more changes nothing.
    pub(super) fn told(&mut self, given: ReducerReply, context: &mut RunContext<'_>) {
        if !matches!(self.state, RunState::Asking(_)) {
            return;
        }
        let state = std::mem::replace(&mut self.state, RunState::Beginning { save: 0, cancelled: false });
        if let RunState::Asking(asking) = state {
            let PendingRender { mut progress, at, ask, .. } = *asking;
            context.renderer.told(ask, given, &mut progress);
            self.build(progress, at, context);
        }
    }
}
