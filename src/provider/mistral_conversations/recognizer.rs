//! Recognises entries of a conversation.

use super::MistralConversations;
use super::entry::{CALL_ID, RESULT, TYPES, is_type, type_of};
use crate::json::JsonRef;
use crate::provider::rules::Fields;
use crate::provider::spec::{ItemRecognizer, Mention};

impl ItemRecognizer for MistralConversations {
    fn marks_item(&self, item: &Fields<'_>) -> bool {
        let kind = item.text("type").unwrap_or_default();
        TYPES.contains(&&*kind)
    }

    fn reads(&self, item: &Fields<'_>) -> bool {
        let kind = item.text("type").unwrap_or_default();
        let role = item.text("role").unwrap_or_default();
        is_type(&kind)
            || ["user", "assistant", "system", "developer"].contains(&&*role)
            || item.find("content").is_some()
            || !type_of(item.object).is_empty() && kind.is_empty()
    }

    fn mention<'a>(&self, item: &Fields<'a>, id: JsonRef<'a>) -> Mention<'a> {
        let has = |name: &str| item.find(name).is_some();
        match item.get(CALL_ID) {
            Some(value) if !value.is_same(id) => Mention::Unread,
            Some(_) if has("result") => Mention::Result(item.object, "type", RESULT),
            Some(_) if has("name") || has("arguments") => Mention::Call,
            _ => Mention::Unread,
        }
    }
}
