//! Recognises steps.

use super::Interactions;
use super::step::{FUNCTION_CALL, FUNCTION_RESULT, MODEL_OUTPUT, StepKind, THOUGHT, USER_INPUT, is_of_server};
use crate::json::JsonRef;
use crate::provider::foreign_format::is_provider_type;
use crate::provider::rules::Fields;
use crate::provider::spec::{ItemRecognizer, Mention};

impl ItemRecognizer for Interactions {
    /// Calls of the Responses API have a `call_id`, those of steps an `id`.
    fn marks_item(&self, item: &Fields<'_>) -> bool {
        let has = |name: &str| item.find(name).is_some();
        let item_type = item.text("type").unwrap_or_default();
        match item_type.as_ref() {
            USER_INPUT | MODEL_OUTPUT | THOUGHT | FUNCTION_RESULT => true,
            FUNCTION_CALL => !has("call_id"),
            item_type => {
                is_of_server(item_type) && (item_type.ends_with("_result") || !has("call_id") && !has("status"))
            }
        }
    }

    fn reads(&self, item: &Fields<'_>) -> bool {
        let has_role = item.text("role").is_some();
        match StepKind::of_fields(item) {
            StepKind::Unknown => false,
            StepKind::Other => item.text("type").is_some_and(|item_type| is_provider_type(&item_type)),
            StepKind::UserTurn | StepKind::ModelTurn => true,
            _ => !has_role,
        }
    }

    fn mention<'a>(&self, item: &Fields<'a>, id: JsonRef<'a>) -> Mention<'a> {
        let is_id = |name: &str| item.get(name).is_some_and(|value| value.is_same(id));
        if is_id("call_id") && item.find("result").is_some() {
            return Mention::Result(item.object, "type", FUNCTION_RESULT);
        }
        if is_id("id") && item.find("arguments").is_some() { Mention::Call } else { Mention::Unread }
    }
}
