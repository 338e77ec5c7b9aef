//! Answers that Google pauses at its limit of tokens for one request: the status `requires_continuation`, with a token.
//!
//! Sources, read on 2026-11-29: the SDK google-genai 3.6.1 for Python, whose `_interactions_continuation.py` follows
//! the hops (since 2.28.0, 2026-10-02), and the type alias `AutomaticContinuationOption` of its sister for
//! JavaScript. "Opaque token to resume a long decode. … pass the latest token back unchanged". If the interaction is
//! kept (`store`), the next request has its id as `previous_interaction_id` and no `input` ("the server checks the
//! token belongs to it"); else it has the original input once more. Instructions, tools and parameters are the same.
//! Each hop is an interaction of its own, with its own steps. The SDK stops at a token that it has just sent, sends
//! one again after a lost connection, and leaves agents and answers in the background to the service. No page says
//! what a refused token is answered with.

use super::background;
use super::service_state::{PREVIOUS_INTERACTION, STORE};
use crate::json::{Json, JsonRef, ObjectWriter};
use crate::provider::spec::{AnswerTokens, ContinuedAnswer, Pause, PausedTurns};

pub(super) const CONTINUATION_TOKEN: &str = "continuation_token";
/// The status of an answer that a request with its token continues.
pub(super) const REQUIRES_CONTINUATION: &str = "requires_continuation";

pub(super) const PAUSED_TURNS: PausedTurns = PausedTurns {
    pause_after: |status, _| (status == REQUIRES_CONTINUATION).then_some(Pause::Resumes),
    params_in_container: |_, _| None,
    tokens: Some(AnswerTokens { continued, is_refused }),
};

/// The members of a request of an agent, whose loop is the service's.
const OF_AGENT: [&str; 2] = ["agent", "agent_config"];

fn continued(answer: &ContinuedAnswer<'_>) -> Option<Json> {
    let ContinuedAnswer { body, token, response } = *answer;
    let is_other = OF_AGENT.iter().any(|name| body.find(name).is_some()) || background::is_asked_for(body);
    // The same token once more would bring the same answer.
    if is_other || body.text(CONTINUATION_TOKEN).is_some_and(|sent| sent == token) {
        return None;
    }
    let is_kept = body.find(STORE).and_then(JsonRef::as_bool) != Some(false);
    let replaced: &[&str] =
        if is_kept { &["input", PREVIOUS_INTERACTION, CONTINUATION_TOKEN] } else { &[CONTINUATION_TOKEN] };
    let kept_id = response.filter(|id| !id.is_empty());
    if is_kept && kept_id.is_none() {
        return None;
    }
    Some(ObjectWriter::build(|out| {
        for (key, value) in body.entries() {
            if !key.as_text().is_some_and(|name| replaced.contains(&&*name)) {
                out.copy(key, value);
            }
        }
        if let Some(id) = kept_id.filter(|_| is_kept) {
            out.text(PREVIOUS_INTERACTION, id);
        }
        out.text(CONTINUATION_TOKEN, token);
    }))
}

/// An assumption: Google names the token.
fn is_refused(status: u16, sentence: &str) -> bool {
    status == 400 && sentence.to_ascii_lowercase().contains("continuation")
}
