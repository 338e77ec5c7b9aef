//! Names and ids of the characters that every provider accepts: letters, digits, `_` and `-`.

use crate::id::short_name;

/// An id that every dialect of OpenAI's style takes: what can stay of `id`, and a name for all of it.
pub(crate) fn head_and_name(id: &str) -> String {
    format!("{}_{}", plain(id, 40), short_name(id, 12))
}

/// The beginning of a text, with what is not plain as `_`.
pub(crate) fn plain(text: &str, most: usize) -> String {
    text.chars().take(most).map(|c| if is_plain(c) { c } else { '_' }).collect()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The ids of OpenAI's style that every dialect of that style takes: `^[a-zA-Z0-9_-]+$`, up to 64 characters.
pub(crate) fn is_plain_id(id: &str) -> bool {
    id.len() <= 64 && id.chars().all(is_plain)
}
