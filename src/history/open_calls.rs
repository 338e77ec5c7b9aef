//! Calls that wait for results, by what a result may name them by.

use std::collections::VecDeque;

/// The open calls of one name.
#[derive(Debug)]
pub(super) struct OpenCalls<T> {
    /// The oldest first.
    groups: Vec<Group<T>>,
    /// Passed over for results that name them; looked at again when all of these have come.
    passed_over: Vec<Group<T>>,
    count: usize,
}

/// Those of one message, in their order.
#[derive(Debug)]
struct Group<T> {
    message: String,
    /// Its place among the messages.
    place: usize,
    calls: VecDeque<T>,
}

/// What to do with a call that a result may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Take,
    /// It waits for a result of its own.
    PassOver,
    /// It is answered.
    Drop,
}

impl<T> Default for OpenCalls<T> {
    fn default() -> Self {
        Self { groups: Vec::new(), passed_over: Vec::new(), count: 0 }
    }
}

impl<T> OpenCalls<T> {
    /// Adds a call of that message, behind its others.
    pub fn push(&mut self, message: &str, call: T) {
        match self.groups.last_mut() {
            Some(last) if last.message == message => last.calls.push_back(call),
            _ => {
                self.count += 1;
                let group = Group { message: message.to_owned(), place: self.count, calls: VecDeque::from([call]) };
                self.groups.push(group);
            }
        }
    }

    /// Takes the first call of the newest message, of those that are chosen.
    pub fn take_newest(&mut self, choose: &dyn Fn(&T) -> Choice) -> Option<T> {
        while let Some(group) = self.groups.last_mut() {
            let Some(call) = group.calls.pop_front() else {
                self.groups.pop();
                continue;
            };
            match choose(&call) {
                Choice::Take => return Some(call),
                Choice::Drop => {}
                Choice::PassOver => match self.passed_over.last_mut() {
                    Some(last) if last.place == group.place => last.calls.push_back(call),
                    _ => self.passed_over.push(Group {
                        message: group.message.clone(),
                        place: group.place,
                        calls: VecDeque::from([call]),
                    }),
                },
            }
        }
        None
    }

    /// Puts the calls that were passed over back in their places.
    pub fn reconsider(&mut self) {
        if self.passed_over.is_empty() {
            return;
        }
        // Of one message, those that were passed over stand before the others.
        let mut all = std::mem::take(&mut self.passed_over);
        all.append(&mut self.groups);
        all.sort_by_key(|group| group.place);
        for mut group in all {
            match self.groups.last_mut() {
                Some(last) if last.place == group.place => last.calls.append(&mut group.calls),
                _ => self.groups.push(group),
            }
        }
    }
}
