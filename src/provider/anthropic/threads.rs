//! What Anthropic's service keeps of conversations: message threads, as chains of responses.
//!
//! Sources: the documentation ("Message threads", beta, read 2026-11) and `@anthropic-ai/sdk` 1.12.0. A thread is kept
//! in memory for five minutes after its last request, and "is best-effort". A response is stored whole or not at all,
//! and no answer says whether it was: the next request learns it.

use crate::json::{Json, JsonRef, ObjectWriter};
use crate::provider::spec::{ChainForm, ServiceState, StateRefusal};

/// `{"type":"create"}`, or `{"type":"continue","previous_message_id":"msg_1"}`.
pub(super) const THREAD: &str = "thread";

const CONTINUE: &str = "continue";

pub(super) const SERVICE_STATE: ServiceState = ServiceState {
    conversation: None,
    begun_conversation: None,
    chain: ChainForm {
        member: THREAD,
        continued,
        begun: Some("{\"type\":\"create\"}"),
        // "The thread keeps the values from the create request"; a request that repeats them is refused.
        kept_members: &["system", "tools"],
    },
    header: Some(("anthropic-beta", "message-threads-2026-08-12")),
    parameter: None,
    refusal,
    continues_after: |_| true,
    // The SDK's helper starts a new thread after `stop_reason: "refusal"`, as "the server may hold the refused turn".
    ends_when_refused: true,
    is_kept: |_| false,
    compaction: None,
};

/// Returns true for a body that continues a thread: the service has the messages before those of its list.
pub(super) fn is_continued(thread: JsonRef<'_>) -> bool {
    thread.has_text("type", CONTINUE)
}

fn continued(id: &str) -> Json {
    ObjectWriter::build(|out| {
        out.text("type", CONTINUE).text("previous_message_id", id);
    })
}

fn refusal(status: u16, code: &str, _sentence: &str) -> Option<StateRefusal> {
    match (status, code) {
        (404, "thread_not_found") => Some(StateRefusal::ResponseMissing),
        (400, "thread_already_continued") => Some(StateRefusal::ResponseContinued),
        (400, "thread_continue_in_flight") => Some(StateRefusal::Locked),
        (400, "thread_fingerprint_mismatch") => Some(StateRefusal::HeadChanged),
        (400, "thread_unsupported_request") => Some(StateRefusal::Unsupported),
        _ => None,
    }
}
