//! Recognises messages of Anthropic's format.

use super::Anthropic;
use crate::json::JsonRef;
use crate::provider::rules::Fields;
use crate::provider::spec::{ItemRecognizer, Mention};

/// Returns true if the type of a block does not distinguish it: it is missing, empty, or `text`.
fn has_unspecific_type(block: JsonRef<'_>) -> bool {
    let kind = block.text("type").unwrap_or_default();
    kind.is_empty() || kind == "text"
}

impl ItemRecognizer for Anthropic {
    fn marks_item(&self, _item: &Fields<'_>) -> bool {
        false
    }

    /// Returns true for calls and results. Text, images and documents can be converted to other dialects.
    fn marks_block(&self, block: &Fields<'_>) -> bool {
        let kind = block.text("type").unwrap_or_default();
        matches!(kind.as_ref(), "tool_use" | "server_tool_use" | "mcp_tool_use")
            || kind.ends_with("tool_result") && block.find("tool_use_id").is_some()
    }

    fn reads(&self, item: &Fields<'_>) -> bool {
        let role = item.text("role").unwrap_or_default();
        ["user", "assistant", "system"].contains(&role.as_ref()) || item.find("content").is_some()
    }

    fn mention<'a>(&self, item: &Fields<'a>, id: JsonRef<'a>) -> Mention<'a> {
        let is_id = |value: Option<JsonRef<'a>>| value.is_some_and(|value| value.is_same(id));
        for block in item.get("content").unwrap_or_default().items() {
            if is_id(block.get("tool_use_id")) && has_unspecific_type(block) {
                return Mention::Result(block, "type", "tool_result");
            }
            if is_id(block.get("id")) && block.find("input").is_some() {
                return Mention::Call;
            }
        }
        Mention::Unread
    }
}
