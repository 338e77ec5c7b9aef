//! Recognises items of the Responses API.

use super::Responses;
use super::kinds::{is_known, kind_of};
use crate::json::JsonRef;
use crate::provider::foreign_format::is_provider_type;
use crate::provider::rules::Fields;
use crate::provider::spec::{ItemRecognizer, Mention};

/// Returns true if an item holds only ids, a type and a status.
fn has_no_content(item: &Fields<'_>) -> bool {
    let is_content = |key: JsonRef<'_>| !["type", "id", "call_id", "status"].iter().any(|name| key.is_text(name));
    !item.members().iter().any(|(key, value)| !value.is_null() && is_content(*key))
}

impl ItemRecognizer for Responses {
    fn marks_item(&self, item: &Fields<'_>) -> bool {
        let kind = item.text("type").unwrap_or_default();
        item.find("role").is_none() && kind != "message" && is_known(&kind)
    }

    fn reads(&self, item: &Fields<'_>) -> bool {
        let kind = item.text("type").filter(|kind| !kind.is_empty()).unwrap_or_else(|| kind_of(item.object));
        is_provider_type(&kind) || kind.is_empty() && item.find("content").is_some()
    }

    fn mention<'a>(&self, item: &Fields<'a>, id: JsonRef<'a>) -> Mention<'a> {
        let has = |name: &str| item.find(name).is_some();
        match item.get("call_id") {
            Some(value) if !value.is_same(id) => Mention::Unread,
            Some(_) if has("output") || has_no_content(item) => {
                Mention::Result(item.object, "type", "function_call_output")
            }
            Some(_) if has("name") || has("arguments") => Mention::Call,
            _ => Mention::Unread,
        }
    }
}
