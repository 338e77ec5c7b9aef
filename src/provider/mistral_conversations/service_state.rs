//! What Mistral's service keeps of conversations.
//!
//! `POST /v1/conversations` with `store` begins one, and `POST /v1/conversations/{conversation_id}` appends to it.
//!
//! Sources, read on 2026-11-29: Mistral's API reference (docs.mistral.ai/api/endpoint/beta/conversations), in which
//! `ConversationAppendRequest` has no instructions, tools, model or agent; and the exchange that braintrust-sdk-python
//! recorded on 2026-07-21 (`test_wrap_mistral_beta_conversations_append_async.yaml`): the answer to an append names the
//! same conversation. No refusal is documented but 422 for a body that does not fit the schema, and none was recorded.

use crate::json::JsonStr;
use crate::provider::request::resource_address;
use crate::provider::spec::{BegunConversation, ChainForm, ServiceState, StateRefusal};

/// The member that a body has until it is sent: the id is in the address.
pub(super) const CONVERSATION: &str = "conversation_id";

/// The member that says whether Mistral keeps the conversation.
pub(super) const STORE: &str = "store";

pub(super) const SERVICE_STATE: ServiceState = ServiceState {
    conversation: Some(CONVERSATION),
    begun_conversation: Some(BegunConversation {
        address: |url, id| resource_address(url, id, Vec::new()),
        labels: &["name", "description", "metadata"],
    }),
    chain: ChainForm {
        member: CONVERSATION,
        continued: |id| JsonStr::new(id).to_json(),
        begun: None,
        kept_members: &["instructions", "tools", "model", "agent_id", "agent_version", "guardrails"],
    },
    header: None,
    parameter: Some((STORE, "true")),
    refusal,
    continues_after: |_| true,
    ends_when_refused: false,
    is_kept: |_| false,
    compaction: None,
};

/// What a missing conversation is answered with is not documented; no other meaning of a 404 is, either.
fn refusal(status: u16, _code: &str, _sentence: &str) -> Option<StateRefusal> {
    (status == 404).then_some(StateRefusal::ConversationMissing)
}
