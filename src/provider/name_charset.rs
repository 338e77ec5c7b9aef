//! Names and ids of the characters that every provider accepts: letters, digits, `_` and `-`.

use crate::id::short_name;

/// Returns a plain id for any id: its first 40 characters, with others replaced by `_`, and a hash of the whole.
pub(crate) fn plain_id_of(id: &str) -> String {
    format!("{}_{}", plain(id, 40), short_name(id, 12))
}

/// Returns the first `most` characters of a text, with `_` for each that is not plain.
pub(crate) fn plain(text: &str, most: usize) -> String {
    text.chars().take(most).map(|c| if is_plain(c) { c } else { '_' }).collect()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Returns true if every dialect of OpenAI's style accepts an id: `^[a-zA-Z0-9_-]+$`, up to 64 characters.
pub(crate) fn is_plain_id(id: &str) -> bool {
    id.len() <= 64 && id.chars().all(is_plain)
}
