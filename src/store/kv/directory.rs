//! Which records a session has: runs of neighbouring keys, so that ten thousand records are one range.

use crate::encoding::encode_fields;

/// Neighbouring keys of records, or one record that is a segment or large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyRun {
    pub(super) first: u64,
    pub(super) last: u64,
    /// The last key that a segment spans.
    pub(super) segment_last: Option<u64>,
    /// How many further parts the record's value has.
    pub(super) parts: u32,
    /// The revision at which the parts were written.
    pub(super) revision: u64,
}
encode_fields!(struct KeyRun {
    0 => first,
    1 => last,
    2 => segment_last,
    3 => parts,
    4 => revision,
});

impl KeyRun {
    /// The run of one key.
    pub(super) fn single(key: u64) -> Self {
        Self { first: key, last: key, ..Self::default() }
    }

    /// Whether neighbours may join the run.
    fn is_plain(&self) -> bool {
        self.segment_last.is_none() && self.parts == 0
    }
}

/// The keys of one table of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyDirectory {
    /// Sorted, and apart.
    runs: Vec<KeyRun>,
}
encode_fields!(struct KeyDirectory {
    0 => runs: list,
});

impl KeyDirectory {
    /// Returns the index of the run that has the key, or of the first one after it.
    fn find(&self, key: u64) -> (usize, Option<KeyRun>) {
        let at = self.runs.partition_point(|run| run.last < key);
        (at, self.runs.get(at).filter(|run| run.first <= key).copied())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn contains(&self, key: u64) -> bool {
        self.find(key).1.is_some()
    }

    /// Removes a key; returns what the directory had of it.
    pub(super) fn remove(&mut self, key: u64) -> Option<KeyRun> {
        let (at, Some(run)) = self.find(key) else { return None };
        let before = (run.first < key).then(|| KeyRun { last: key.saturating_sub(1), ..run });
        let after = (run.last > key).then(|| KeyRun { first: key.saturating_add(1), ..run });
        self.runs.splice(at..=at, before.into_iter().chain(after));
        Some(KeyRun { first: key, last: key, ..run })
    }

    /// Adds a record of one key. A record that has the key is replaced.
    pub(super) fn insert(&mut self, record: KeyRun) {
        self.remove(record.first);
        let (at, _) = self.find(record.first);
        let neighbour = |run: Option<&KeyRun>| run.filter(|run| run.is_plain() && record.is_plain()).copied();
        let before = at.checked_sub(1).and_then(|before| neighbour(self.runs.get(before)));
        let before = before.filter(|run| run.last.checked_add(1) == Some(record.first));
        let after = neighbour(self.runs.get(at)).filter(|run| record.last.checked_add(1) == Some(run.first));
        let joined = KeyRun {
            first: before.map_or(record.first, |run| run.first),
            last: after.map_or(record.last, |run| run.last),
            ..record
        };
        let from = at.saturating_sub(usize::from(before.is_some()));
        let to = at.saturating_add(usize::from(after.is_some()));
        self.runs.splice(from..to, [joined]);
    }

    /// Returns the records whose keys or spans meet the range, one by one.
    pub(super) fn overlapping(&self, from: u64, to: u64) -> impl DoubleEndedIterator<Item = KeyRun> {
        let spans = move |run: &&KeyRun| run.segment_last.is_none_or(|last| run.first <= to && last >= from);
        self.runs.iter().filter(spans).flat_map(move |run| {
            let keys = match run.segment_last {
                Some(_) => run.first..=run.last,
                None => run.first.max(from)..=run.last.min(to),
            };
            keys.map(|key| KeyRun { first: key, last: key, ..*run })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn record(key: u64, width: u64, parts: u32) -> KeyRun {
        KeyRun { segment_last: (width > 0).then(|| key + width), parts, ..KeyRun::single(key) }
    }

    proptest! {
        #[test]
        fn a_directory_agrees_with_a_map(
            changes in prop::collection::vec((0..20_u64, prop::option::of((0..4_u64, 0..2_u32))), 0..60),
            from in 0..24_u64,
            width in 0..24_u64,
        ) {
            let (mut directory, mut map) = (KeyDirectory::default(), BTreeMap::new());
            for (key, change) in changes {
                prop_assert_eq!(directory.contains(key), map.contains_key(&key));
                match change {
                    Some((width, parts)) => {
                        directory.insert(record(key, width, parts));
                        map.insert(key, record(key, width, parts));
                    }
                    None => prop_assert_eq!(directory.remove(key), map.remove(&key)),
                }
            }
            let to = from + width;
            let want: Vec<_> = map.values().filter(|run| run.first <= to && run.segment_last.unwrap_or(run.first) >= from).copied().collect();
            let got: Vec<_> = directory.overlapping(from, to).collect();
            prop_assert_eq!(&got, &want);
            let mut back: Vec<_> = directory.overlapping(from, to).rev().collect();
            back.reverse();
            prop_assert_eq!(back, want);
            prop_assert!(directory.runs.windows(2).all(|pair| pair[0].last < pair[1].first));
        }
    }

    #[test]
    fn ten_thousand_consecutive_numbers_are_one_run() {
        let mut directory = KeyDirectory::default();
        for key in (0..10_000).step_by(2).chain((1..10_000).step_by(2)) {
            directory.insert(KeyRun::single(key));
        }
        assert_eq!(directory.runs, [KeyRun { first: 0, last: 9_999, ..KeyRun::default() }]);
    }
}
