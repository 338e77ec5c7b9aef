//! What a body says beside its items.

use super::async_tools::AsyncTools;
use crate::json::{JsonKind, JsonRef};
use crate::provider::openai_responses::kinds::kind_of;
use crate::provider::rules::Plan;

/// What is known of a body beside its items.
#[derive(Clone, Copy)]
pub(super) struct InputContext {
    /// The server stores a part of the history (`previous_response_id`, `conversation`, `item_reference`), so an output
    /// may answer a call that is not in the body.
    pub has_stored_history: bool,
    /// The model is DeepSeek's. Recorded: it alone rejects call, message, call, outputs.
    pub is_deepseek: bool,
    /// The model is not OpenAI's: its items have ids of another form (recorded for DeepSeek and Grok).
    pub has_foreign_ids: bool,
}

impl InputContext {
    /// Reads the body, and the items that say something about the others. Returns its asynchronous tools, too: those of
    /// the body and those that items add.
    pub fn read(plan: &Plan<'_, '_>, list: JsonRef<'_>) -> (Self, AsyncTools) {
        let model = plan.body.owned_text("model");
        let is_deepseek = model.contains("deepseek");
        let mut has_stored_history =
            plan.body.find("previous_response_id").is_some() || plan.body.find("conversation").is_some();
        let mut async_tools = AsyncTools::of(plan.body.get("tools"));
        for item in list.items() {
            let (mut kind, mut tools) = (None, None);
            for (key, value) in item.entries() {
                if key.is_text("type") {
                    kind = Some(value);
                } else if key.is_text("tools") {
                    tools = Some(value);
                }
            }
            async_tools.add(tools);
            // Most items have a type.
            let is_typed = kind.is_some_and(|kind| kind.kind() == JsonKind::String && !kind.is_text(""));
            has_stored_history |= match kind.filter(|_| is_typed) {
                Some(kind) => kind.is_text(REFERENCE),
                None => item.is_object() && kind_of(item) == REFERENCE,
            };
        }
        let has_foreign_ids = is_deepseek || model.contains("grok");
        (Self { has_stored_history, is_deepseek, has_foreign_ids }, async_tools)
    }
}

/// The type of an item that stands for one that the server stores.
const REFERENCE: &str = "item_reference";
