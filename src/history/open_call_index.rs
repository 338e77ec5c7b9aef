//! The calls of a history that take a result, by what a result names. A result finds its call without a walk over the
//! others (R63).

use super::open_calls::Selection;
use crate::message::{CallMatching, Dialect};
use crate::tool::ToolInvocation;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;

/// A call in the order in which results are paired with calls: those of the newest message first, and in it the first
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallPosition {
    /// The index of its message.
    message: Reverse<usize>,
    /// The index of its invocation.
    invocation: usize,
}

impl CallPosition {
    /// Creates the position of a call by the indexes of its message and of its invocation.
    pub fn new(message: usize, invocation: usize) -> Self {
        Self { message: Reverse(message), invocation }
    }
}

/// The calls of a history without a result, and those with a text in its place.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenCallIndex {
    /// The indexes of those without a result.
    open: BTreeSet<usize>,
    /// The calls that take a result, by each key.
    takers: BTreeSet<(String, CallPosition)>,
}

impl OpenCallIndex {
    /// Iterates over the indexes of the invocations without a result, ascending.
    pub fn open(&self) -> impl Iterator<Item = usize> {
        self.open.iter().copied()
    }

    /// Adds or removes a call, as it is now. `dialect`: that of its message.
    pub fn update(&mut self, call: &ToolInvocation, at: CallPosition, dialect: Option<Dialect>) {
        // An invocation whose content is withheld from the store never gets a result.
        if call.result.is_none() && !call.is_withheld() && !call.has_withheld_result() {
            self.open.insert(at.invocation);
        } else {
            self.open.remove(&at.invocation);
        }
        let takes_result = call.takes_result();
        // A call that came with its result is in no set.
        if !takes_result && self.takers.is_empty() {
            return;
        }
        let id = Some(call.call_id.clone()).filter(|id| !(id.is_empty() && pairs_by_name(dialect)));
        for key in id.into_iter().chain([name_key(&call.name)]) {
            if takes_result {
                self.takers.insert((key, at));
            } else {
                self.takers.remove(&(key, at));
            }
        }
    }

    /// Returns the first call of a key after a position.
    fn next(&self, key: &str, after: Option<CallPosition>) -> Option<CallPosition> {
        let start = match after {
            Some(position) => Bound::Excluded((key.to_owned(), position)),
            None => Bound::Included((key.to_owned(), CallPosition::new(usize::MAX, 0))),
        };
        let (found, position) = self.takers.range((start, Bound::Unbounded)).next()?;
        (found == key).then_some(*position)
    }
}

/// The stored calls that results with one key are paired with.
#[derive(Debug, Default)]
pub(super) struct StoredCalls {
    /// The last call that was a candidate.
    passed: Option<CallPosition>,
    /// Calls that wait for a result with their own id. [`restore_deferred`](Self::restore_deferred) makes them
    /// candidates again.
    deferred: Vec<CallPosition>,
    restored: BTreeSet<CallPosition>,
}

impl StoredCalls {
    /// Takes, of a history with this index, the first call of the newest message for which `select` returns `Take`.
    pub fn take_newest<'h>(
        &mut self,
        (index, invocations): (&OpenCallIndex, &'h [ToolInvocation]),
        key: &str,
        select: &dyn Fn(&ToolInvocation) -> Selection,
    ) -> Option<&'h ToolInvocation> {
        loop {
            let next = index.next(key, self.passed);
            let position = match self.restored.first().copied() {
                Some(restored) if next.is_none_or(|next| restored < next) => {
                    self.restored.remove(&restored);
                    restored
                }
                _ => {
                    self.passed = Some(next?);
                    next?
                }
            };
            let Some(call) = invocations.get(position.invocation) else { continue };
            match select(call) {
                Selection::Take => return Some(call),
                Selection::Defer => self.deferred.push(position),
                Selection::Discard => {}
            }
        }
    }

    /// Makes the deferred calls candidates again.
    pub fn restore_deferred(&mut self) {
        self.restored.extend(self.deferred.drain(..));
    }
}

/// Returns true for a dialect whose calls usually have no ids, so that a result names its tool.
pub(super) fn pairs_by_name(dialect: Option<Dialect>) -> bool {
    dialect.is_some_and(|dialect| dialect.call_matching() == CallMatching::ByName)
}

/// Returns the key of a tool's name. No call id begins with its first character.
pub(super) fn name_key(name: &str) -> String {
    format!("\u{1}{name}")
}
