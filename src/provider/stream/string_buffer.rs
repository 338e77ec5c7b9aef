//! A string that arrives in fragments.

use super::StreamEvent;
use crate::json::{JsonStr, ends_in_high_surrogate};

/// A string in progress, stored as the content of its JSON token: escaped, without quotes. Tracks how much of it was
/// emitted.
#[derive(Debug, Default)]
pub(crate) struct StringBuffer {
    inside: String,
    emitted_bytes: usize,
}

impl StringBuffer {
    /// Creates a buffer with the content of a string token, none of it emitted.
    pub(crate) fn new(inside: &str) -> Self {
        Self { inside: inside.to_owned(), emitted_bytes: 0 }
    }

    /// Returns the part of the text that was emitted.
    pub(crate) fn emitted(&self) -> &str {
        self.inside.get(..self.emitted_bytes).unwrap_or_default()
    }

    /// Marks the first `bytes` bytes as emitted.
    pub(crate) fn mark_emitted(&mut self, bytes: usize) {
        self.emitted_bytes = bytes;
    }

    /// Appends the content of a string token.
    pub(crate) fn append(&mut self, fragment: &str) {
        self.inside.push_str(fragment);
    }

    /// Replaces the string by an unescaped text, none of it emitted.
    pub(crate) fn replace(&mut self, text: &str) {
        self.inside.clear();
        crate::json::push_escaped(&mut self.inside, text);
        self.emitted_bytes = 0;
    }

    /// Sets the final string. If it continues what was emitted, the rest is still to be emitted; otherwise nothing is.
    pub(crate) fn set_final(&mut self, inside: &str) {
        self.emitted_bytes = if inside.starts_with(self.emitted()) { self.emitted_bytes } else { inside.len() };
        self.inside.clear();
        self.inside.push_str(inside);
    }

    /// Returns the content of the string token.
    pub(crate) fn inside(&self) -> &str {
        &self.inside
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    pub(crate) fn to_str(&self) -> JsonStr {
        JsonStr::from_inside(&self.inside)
    }

    /// Emits the rest of the text, if any.
    pub(crate) fn emit(&mut self, event: fn(JsonStr) -> StreamEvent, out: &mut Vec<StreamEvent>) {
        if let Some(rest) = self.take_unemitted() {
            out.push(event(rest));
        }
    }

    /// Emits the rest of the arguments of a call, if any.
    pub(crate) fn emit_arguments(&mut self, index: u32, call_id: &str, out: &mut Vec<StreamEvent>) {
        if let Some(json) = self.take_unemitted() {
            out.push(StreamEvent::ArgumentsDelta { index, call_id: call_id.to_owned(), json });
        }
    }

    /// Returns the rest that was not emitted, and counts it as emitted. The first half of a surrogate pair waits for
    /// the second.
    pub(crate) fn take_unemitted(&mut self) -> Option<JsonStr> {
        let rest = self.inside.get(self.emitted_bytes..)?;
        let rest = if ends_in_high_surrogate(rest) { rest.get(..rest.len() - 6)? } else { rest };
        if rest.is_empty() {
            return None;
        }
        self.emitted_bytes += rest.len();
        Some(JsonStr::from_inside(rest))
    }
}
