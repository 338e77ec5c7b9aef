//! Where findings stand: their pointers are told at the end, in one walk over the text, so that a body without problems pays for none.

use super::Plan;
use crate::json::JsonRef;
use crate::sorted::in_order;

/// A longer pointer is not followed.
const MAX_POINTER_BYTES: usize = 200;

impl<'a> Plan<'a, '_> {
    /// Gives each finding its pointer.
    pub(super) fn locate(&mut self) {
        let mut starts = Vec::new();
        for (finding, (start, _)) in self.places.iter().enumerate() {
            starts.push((*start, finding));
        }
        let mut due = in_order(starts, &Ord::cmp);
        due.reverse();
        self.walk(self.body.object, &mut String::new(), &mut due);
    }

    /// The findings about a value and what is in it; `due` has the first of them last.
    fn walk(&mut self, value: JsonRef<'a>, path: &mut String, due: &mut Vec<(usize, usize)>) {
        let start = self.edits.span(value).start;
        // Deeper than this no rule looks, but an id may stand there: its place is the value around it.
        let end = if path.len() > MAX_POINTER_BYTES { self.edits.span(value).end } else { start + 1 };
        while let Some((_, at)) = due.pop_if(|(place, _)| *place >= start && *place < end) {
            if let (Some(finding), Some((_, member))) = (self.report.get_mut(at), self.places.get(at)) {
                let slash = if member.is_empty() { "" } else { "/" };
                finding.path = Some([path, slash, member].concat());
            }
        }
        for (place, item) in value.items().enumerate() {
            if self.reaches(item, due) {
                self.step(item, &place.to_string(), path, due);
            }
        }
        for (key, member) in value.entries() {
            if self.reaches(member, due) {
                self.step(member, &key.as_text().unwrap_or_default(), path, due);
            }
        }
    }

    /// Whether the next finding is about a value or what is in it.
    fn reaches(&self, value: JsonRef<'a>, due: &[(usize, usize)]) -> bool {
        due.last().is_some_and(|(start, _)| *start < self.edits.span(value).end)
    }

    fn step(&mut self, value: JsonRef<'a>, name: &str, path: &mut String, due: &mut Vec<(usize, usize)>) {
        let length = path.len();
        path.push('/');
        path.push_str(name);
        self.walk(value, path, due);
        path.truncate(length);
    }
}
