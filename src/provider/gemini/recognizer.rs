//! Recognises contents of Gemini's format.

use super::part::is_part;
use super::{Gemini, sdk_request};
use crate::json::JsonRef;
use crate::provider::rules::Fields;
use crate::provider::spec::ItemRecognizer;

impl ItemRecognizer for Gemini {
    fn around_parts(&self, list: JsonRef<'_>) -> Option<(&'static str, &'static str)> {
        sdk_request::are_parts(list).then_some(("[{\"role\":\"user\",\"parts\":", "}]"))
    }

    fn marks_item(&self, item: &Fields<'_>) -> bool {
        let Some(parts) = item.find("parts").filter(|_| item.find("content").is_none()) else { return false };
        parts.items().any(is_part) || is_part(parts)
    }

    fn reads(&self, item: &Fields<'_>) -> bool {
        let role = item.text("role").unwrap_or_default().to_ascii_lowercase();
        let known = ["user", "model", "function"].contains(&role.as_str());
        item.find("parts").is_some() || known && item.find("content").is_none()
    }
}
