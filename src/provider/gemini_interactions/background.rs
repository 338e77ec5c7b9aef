//! Interactions in the background: `"background": true` has Google work on an answer when nobody reads it.
//!
//! Sources, read on 2026-11-29: Google's page "Background execution"
//! (ai.google.dev/gemini-api/docs/background-execution): the id comes at once, the statuses are `in_progress` and
//! those of the end, and clients poll by the id or reconnect to a stream that broke; and `GetInteractionByIdRequest`
//! of the SDK for JavaScript, with the query `stream` and `last_event_id`. `background` is "Input only": no answer
//! has it. Not every event of a stream has an `event_id`, and streams that go on after one were reported to stand
//! still (discuss.ai.google.dev/t/143099, by 2026-05), so a stream is read from its start or not at all.

use crate::clock::Ms;
use crate::json::JsonRef;
use crate::provider::request::resource_address;
use crate::provider::spec::{AnswerForm, ResumableAnswers, ResumedAnswer};

pub(super) const BACKGROUND_ANSWERS: ResumableAnswers =
    ResumableAnswers { address, is_pending, is_asked_for, poll_ms: POLL_MS };

/// The member that has the service work on an answer when nobody reads it.
const BACKGROUND: &str = "background";

/// As often as an answer of OpenAI's is asked for; Google names no pause.
const POLL_MS: Ms = 2_000;

pub(super) fn is_pending(status: &str) -> bool {
    matches!(status, "queued" | "in_progress")
}

pub(super) fn is_asked_for(params: JsonRef<'_>) -> bool {
    params.find(BACKGROUND).and_then(JsonRef::as_bool) == Some(true)
}

/// `https://…/interactions?key=k` becomes `https://…/interactions/v1_1?key=k&stream=true`.
fn address(answer: &ResumedAnswer<'_>) -> Option<String> {
    let members = match answer.form {
        AnswerForm::Whole => Vec::new(),
        AnswerForm::Stream { .. } => vec!["stream=true".to_owned()],
    };
    resource_address(answer.request_url, answer.response, members)
}
