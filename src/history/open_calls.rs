//! Open calls under one key (a call id or a tool's name), in the order in which results are paired with them.

use std::collections::VecDeque;

/// The open calls under one key.
#[derive(Debug)]
pub(super) struct OpenCalls<T> {
    /// By message, oldest first.
    groups: Vec<MessageCalls<T>>,
    /// Calls that wait for a result with their own id. [`restore_deferred`](Self::restore_deferred) makes them
    /// candidates again.
    deferred: Vec<MessageCalls<T>>,
    count: usize,
}

/// The open calls of one message, in order.
#[derive(Debug)]
struct MessageCalls<T> {
    message: String,
    /// The position of its message.
    position: usize,
    calls: VecDeque<T>,
}

/// What to do with a candidate call for a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// The result answers it.
    Take,
    /// It waits for a result with its own id.
    Defer,
    /// It has its result already.
    Discard,
}

impl<T> Default for OpenCalls<T> {
    fn default() -> Self {
        Self { groups: Vec::new(), deferred: Vec::new(), count: 0 }
    }
}

impl<T> OpenCalls<T> {
    /// Adds a call after the others of its message.
    pub fn push(&mut self, message: &str, call: T) {
        match self.groups.last_mut() {
            Some(last) if last.message == message => last.calls.push_back(call),
            _ => {
                self.count += 1;
                let group =
                    MessageCalls { message: message.to_owned(), position: self.count, calls: VecDeque::from([call]) };
                self.groups.push(group);
            }
        }
    }

    /// Takes the first call of the newest message for which `select` returns `Take`.
    pub fn take_newest(&mut self, select: &dyn Fn(&T) -> Selection) -> Option<T> {
        while let Some(group) = self.groups.last_mut() {
            let Some(call) = group.calls.pop_front() else {
                self.groups.pop();
                continue;
            };
            match select(&call) {
                Selection::Take => return Some(call),
                Selection::Discard => {}
                Selection::Defer => match self.deferred.last_mut() {
                    Some(last) if last.position == group.position => last.calls.push_back(call),
                    _ => self.deferred.push(MessageCalls {
                        message: group.message.clone(),
                        position: group.position,
                        calls: VecDeque::from([call]),
                    }),
                },
            }
        }
        None
    }

    /// Moves the deferred calls back to their positions.
    pub fn restore_deferred(&mut self) {
        if self.deferred.is_empty() {
            return;
        }
        // Within one message, the deferred calls stand before the others: the sort is stable.
        let mut all = std::mem::take(&mut self.deferred);
        all.append(&mut self.groups);
        all.sort_by_cached_key(|group| group.position);
        for mut group in all {
            match self.groups.last_mut() {
                Some(last) if last.position == group.position => last.calls.append(&mut group.calls),
                _ => self.groups.push(group),
            }
        }
    }
}
