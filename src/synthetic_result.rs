//! The texts that stand for a tool result that there is not, or not whole.
//!
//! Requests contain them, so they come back: in a body for `repair`, in a checkpoint, in an append. There a result of
//! the tool takes the place of such a text. Whoever changes a text keeps the old one as one more constant: bodies of
//! earlier builds have it.

use crate::json::{JsonKind, JsonRef};

/// The result of a call that may or may not have run.
pub const INTERRUPTED: &str = "Interrupted: this call has no recorded result. It may or may not have run; check before relying on it or repeating it.";

/// The result that `repair` gives a call without one.
pub const NO_RESULT: &str = "Interrupted: this call has no recorded result; it may or may not have run.";

/// The result of a call that was never started, in a round with calls that were.
pub const NOT_RUN: &str = "Not run: this call was cancelled before it started.";

/// The result of a call whose tool answers later (R75).
pub const PENDING: &str =
    "Pending: this tool is still running. Its output will come in a later message; do not call it again for this.";

/// Begins the message with a late result, in dialects in which a result has one place only. It is in the user's role,
/// and not the user's.
pub const LATE_RESULT: &str = "[Late output of a tool, not written by the user]";

/// The result of an interrupted call that a person did not let run again. A reason may follow.
pub const RERUN_REJECTED: &str = "Error: the call was interrupted and may have run; running it again was rejected";

/// The note instead of a result that is too old.
pub const EXPIRED: &str = "Expired: this result is too old to rely on. Call the tool again if it matters.";

/// The result of a call whose result was not stored, in a resumed run.
pub const WITHHELD: &str =
    "This call ran and was answered. Its arguments and its result were not kept; check before repeating it.";

/// Replaces a source list of which the answer cited nothing. An empty list would make a model search again.
pub const UNCITED: &str = "There were sources here; the answer cited none of them.";

/// The end of a shortened result.
pub const SHORTENED: &str = "\n[shortened]";

/// Texts that say that a call has no result.
const OF_MISSING_RESULTS: [&str; 4] = [INTERRUPTED, NO_RESULT, NOT_RUN, PENDING];

/// Texts in place of a result that the tool gave.
const OF_LEFT_OUT_RESULTS: [&str; 3] = [EXPIRED, WITHHELD, UNCITED];

/// Returns true if the content of a result says that there is none, in any dialect.
#[must_use]
pub fn is_missing(content: JsonRef<'_>) -> bool {
    any_text(content, &|text| text_of(text).is_some_and(|text| says_missing(&text)))
}

/// Returns true if the content of a result stands for one that is missing, left out or shortened, in any dialect.
#[must_use]
pub fn is_placeholder(content: JsonRef<'_>) -> bool {
    any_text(content, &|text| {
        is_shortened(text)
            || text_of(text).is_some_and(|text| says_missing(&text) || OF_LEFT_OUT_RESULTS.contains(&&*text))
    })
}

fn says_missing(text: &str) -> bool {
    OF_MISSING_RESULTS.contains(&text) || text.starts_with(RERUN_REJECTED)
}

fn is_shortened(text: JsonRef<'_>) -> bool {
    // The newline is escaped in the token; the text is not decoded, since it may be long.
    text.as_raw().strip_suffix('"').is_some_and(|token| token.ends_with(&SHORTENED.replace('\n', "\\n")))
}

/// Returns a text without the word that marks errors in dialects that have no member for it. Long texts are not
/// decoded.
fn text_of(text: JsonRef<'_>) -> Option<String> {
    let longest = INTERRUPTED.len() + 1_000;
    let text = text.as_text().filter(|_| text.as_raw().len() < longest)?;
    let is_own = text.starts_with(RERUN_REJECTED);
    Some(text.strip_prefix("Error: ").filter(|_| !is_own).unwrap_or(&text).to_owned())
}

/// Returns true for a text, or for a list or an object that has one of these as its text:
/// `[{"type":"text","text":"…"}]`, `{"error":"…"}`.
fn any_text(content: JsonRef<'_>, test: &dyn Fn(JsonRef<'_>) -> bool) -> bool {
    match content.kind() {
        JsonKind::String => test(content),
        JsonKind::Object => members_have(content, test),
        JsonKind::Array => {
            let mut items = content.items();
            // A result of several blocks is the tool's.
            items.next().is_some_and(|item| members_have(item, test)) && items.next().is_none()
        }
        _ => false,
    }
}

/// The number of members of a block that are read: those of a tool's own object are not.
const MAX_MEMBERS: usize = 4;

fn members_have(block: JsonRef<'_>, test: &dyn Fn(JsonRef<'_>) -> bool) -> bool {
    block.entries().take(MAX_MEMBERS).any(|(_, value)| value.kind() == JsonKind::String && test(value))
}
