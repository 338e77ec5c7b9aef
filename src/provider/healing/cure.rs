//! The edits of a cure.

use super::error_answer::ErrorAnswer;
use crate::id::short_name;
use crate::json::JsonRef;
use crate::provider::rules::{BodyPiece, Edits, RepairOptions};

/// What a cure edits.
pub(crate) struct Cure<'a> {
    /// The refused body.
    pub body: JsonRef<'a>,
    /// Its list of items.
    pub list: JsonRef<'a>,
    pub edits: Edits<'a>,
    /// The text of a result that is added.
    pub closing_text: String,
    /// The JSON pointer of the first place that is changed.
    pub place: Option<String>,
    /// The marks of what was refused.
    pub refused: Vec<String>,
}

impl<'a> Cure<'a> {
    /// Returns a cure without edits; `None` if the body is no object with that list.
    pub fn of(text: &'a str, list: &str, options: &RepairOptions) -> Option<Self> {
        let body = JsonRef::parse(text).ok().filter(|body| body.is_object())?;
        let list = body.get(list).unwrap_or_default();
        let closing_text = options.text().to_owned();
        Some(Self { body, list, edits: Edits::new(text), closing_text, place: None, refused: Vec::new() })
    }

    /// Notes the JSON pointer of a place that is changed.
    pub fn changed(&mut self, place: impl FnOnce() -> String) {
        self.place.get_or_insert_with(place);
    }

    /// Removes the items of a list that `is_refused` selects by their index. Edits inside the others remain effective.
    pub fn remove_items(&mut self, list: JsonRef<'a>, is_refused: &mut dyn FnMut(usize, JsonRef<'a>) -> bool) -> bool {
        let mut kept = Vec::new();
        let mut count = 0;
        for (at, item) in list.items().enumerate() {
            count += 1;
            if !is_refused(at, item) {
                kept.push(self.edits.source(item));
            }
        }
        let has_changed = kept.len() < count;
        if has_changed {
            self.edits.rebuild(list, kept);
        }
        has_changed
    }

    /// Removes the selected blocks of messages; `is_refused` gets the index of the message and that of the block. For
    /// dialects whose messages have blocks in `content`.
    pub fn remove_blocks(&mut self, is_refused: &mut dyn FnMut((usize, usize), JsonRef<'_>) -> bool) {
        for (at, message) in self.list.items().enumerate() {
            let content = message.get("content").unwrap_or_default();
            let mut first = None;
            self.remove_items(content, &mut |index, block| {
                let removed = is_refused((at, index), block);
                first = first.or(removed.then_some(index));
                removed
            });
            if let Some(index) = first {
                self.changed(|| format!("/messages/{at}/content/{index}"));
            }
        }
    }

    /// Appends a user message after an answer at the end of the list. `content` is JSON.
    pub fn ask_to_continue(&mut self, content: &str) {
        if !self.list.items().last().is_some_and(|last| last.has_text("role", "assistant")) {
            return;
        }
        let mut pieces: Vec<_> = self.list.items().map(|item| self.edits.source(item)).collect();
        let at = pieces.len();
        pieces.push(BodyPiece::New(format!("{{\"role\":\"user\",\"content\":{content}}}")));
        self.edits.rebuild(self.list, pieces);
        self.changed(|| format!("/messages/{at}"));
    }

    /// Removes the blocks that have a mark, from the place that the error names on, and all if it names none.
    pub fn remove_marked_blocks(&mut self, answer: &ErrorAnswer, mark_of: fn(JsonRef<'_>) -> Option<String>) {
        let path = answer.path("messages");
        let number = |at: usize| path.get(at).and_then(|segment| segment.parse::<usize>().ok());
        let first = (number(1).unwrap_or_default(), number(3).unwrap_or_default());
        let mut marks = Vec::new();
        self.remove_blocks(&mut |at, block| {
            let mark = mark_of(block).filter(|_| at >= first);
            marks.extend(mark.clone());
            mark.is_some()
        });
        self.refused.append(&mut marks);
    }
}

/// Returns the mark of a signature or of encrypted content. The text itself is not kept.
pub(crate) fn signature_mark(signature: &str) -> String {
    short_name(signature, SIGNATURE_MARK_LENGTH)
}

/// A mark has 64 bits.
const SIGNATURE_MARK_LENGTH: usize = 11;
