//! What Google's service keeps of conversations: interactions, as chains of responses.
//!
//! Sources: Google's page "Interactions API" (read 2026-11): `previous_interaction_id` keeps the history only, inputs
//! and outputs; `tools`, `system_instruction` and `generation_config` are of one interaction, so each request has them.
//! An interaction is kept for 55 days, without billing for one day. The page has no list of errors. Quoted elsewhere of
//! an interaction that the service does not have: 404 "Requested entity was not found" (of a request that continues
//! one; in code that recovers from it, 2026), 404 with the code `not_found` (of a GET, python-genai#2985, 2026-09), and
//! 400 "Invalid turn token: <id>" with the code `invalid_request` (stozo04/Interactive-Video-Character, 2026-01, after a
//! day).

use crate::json::JsonStr;
use crate::provider::spec::{ChainForm, ServiceState, StateRefusal};

pub(super) const PREVIOUS_INTERACTION: &str = "previous_interaction_id";
/// The member that says whether Google keeps the request and its answer. It does unless this is false.
pub(super) const STORE: &str = "store";

pub(super) const SERVICE_STATE: ServiceState = ServiceState {
    conversation: None,
    begun_conversation: None,
    chain: ChainForm {
        member: PREVIOUS_INTERACTION,
        continued: |id| JsonStr::new(id).to_json(),
        begun: None,
        kept_members: &[],
    },
    header: None,
    // A body with the whole history says that it need not be kept.
    parameter: Some((STORE, "true")),
    refusal,
    continues_after,
    ends_when_refused: false,
    is_kept: |_| false,
    compaction: None,
};

/// Google's page has "a completed interaction" continued, its SDK (3.1.0) also one that is `incomplete` and one with
/// calls. One with `requires_continuation` is continued by its token only; of `budget_exceeded`, and of what is not
/// known, nothing is documented: the chain continues the answer before.
fn continues_after(finish_reason: &str) -> bool {
    matches!(finish_reason, "completed" | "requires_action" | "incomplete")
}

/// What Google says of a valid result if it keeps the calls before it in another order (python-genai#3003, 2026-09-22).
const OUT_OF_ORDER: &str = "Please ensure that function response turn comes immediately after a function call turn";

/// What other resources are called in errors.
const NAMED: [&str; 3] = ["models/", "agents/", "files/"];

pub(super) fn refusal(status: u16, code: &str, sentence: &str) -> Option<StateRefusal> {
    match status {
        // The number is the code in errors of Google's other APIs. What the sentence names is what was not found.
        404 if NAMED.iter().any(|name| sentence.contains(name)) => None,
        404 if matches!(code, "not_found" | "NOT_FOUND" | "404") => Some(StateRefusal::ResponseMissing),
        400 if sentence.starts_with("Invalid turn token") => Some(StateRefusal::ResponseMissing),
        400 if sentence.contains(OUT_OF_ORDER) => Some(StateRefusal::NotContinued),
        // After steps of `google_search` or `code_execution` (js-genai#1694, 2026-06-16).
        501 => Some(StateRefusal::NotContinued),
        _ => None,
    }
}
