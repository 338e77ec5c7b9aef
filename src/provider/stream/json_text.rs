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

/// Doubles the backslash of each lone surrogate's escape. `inside` is the content of a string token whose string is
/// JSON text itself: after decoding, the escape is still in that JSON text, where it has the same meaning. So
/// `"\ud83d"` becomes `"\\ud83d"`.
pub(crate) fn keep_lone_surrogates(inside: &str) -> Cow<'_, str> {
    if !inside.contains("\\ud") && !inside.contains("\\uD") {
        return Cow::Borrowed(inside);
    }
    let unit = |text: &str| u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some((before, tail)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let low_follows = || tail.get(6..).and_then(unit).is_some_and(|low| (0xdc00..0xe000).contains(&low));
        let length = match unit(tail) {
            Some(0xd800..0xdc00) if low_follows() => 12,
            Some(0xd800..0xe000) => {
                out.push('\\');
                6
            }
            Some(_) => 6,
            None => 2,
        };
        let (escape, after) = tail.split_at_checked(length).unwrap_or((tail, ""));
        out.push_str(escape);
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}
