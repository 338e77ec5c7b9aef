//! The next request: its body is built, and where a reducer asks, the application is asked first.

use super::event::RunEvent;
use super::outcome::RunStatus;
use super::state::State;
use super::{Desk, Run};
use crate::clock::Ms;
use crate::error::{Code, Error};
use crate::render::{RenderRequest, Rendering};
use crate::replay::{Ask, Given, Progress};
use std::rc::Rc;

/// A body in the making.
pub(super) struct Asking {
    progress: Progress,
    /// The time that counts for this body.
    at: Ms,
    ask: Ask,
    /// The binding has the question.
    taken: bool,
}

impl Run {
    /// Builds the next body and calls.
    pub(super) fn call_model(&mut self, desk: &mut Desk<'_>) {
        if self.turns >= self.setup.max_turns {
            let error = Error::new(
                Code::MaxTurns,
                format!("the model still calls tools after {} calls; raise `maxTurns` if that is meant", self.turns),
            );
            return self.end_early(RunStatus::Failed, error, desk);
        }
        self.build(Progress::default(), desk.now, desk);
    }

    /// Builds the body with what the application told so far, or asks it.
    fn build(&mut self, progress: Progress, at: Ms, desk: &mut Desk<'_>) {
        let provider = self.next_provider();
        let request = RenderRequest {
            provider: &provider,
            instructions: self.setup.instructions.as_deref(),
            tools: &self.setup.tools,
            policy: &self.setup.policy,
        };
        let rendered = match desk.renderer.step(desk.history, Some(&self.live), &request, at, &progress) {
            Ok(Rendering::Done(rendered)) => rendered,
            Ok(Rendering::Ask(ask)) => {
                self.state = State::Asking(Box::new(Asking { progress, at, ask, taken: false }));
                return;
            }
            Err(error) => return self.end_early(RunStatus::Failed, error, desk),
        };
        self.report.extend_from_slice(&rendered.report);
        self.events.push(RunEvent::ModelCalled { turn: self.turns, report: rendered.report });
        self.turns += 1;
        self.offer_call(1, Rc::new(rendered.body), desk);
    }

    /// The question of a reducer, for the binding; each is given once.
    pub fn take_ask(&mut self) -> Option<Ask> {
        let State::Asking(asking) = &mut self.state else { return None };
        (!std::mem::replace(&mut asking.taken, true)).then(|| asking.ask.clone())
    }

    /// Goes on with an answer. One that comes when nobody waits for it any more changes nothing.
    pub(super) fn told(&mut self, given: Given, desk: &mut Desk<'_>) {
        if !matches!(self.state, State::Asking(_)) {
            return;
        }
        let state = std::mem::replace(&mut self.state, State::Beginning { save: 0, cancelled: false });
        if let State::Asking(asking) = state {
            let Asking { mut progress, at, ask, .. } = *asking;
            desk.renderer.told(ask, given, &mut progress);
            self.build(progress, at, desk);
        }
    }
}
