//! Which log records a branch of a session consists of.
//!
//! The log of a session is a tree. Each branch writes records of its own, whose keys are next to each other, and begins
//! with records of the branches that it was forked from. Nothing is copied, and all records of a branch, the shared
//! ones too, follow each other by their keys.

use crate::encoding::encode_fields;

/// Bits of a log key that number the records of a branch; the branch's number is above them.
const RECORD_BITS: u32 = 32;

/// The number of a branch that has no record yet: it gets its number with the first one.
const UNBORN: u64 = (1 << (53 - RECORD_BITS)) - 2;

/// The key of the first addition to messages that branches share. No branch has a number as high.
pub const ADDITIONS: u64 = (UNBORN - 1) << RECORD_BITS;

/// The key of the directory's first record. The record of branch `n` has the key `DIRECTORY + n`.
pub const DIRECTORY: u64 = (UNBORN + 1) << RECORD_BITS;

/// The path from the first record of a session to those of a branch. The default is the path of the main branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchPath {
    /// The number of the branch: 0 for the main branch.
    pub number: u64,
    /// What it shares with other branches, in order.
    pub shared: Vec<SharedRecords>,
}
encode_fields!(struct BranchPath {
    0 => number,
    1 => shared: list,
});

/// The records of one branch with which another one begins: from the first one on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedRecords {
    /// The key after the last of them.
    pub past: u64,
    /// The `seq` of the first message that is not shared. The last record may have messages after those that are.
    pub until_seq: u64,
}
encode_fields!(struct SharedRecords {
    0 => past,
    1 => until_seq,
});

impl SharedRecords {
    /// Returns the number of the branch that wrote the records.
    fn branch(self) -> u64 {
        self.past.saturating_sub(1) >> RECORD_BITS
    }

    fn first_key(self) -> u64 {
        self.branch() << RECORD_BITS
    }
}

impl BranchPath {
    /// Returns the path of a branch that has no record yet.
    #[must_use]
    pub fn unborn(shared: Vec<SharedRecords>) -> Self {
        Self { number: UNBORN, shared }
    }

    /// Returns true if the branch has no number yet.
    #[must_use]
    pub fn is_unborn(&self) -> bool {
        self.number == UNBORN
    }

    /// Returns the key of the first record that the branch itself writes.
    #[must_use]
    pub fn first_own_key(&self) -> u64 {
        self.number << RECORD_BITS
    }

    /// Returns the ranges of keys of the records before `end`, in order: each from its first key to before the second.
    pub fn ranges(&self, end: u64) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        let shared = self.shared.iter().map(|part| (part.first_key(), part.past));
        let own = std::iter::once((self.first_own_key(), (self.number + 1) << RECORD_BITS));
        shared.chain(own).map(move |(from, past)| (from, past.min(end))).filter(|(from, past)| from < past)
    }

    /// Returns the number of keys from one to before another that belong to the branch.
    #[must_use]
    pub fn count_keys(&self, from: u64, past: u64) -> u64 {
        self.ranges(past).map(|(first, end)| end.saturating_sub(first.max(from))).sum()
    }

    /// Returns the key after the last record of the range that a key is in; none if it is a record of another branch.
    #[must_use]
    pub fn range_end(&self, key: u64) -> Option<u64> {
        self.ranges(u64::MAX).find(|(from, past)| (*from..*past).contains(&key)).map(|(_, past)| past)
    }

    /// Returns the `seq` from which on messages of a record are not part of the branch.
    #[must_use]
    pub fn until_seq(&self, key: u64) -> Option<u64> {
        self.shared.iter().find(|part| part.past == key + 1).map(|part| part.until_seq)
    }

    /// Returns the path of a new branch that shares the records up to and with `key`, and in this one the messages
    /// before `until_seq`.
    #[must_use]
    pub fn forked_after(&self, key: u64, until_seq: u64) -> Self {
        let mut shared: Vec<_> = self.shared.iter().copied().take_while(|part| part.past <= key).collect();
        shared.push(SharedRecords { past: key + 1, until_seq });
        Self::unborn(shared)
    }

    /// Returns the number of the branch that wrote the message with this `seq`.
    #[must_use]
    pub fn branch_of(&self, seq: u64) -> u64 {
        self.shared.iter().find(|part| seq < part.until_seq).map_or(self.number, |part| part.branch())
    }

    /// Returns the `seq` of the first message that this branch does not share with another one; none if it shares no
    /// record of that one.
    #[must_use]
    pub fn shared_until(&self, branch: u64) -> Option<u64> {
        self.shared.iter().rfind(|part| part.branch() == branch).map(|part| part.until_seq)
    }

    /// Returns the numbers of the branches whose records it shares, and the `seq` of the first message of each that it
    /// does not share.
    pub fn shared_ends(&self) -> impl Iterator<Item = (u64, u64)> {
        self.shared.iter().map(|part| (part.branch(), part.until_seq))
    }

    /// Returns the number of the branch that it was forked from; none for the main branch and for one that shares
    /// nothing.
    #[must_use]
    pub fn parent(&self) -> Option<u64> {
        self.shared.last().map(|part| part.branch())
    }

    /// Returns the `seq` of the first message that the branch does not share.
    #[must_use]
    pub fn first_own_seq(&self) -> u64 {
        self.shared.last().map_or(0, |part| part.until_seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    const B1: u64 = 1 << RECORD_BITS;

    #[test]
    fn r38_a_path_goes_through_the_records_of_its_ancestors() {
        let main = BranchPath::default();
        assert_eq!(main.ranges(7).collect::<Vec<_>>(), [(0, 7)]);
        let first = BranchPath { number: 1, ..main.forked_after(4, 9) };
        assert_eq!(first.ranges(B1 + 3).collect::<Vec<_>>(), [(0, 5), (B1, B1 + 3)]);
        let second = BranchPath { number: 2, ..first.forked_after(B1 + 1, 12) };
        assert_eq!(second.ranges(2 * B1 + 1).collect::<Vec<_>>(), [(0, 5), (B1, B1 + 2), (2 * B1, 2 * B1 + 1)]);
        assert_eq!((second.parent(), first.parent(), main.parent()), (Some(1), Some(0), None));
        // A fork in the shared part is a fork of the branch that wrote it.
        assert_eq!(second.forked_after(2, 3).parent(), Some(0));
        assert_eq!(second.count_keys(4, 2 * B1 + 1), 1 + 2 + 1);
        assert_eq!((second.range_end(B1), second.range_end(5)), (Some(B1 + 2), None));
        assert_eq!((second.until_seq(4), second.until_seq(3)), (Some(9), None));
        assert_eq!([8, 9, 11, 12].map(|seq| second.branch_of(seq)), [0, 1, 1, 2]);
        assert_eq!([0, 1, 2].map(|branch| second.shared_until(branch)), [Some(9), Some(12), None]);
    }
}
