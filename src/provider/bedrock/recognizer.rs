//! Recognises messages of Converse.

use super::Bedrock;
use super::block::{JSON, TEXT, kind_of};
use crate::json::JsonRef;
use crate::provider::rules::Fields;
use crate::provider::spec::{ItemRecognizer, Mention};

impl ItemRecognizer for Bedrock {
    fn marks_item(&self, _item: &Fields<'_>) -> bool {
        false
    }

    /// Returns true for a block without a `type` whose member says what it is. A text alone is no mark: some servers of
    /// OpenAI's format accept `{"text":"hi"}`.
    fn marks_block(&self, block: &Fields<'_>) -> bool {
        block.find("type").is_none() && kind_of(block.object).is_some_and(|(kind, _)| ![TEXT, JSON].contains(&kind))
    }

    fn reads(&self, item: &Fields<'_>) -> bool {
        let role = item.text("role").unwrap_or_default();
        ["user", "assistant", "system"].contains(&role.as_ref()) || item.find("content").is_some()
    }

    fn mention<'a>(&self, item: &Fields<'a>, id: JsonRef<'a>) -> Mention<'a> {
        let is_id = |value: Option<JsonRef<'a>>| value.is_some_and(|value| value.is_same(id));
        for block in item.get("content").unwrap_or_default().items() {
            if is_id(block.get("toolUseId")) && block.find("input").is_some() {
                return Mention::Call;
            }
        }
        Mention::Unread
    }
}
