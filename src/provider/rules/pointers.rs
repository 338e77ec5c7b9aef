//! Computes the JSON pointers of findings in one walk over the body, after all rules are done. A body without findings
//! costs nothing.

use super::Plan;
use crate::json::{PathStep, ValueWalk};
use std::fmt::Write as _;

/// The length of a pointer, in bytes, beyond which a finding points to the enclosing value. No rule reads deeper than
/// this, but an id may be found there.
const MAX_POINTER_BYTES: usize = 200;

impl Plan<'_, '_> {
    /// Sets the pointer of each listed finding.
    pub(super) fn locate(&mut self) {
        // The start of each finding's value, and the finding's index; the first one last.
        let mut due: Vec<(usize, usize)> = Vec::new();
        due.extend(self.places.iter().enumerate().map(|(finding, (start, _))| (*start, finding)));
        due.sort_unstable();
        due.reverse();
        let offset = self.edits.span(self.body.object).start;
        let mut walk = ValueWalk::of(self.body.object);
        while !due.is_empty() {
            let Some(start) = walk.next() else { break };
            let mut pointer = None;
            while let Some((place, at)) = due.pop_if(|(place, _)| *place <= start + offset) {
                if place < start + offset {
                    continue; // no value starts there
                }
                let pointer: &String = pointer.get_or_insert_with(|| pointer_of(walk.path()));
                let Some((_, member)) = self.places.get(at) else { continue };
                let slash = if member.is_empty() { "" } else { "/" };
                if let Some(finding) = self.report.findings_mut().get_mut(at) {
                    finding.path = Some([pointer, slash, member].concat());
                }
            }
        }
    }
}

/// Returns the pointer of a value, or of the enclosing one whose pointer is long enough.
fn pointer_of(path: &[PathStep<'_>]) -> String {
    let mut pointer = String::new();
    for step in path {
        if pointer.len() > MAX_POINTER_BYTES {
            break;
        }
        match step {
            PathStep::Item(index) => {
                let _ = write!(pointer, "/{index}");
            }
            PathStep::Member(key) if key.as_raw().len() > MAX_KEY_BYTES => break,
            PathStep::Member(key) => {
                pointer.push('/');
                pointer.push_str(&key.as_text().unwrap_or_default());
            }
        }
    }
    pointer
}

/// The longest key of a pointer, in bytes: thousands of findings may stand below one key.
const MAX_KEY_BYTES: usize = 1_000;
