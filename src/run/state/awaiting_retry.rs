//! The run pauses before it repeats a model call.

use crate::clock::Ms;
use crate::error::Result;
use crate::run::effect::{EffectKind, EffectReply};
use crate::run::next_state::{ModelRequest, NextState, wrong_state};
use crate::run::turn::RunData;

/// The run pauses before it repeats a model call.
pub struct AwaitingRetry {
    request: ModelRequest,
}

impl AwaitingRetry {
    /// Offers a `wait`. `request` is the one that failed.
    pub fn enter(turn: &mut RunData, request: ModelRequest, ms: Ms) -> Self {
        turn.close_effects();
        turn.offer(EffectKind::Wait { ms });
        Self { request }
    }

    /// Handles the reply to the `wait`.
    ///
    /// # Errors
    /// `wrong_state` for a reply that does not fit.
    pub fn reply(&self, turn: &mut RunData, reply: &EffectReply) -> Result<NextState> {
        let EffectReply::Waited = reply else {
            return Err(wrong_state("a `wait` must be answered by `waited`"));
        };
        turn.close_effects();
        let ModelRequest { attempt, body } = &self.request;
        Ok(NextState::Send(ModelRequest { attempt: attempt + 1, body: body.clone() }))
    }
}
