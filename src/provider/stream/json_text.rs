//! Readers of JSON values that the stream readers of all dialects share.

use crate::json::JsonRef;
use std::borrow::Cow;

/// The inside of a string token, if the value is one.
pub(crate) fn inside(value: JsonRef<'_>) -> Option<&str> {
    value.as_raw().strip_prefix('"')?.strip_suffix('"')
}

/// A decoded string, if the value is one that says something.
pub(crate) fn non_empty_text(value: Option<JsonRef<'_>>) -> Option<Cow<'_, str>> {
    value?.as_text().filter(|text| !text.is_empty())
}
