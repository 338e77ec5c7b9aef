//! Computes the JSON pointers of findings in one walk over the body, after all rules are done. A body without findings costs nothing.

use super::Plan;
use crate::json::JsonRef;

/// The length of a pointer, in bytes, beyond which a finding points to the enclosing value.
const MAX_POINTER_BYTES: usize = 200;

impl<'a> Plan<'a, '_> {
    /// Sets the pointer of each finding.
    pub(super) fn locate(&mut self) {
        let mut starts = Vec::new();
        for (finding, (start, _)) in self.places.iter().enumerate() {
            starts.push((*start, finding));
        }
        starts.sort_unstable();
        starts.reverse();
        self.walk(self.body.object, &mut String::new(), &mut starts);
    }

    /// Sets the pointers of the findings about a value and its members. `due` holds the start of each finding's value and the finding's
    /// index, in descending order.
    fn walk(&mut self, value: JsonRef<'a>, path: &mut String, due: &mut Vec<(usize, usize)>) {
        let start = self.edits.span(value).start;
        // No rule reads deeper than this, but an id may be found there. Its finding points to the enclosing value.
        let end = if path.len() > MAX_POINTER_BYTES { self.edits.span(value).end } else { start + 1 };
        while let Some((_, at)) = due.pop_if(|(place, _)| *place >= start && *place < end) {
            if let (Some(finding), Some((_, member))) = (self.report.get_mut(at), self.places.get(at)) {
                let slash = if member.is_empty() { "" } else { "/" };
                finding.path = Some([path, slash, member].concat());
            }
        }
        for (index, item) in value.items().enumerate() {
            if self.has_finding_in(item, due) {
                self.walk_member(item, &index.to_string(), path, due);
            }
        }
        for (key, member) in value.entries() {
            if self.has_finding_in(member, due) {
                self.walk_member(member, &key.as_text().unwrap_or_default(), path, due);
            }
        }
    }

    /// Returns true if the next finding is about this value or one inside it.
    fn has_finding_in(&self, value: JsonRef<'a>, due: &[(usize, usize)]) -> bool {
        due.last().is_some_and(|(start, _)| *start < self.edits.span(value).end)
    }

    /// Walks a member or item with its name appended to the path.
    fn walk_member(&mut self, value: JsonRef<'a>, name: &str, path: &mut String, due: &mut Vec<(usize, usize)>) {
        let length = path.len();
        path.push('/');
        path.push_str(name);
        self.walk(value, path, due);
        path.truncate(length);
    }
}
