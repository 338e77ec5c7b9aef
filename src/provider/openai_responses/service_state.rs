//! What OpenAI's service keeps of conversations.

use super::encode;
use crate::json::{Json, JsonKind, JsonRef, ObjectWriter};
use crate::provider::spec::ServiceState;

pub(super) const CONVERSATION: &str = "conversation";
pub(super) const PREVIOUS_RESPONSE: &str = "previous_response_id";

pub(super) const SERVICE_STATE: ServiceState = ServiceState {
    conversation: CONVERSATION,
    previous_response: PREVIOUS_RESPONSE,
    is_conversation_locked: |status, code| status == 400 && code == "conversation_locked",
    is_previous_response_missing: |status, code| matches!(status, 400 | 404) && code == "previous_response_not_found",
    is_kept: encode::is_kept_by_service,
    compaction_request,
    compacted_items,
};

/// `POST /responses/compact` takes the chain by its newest response.
fn compaction_request(model: Option<&str>, previous: &str) -> Vec<u8> {
    let body: Json = ObjectWriter::build(|out| {
        out.text_or_null("model", model).text(PREVIOUS_RESPONSE, previous);
    });
    body.as_str().as_bytes().to_vec()
}

fn compacted_items(answer: JsonRef<'_>) -> Option<Vec<Json>> {
    let output = answer.find("output").filter(|_| answer.has_text("object", "response.compaction"))?;
    let items: Vec<Json> = output.items().map(|item| item.to_owned()).collect();
    let is_object = |item: &Json| item.view().kind() == JsonKind::Object;
    (!items.is_empty() && items.iter().all(is_object)).then_some(items)
}
