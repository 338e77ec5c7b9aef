//! A string that arrives in fragments.

use super::StreamEvent;
use crate::json::{JsonStr, ends_in_high_surrogate};

/// A string that grows by fragments, kept as the inside of its token.
#[derive(Debug, Default)]
pub(crate) struct StringBuffer {
    inside: String,
    /// How much of it has been handed out.
    emitted_bytes: usize,
}

impl StringBuffer {
    /// A text of which nothing was emitted yet. `inside` is the content of a JSON string token.
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

    pub(crate) fn append(&mut self, fragment: &str) {
        self.inside.push_str(fragment);
    }

    pub(crate) fn replace(&mut self, text: &str) {
        self.inside.clear();
        crate::json::push_escaped(&mut self.inside, text);
        self.emitted_bytes = 0;
    }

    /// What it comes to in the end: where that goes on from what was told, the rest is told.
    pub(crate) fn set_final(&mut self, inside: &str) {
        self.emitted_bytes = if inside.starts_with(self.emitted()) { self.emitted_bytes } else { inside.len() };
        self.inside.clear();
        self.inside.push_str(inside);
    }

    pub(crate) fn inside(&self) -> &str {
        &self.inside
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    pub(crate) fn to_str(&self) -> JsonStr {
        JsonStr::from_inside(&self.inside)
    }

    /// Tells what has not been handed out yet.
    pub(crate) fn emit(&mut self, event: fn(JsonStr) -> StreamEvent, out: &mut Vec<StreamEvent>) {
        if let Some(news) = self.take_unemitted() {
            out.push(event(news));
        }
    }

    /// As [`tell`](Self::tell), of the arguments of a call.
    pub(crate) fn emit_arguments(&mut self, index: u32, call_id: &str, out: &mut Vec<StreamEvent>) {
        if let Some(json) = self.take_unemitted() {
            out.push(StreamEvent::ArgumentsDelta { index, call_id: call_id.to_owned(), json });
        }
    }

    /// What has not been handed out yet. The first half of a surrogate pair waits for the second.
    pub(crate) fn take_unemitted(&mut self) -> Option<JsonStr> {
        let fresh = self.inside.get(self.emitted_bytes..)?;
        let fresh = if ends_in_high_surrogate(fresh) { fresh.get(..fresh.len() - 6)? } else { fresh };
        if fresh.is_empty() {
            return None;
        }
        self.emitted_bytes += fresh.len();
        Some(JsonStr::from_inside(fresh))
    }
}
