//! Functions for JSON values that the answer readers of all dialects use.

use crate::json::JsonRef;
use std::borrow::Cow;

/// Returns the content of a string token, escaped and without quotes, if the value is a string.
pub(crate) fn inside(value: JsonRef<'_>) -> Option<&str> {
    value.as_raw().strip_prefix('"')?.strip_suffix('"')
}

/// Returns the decoded string, if the value is a string that is not empty.
pub(crate) fn non_empty_text(value: Option<JsonRef<'_>>) -> Option<Cow<'_, str>> {
    value?.as_text().filter(|text| !text.is_empty())
}
