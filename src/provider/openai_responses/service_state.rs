//! What OpenAI's service keeps of conversations.

use super::encode;
use crate::json::{Json, JsonKind, JsonRef, JsonStr, ObjectWriter};
use crate::provider::spec::{ChainCompaction, ChainForm, ServiceState, StateRefusal};

pub(super) const CONVERSATION: &str = "conversation";
pub(super) const PREVIOUS_RESPONSE: &str = "previous_response_id";

pub(super) const SERVICE_STATE: ServiceState = ServiceState {
    conversation: Some(CONVERSATION),
    begun_conversation: None,
    chain: ChainForm {
        member: PREVIOUS_RESPONSE,
        continued: |id| JsonStr::new(id).to_json(),
        begun: None,
        kept_members: &[],
    },
    header: None,
    parameter: None,
    refusal,
    continues_after: |_| true,
    ends_when_refused: false,
    is_kept: encode::is_kept_by_service,
    compaction: Some(ChainCompaction { request: compaction_request, items: compacted_items }),
};

fn refusal(status: u16, code: &str, _sentence: &str) -> Option<StateRefusal> {
    match (status, code) {
        (400, "conversation_locked") => Some(StateRefusal::Locked),
        (400 | 404, "previous_response_not_found") => Some(StateRefusal::ResponseMissing),
        _ => None,
    }
}

/// `POST /responses/compact` takes the chain by its newest response.
fn compaction_request(model: Option<&str>, previous: &str) -> Vec<u8> {
    let body: Json = ObjectWriter::build(|out| {
        out.text_or_null("model", model).text(PREVIOUS_RESPONSE, previous);
    });
    body.as_str().as_bytes().to_vec()
}

/// Reads the answer of `POST /responses/compact`.
pub(super) fn compacted_items(answer: JsonRef<'_>) -> Option<Vec<Json>> {
    let output = answer.find("output").filter(|_| answer.has_text("object", "response.compaction"))?;
    let items: Vec<Json> = output.items().map(|item| item.to_owned()).collect();
    let is_object = |item: &Json| item.view().kind() == JsonKind::Object;
    (!items.is_empty() && items.iter().all(is_object)).then_some(items)
}
