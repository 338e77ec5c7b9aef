//! What a body says beside its items.

use crate::json::JsonRef;
use crate::provider::openai_responses::kinds::kind_of;
use crate::provider::rules::Plan;

/// What is known of a body beside its items.
#[derive(Clone, Copy)]
pub(super) struct InputContext {
    /// The server stores a part of the history (`previous_response_id`, `conversation`, `item_reference`), so an output may answer
    /// a call that is not in the body.
    pub has_stored_history: bool,
    /// The model is DeepSeek's. Recorded: it alone rejects call, message, call, outputs.
    pub is_deepseek: bool,
    /// The model is not OpenAI's: its items have ids of another form (recorded for DeepSeek and Grok).
    pub has_foreign_ids: bool,
}

impl InputContext {
    pub fn of(plan: &Plan<'_, '_>, list: JsonRef<'_>) -> Self {
        let model = plan.body.owned_text("model");
        let is_deepseek = model.contains("deepseek");
        Self {
            has_stored_history: plan.body.find("previous_response_id").is_some()
                || plan.body.find("conversation").is_some()
                || list.items().any(|item| item.is_object() && kind_of(item) == "item_reference"),
            is_deepseek,
            has_foreign_ids: is_deepseek || model.contains("grok"),
        }
    }
}
