//! Recognises messages of the Chat Completions family.

use super::variant::ChatVariant;
use crate::json::JsonRef;
use crate::provider::rules::Fields;
use crate::provider::spec::{ItemRecognizer, Mention};

impl ItemRecognizer for ChatVariant {
    fn marks_item(&self, item: &Fields<'_>) -> bool {
        let role = item.text("role").unwrap_or_default();
        let calls = item.get("tool_calls").into_iter().flat_map(JsonRef::items);
        let is_call = |call: JsonRef<'_>| ["function", "custom"].iter().any(|inner| call.find(inner).is_some());
        calls.into_iter().any(is_call)
            || item.find("function_call").is_some_and(JsonRef::is_object)
            || role == "tool" && item.find("tool_call_id").is_some()
            || role == "function" && item.find("name").is_some()
    }

    fn reads(&self, item: &Fields<'_>) -> bool {
        let role = item.text("role").unwrap_or_default();
        ["system", "developer", "user", "assistant", "tool", "function"].contains(&role.as_ref())
            || ["content", "tool_calls", "tool_call_id"].iter().any(|name| item.find(name).is_some())
    }

    fn mention<'a>(&self, item: &Fields<'a>, id: JsonRef<'a>) -> Mention<'a> {
        let is_id = |value: Option<JsonRef<'a>>| value.is_some_and(|value| value.is_same(id));
        let calls = item.get("tool_calls").unwrap_or_default();
        if calls.items().any(|call| is_id(call.get("id"))) {
            return Mention::Call;
        }
        if is_id(item.get("tool_call_id")) { Mention::Result(item.object, "role", "tool") } else { Mention::Unread }
    }
}
