//! An answer that the provider pauses: what the next request needs, and what follows if that is refused.

use super::AwaitingModel;
use crate::finding::{Finding, FindingCode};
use crate::json::JsonRef;
use crate::provider::{Assembled, ContinuedAnswer, Pause, spec};
use crate::run::next_state::{NextState, TurnEnd};
use crate::run::turn::{RunData, TOKEN_REFUSED};

impl AwaitingModel {
    /// Returns what the provider expects after an answer, if it has paused it. One that it continues by a token only is
    /// not paused if it has none that could be sent, or has calls: they would run before the answer is whole.
    pub(super) fn pause_after(&self, turn: &RunData, assembled: &Assembled) -> Option<Pause> {
        let provider = &turn.setup().provider;
        let spec = spec(provider.dialect);
        let reason = assembled.finish_reason.as_deref().unwrap_or_default();
        let pause = spec.pause_after(reason, provider.params.view())?;
        let Some(tokens) = spec.paused_turns.as_ref().and_then(|paused| paused.tokens.as_ref()) else {
            return Some(pause);
        };
        // A server may repeat a key (R68).
        let token = assembled.continuation.as_deref().filter(|token| turn.credential_filter().redact(token) == *token);
        let body = std::str::from_utf8(&self.request.body).ok().and_then(|text| JsonRef::parse(text).ok());
        let (token, body) = token.zip(body).filter(|_| assembled.calls.is_empty())?;
        let answer = ContinuedAnswer { body, token, response: assembled.response_id.as_deref() };
        (tokens.continued)(&answer).map(|_| pause)
    }

    /// Ends the turn with what has arrived of an answer, if the service does not continue it by its token any more: no
    /// other request would get the rest. The refused one does not count as a model call. `is_lost`: the service does not
    /// continue the interaction that the request names.
    pub(super) fn end_refused_continuation(
        turn: &mut RunData,
        status: u16,
        assembled: &Assembled,
        is_lost: bool,
    ) -> Option<NextState> {
        let last = turn.open_parts().last()?.id.clone();
        let tokens = spec(turn.setup().provider.dialect).paused_turns.as_ref()?.tokens.as_ref()?;
        let error = assembled.error.as_ref()?;
        if !is_lost && !(tokens.is_refused)(status, &error.message) {
            return None;
        }
        let text = format!("{TOKEN_REFUSED}: {}", error.message);
        turn.uncount_model_call();
        turn.close_effects();
        turn.warn(Finding::warning(FindingCode::Interrupted, text).of_message(&last));
        turn.truncate_part(&last);
        Some(NextState::SaveTurn(TurnEnd::Answer))
    }
}
