//! The edits of a cure.

use crate::id::short_name;
use crate::json::JsonRef;
use crate::provider::rules::{Edits, RepairOptions};

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
}

/// Returns the mark of a signature or of encrypted content. The text itself is not kept.
pub(crate) fn signature_mark(signature: &str) -> String {
    short_name(signature, SIGNATURE_MARK_LENGTH)
}

/// A mark has 64 bits.
const SIGNATURE_MARK_LENGTH: usize = 11;
