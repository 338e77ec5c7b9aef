//! The appends of a session as a tree, and which side of a fork is the session's history.

use super::packing::PackedAppends;
use super::stored_append::{AppendId, StoredAppend};
use crate::branch_path::DIRECTORY;
use crate::store::memory::StoredSession;
use crate::store::{Query, Record, Table};
use std::collections::{BTreeMap, BTreeSet};

/// What is kept of an append: its place in the tree. Its content is in the folded session, or read again.
#[derive(Debug)]
struct TreeNode {
    parent: Option<AppendId>,
}

/// Where the value of a log record is stored.
#[derive(Clone, Debug)]
struct LogPlace {
    append: AppendId,
    bytes: u64,
}

/// The appends of a session that this process has read or written. None is ever forgotten, so a stale list shortens
/// nothing.
#[derive(Debug, Default)]
pub(super) struct AppendTree {
    nodes: BTreeMap<AppendId, Box<TreeNode>>,
    /// The contents of appends that are not in `folded` yet.
    unfolded: BTreeMap<AppendId, Box<StoredAppend>>,
    /// Parents that were not read.
    missing: BTreeSet<AppendId>,
    /// Appends that more than one other comes after.
    forks: BTreeSet<AppendId>,
    /// The newest deletion. What is older does not count any more.
    deletion: Option<AppendId>,
    /// The newest deletion when the default side was chosen.
    settled_deletion: Option<AppendId>,
    /// The last append of the default side.
    tip: Option<AppendId>,
    /// The session as of the tip. Values that were read are shared with the readers' histories; those of log records
    /// that were written are not kept, since the writer has them.
    folded: StoredSession,
    /// The places of the log records, by their keys.
    log_places: BTreeMap<u64, Box<LogPlace>>,
    /// Counts how often the tip moved to another side.
    pub(super) lineage: u64,
    /// What is added to the revision of an append for the callers of this process. A tip on another side may have a
    /// lower revision than they have seen; for them revisions only rise.
    pub(super) offset: u64,
    pub(super) packed: PackedAppends,
}

/// Another side of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OtherSide {
    /// Its appends, the oldest first; never empty.
    pub(super) appends: Vec<AppendId>,
    /// The shared appends before them, the newest first.
    pub(super) shared: Vec<AppendId>,
}

impl AppendTree {
    pub(super) fn contains(&self, id: &AppendId) -> bool {
        self.nodes.contains_key(id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &AppendId> {
        self.nodes.keys()
    }

    pub(super) fn tip(&self) -> Option<&AppendId> {
        self.tip.as_ref()
    }

    pub(super) fn folded(&self) -> &StoredSession {
        &self.folded
    }

    /// The revision that callers see.
    pub(super) fn revision(&self) -> u64 {
        self.folded.revision().saturating_add(self.offset)
    }

    /// The revision of the newest deletion. Appends below do not count, whatever a stale list shows.
    pub(super) fn floor(&self) -> u64 {
        self.deletion.as_ref().map_or(0, |deletion| deletion.revision)
    }

    /// How many appends have more than one other after them.
    pub(super) fn fork_count(&self) -> u64 {
        let floor = self.floor();
        self.forks.iter().filter(|id| id.revision >= floor).count() as u64
    }

    /// Adds an append. A damaged one names no parent: it comes after the one before it in order.
    pub(super) fn add(&mut self, id: AppendId, mut append: StoredAppend) {
        if append.is_damaged {
            append.parent = self.nodes.keys().rfind(|other| other.revision < id.revision).cloned();
        }
        self.missing.remove(&id);
        if let Some(parent) = append.parent.as_ref().filter(|parent| !self.contains(parent) && !append.is_deletion) {
            self.missing.insert(parent.clone());
        }
        // A first append has no parent; `AppendId::default()` stands for it.
        let before = append.parent.clone().unwrap_or_default();
        // Appends are added in their order, so hardly any is after the parent.
        let mut later = self.nodes.range(before.clone()..);
        if later.any(|(other, node)| *other != id && node.parent.as_ref() == append.parent.as_ref()) {
            self.forks.insert(before);
        }
        if append.is_deletion && self.deletion.as_ref().is_none_or(|known| default_order(&id, known).is_gt()) {
            self.deletion = Some(id.clone());
        }
        self.nodes.insert(id.clone(), Box::new(TreeNode { parent: append.parent.clone() }));
        self.unfolded.insert(id, Box::new(append));
    }

    /// Returns the parents that were not read, as far as they count.
    pub(super) fn missing_parents(&self) -> Vec<AppendId> {
        let floor = self.floor();
        self.missing.iter().filter(|parent| parent.revision > floor).cloned().collect()
    }

    /// Returns the appends from the root or the newest deletion to this one; none if it was deleted.
    fn chain(&self, id: &AppendId) -> Option<Vec<&AppendId>> {
        let deletion = self.deletion.as_ref();
        let mut chain = Vec::new();
        let mut at = Some(id);
        while let Some(id) = at {
            let (id, node) = self.nodes.get_key_value(id)?;
            // A parent has a lower revision; anything else is damage, and must not lead in a circle.
            if chain.last().is_some_and(|last: &&AppendId| last.revision <= id.revision) {
                return None;
            }
            chain.push(id);
            if Some(id) == deletion {
                break;
            }
            at = node.parent.as_ref();
        }
        chain.reverse();
        let is_rooted = deletion.is_none() || chain.first().copied() == deletion;
        is_rooted.then_some(chain)
    }

    /// Returns the appends to fold, oldest first, and whether the session is folded from its beginning; `None` if
    /// nothing is left to fold.
    fn next_fold(&self) -> Option<(Vec<AppendId>, bool)> {
        if let Some(appends) = self.appends_after_tip() {
            return (!appends.is_empty()).then_some((appends, false));
        }
        let chain = self.default_chain()?;
        if chain.last() == self.tip.as_ref() {
            return None;
        }
        let known = self.folded_length(&chain);
        let appends = chain.get(known.unwrap_or(0)..).unwrap_or_default();
        Some((appends.to_vec(), known.is_none()))
    }

    /// Returns the appends from the tip to the default end, oldest first; `None` if that end does not descend from the
    /// tip. The fast path of [`next_fold`](Self::next_fold).
    fn appends_after_tip(&self) -> Option<Vec<AppendId>> {
        // A deletion may have ended the tip's side.
        let tip = self.tip.as_ref().filter(|_| self.deletion == self.settled_deletion)?;
        let highest = self.nodes.keys().next_back()?.revision;
        let lowest_name = AppendId { revision: highest, writer: String::new() };
        let mut at = self.nodes.range(lowest_name..).next()?.0;
        let mut appends = Vec::new();
        while at != tip {
            let node = self.nodes.get(at).filter(|_| at.revision > tip.revision)?;
            appends.push(at.clone());
            // A parent has a lower revision; anything else is damage, and must not lead in a circle.
            at = node.parent.as_ref().filter(|parent| parent.revision < at.revision)?;
        }
        appends.reverse();
        Some(appends)
    }

    /// Returns the appends that [`settle`](Self::settle) needs and that were not read, or not kept.
    pub(super) fn unread(&self) -> Vec<AppendId> {
        let Some((appends, _)) = self.next_fold() else { return Vec::new() };
        appends.into_iter().filter(|id| !self.unfolded.contains_key(id)).collect()
    }

    /// Adds the content of an append of the tree that was read again.
    pub(super) fn add_content(&mut self, id: AppendId, append: StoredAppend) {
        self.unfolded.insert(id, Box::new(append));
    }

    /// Moves to the default side: the append of the highest revision, and of several the one whose writer's name is
    /// lowest. Everybody who has read the same appends is on the same side. Nothing may be [unread](Self::unread).
    pub(super) fn settle(&mut self) {
        if let Some((appends, from_beginning)) = self.next_fold() {
            self.fold(&appends, from_beginning);
        }
        self.settled_deletion.clone_from(&self.deletion);
        self.unfolded.clear();
    }

    fn fold(&mut self, appends: &[AppendId], from_beginning: bool) {
        let Some(tip) = appends.last().cloned() else { return };
        let seen = self.tip.as_ref().map_or(0, |tip| tip.revision.saturating_add(self.offset));
        if from_beginning {
            self.folded = StoredSession::default();
            self.log_places.clear();
            self.lineage = self.lineage.saturating_add(1);
            self.offset = seen.saturating_add(1).saturating_sub(tip.revision);
        }
        for id in appends {
            if let Some(append) = self.unfolded.remove(id) {
                if append.is_deletion {
                    self.log_places.clear();
                }
                for record in append.batch.put.iter().chain(&append.batch.replace) {
                    if record.table == Table::Log {
                        if record.key < DIRECTORY && self.log_places.contains_key(&record.key) {
                            // Values of earlier appends may have been replaced: what waits for a pack is read again.
                            self.packed.drop_cached_values();
                        }
                        let place = LogPlace { append: id.clone(), bytes: record.value.len() as u64 };
                        self.log_places.insert(record.key, Box::new(place));
                    }
                }
                append.apply(id, &mut self.folded);
            }
        }
        self.tip = Some(tip);
    }

    /// Reads records. Of a log record whose value is not in memory, the append that has it is returned too.
    pub(super) fn read(&self, query: Query) -> (Vec<Record>, Vec<AppendId>) {
        let places = &self.log_places;
        let size = |record: &Record| match places.get(&record.key).filter(|_| record.table == Table::Log) {
            Some(place) => place.bytes,
            None => record.value.len() as u64,
        };
        let records = self.folded.read_sized(query, &size);
        let mut unread = Vec::new();
        if query.table == Table::Log {
            for record in &records {
                let place = places.get(&record.key).filter(|_| record.value.is_empty());
                unread.extend(place.map(|place| place.append.clone()));
            }
        }
        (records, unread)
    }

    /// Drops from memory what can be read again: the values of log records, and of appends that wait for a pack.
    pub(super) fn drop_cached_values(&mut self) {
        self.packed.drop_cached_values();
        for key in self.log_places.keys() {
            self.folded.drop_value((Table::Log, *key));
        }
    }

    /// Drops the values of the log records that the tip has written.
    pub(super) fn drop_values_of_tip(&mut self) {
        for (key, place) in self.log_places.iter().rev() {
            if Some(&place.append) != self.tip.as_ref() {
                break;
            }
            self.folded.drop_value((Table::Log, *key));
        }
    }

    /// The bytes of values that are in memory.
    #[cfg(any(test, feature = "conformance"))]
    pub(super) fn held_bytes(&self) -> usize {
        self.folded.held_bytes().saturating_add(self.packed.held_bytes())
    }

    /// Returns the chain of the default side; none if there is no append.
    fn default_chain(&self) -> Option<Vec<AppendId>> {
        let ids: Vec<&AppendId> = self.nodes.keys().collect();
        // By `default_order`, the default side first.
        let mut candidates = ids.chunk_by(|one, next| one.revision == next.revision).rev().flatten();
        let chain = candidates.find_map(|id| self.chain(id))?;
        Some(chain.into_iter().cloned().collect())
    }

    /// Returns how much of a chain is folded already; none if its end is on another side than the tip.
    fn folded_length(&self, chain: &[AppendId]) -> Option<usize> {
        let Some(tip) = &self.tip else { return Some(0) };
        if let Some(at) = chain.iter().position(|id| id == tip) {
            return Some(at.saturating_add(1));
        }
        let deletion = self.deletion.as_ref().filter(|deletion| chain.first() == Some(deletion));
        deletion.is_some_and(|deletion| deletion.revision > tip.revision).then_some(0)
    }

    /// Returns the appends of the session's history.
    pub(super) fn history(&self) -> BTreeSet<AppendId> {
        let chain = self.tip.as_ref().and_then(|tip| self.chain(tip)).unwrap_or_default();
        chain.into_iter().cloned().collect()
    }

    /// Drops what is older than the newest deletion.
    pub(super) fn drop_deleted(&mut self) {
        let floor = self.floor();
        self.nodes.retain(|id, _| id.revision >= floor);
        self.missing.retain(|id| id.revision > floor);
        self.forks.retain(|id| id.revision >= floor);
        self.packed = PackedAppends::default();
    }

    /// Returns the other sides: the ends of all chains but the default one.
    pub(super) fn other_sides(&self) -> Vec<OtherSide> {
        let mut parents = BTreeSet::new();
        parents.extend(self.nodes.values().filter_map(|node| node.parent.clone()));
        let main = self.tip.as_ref().and_then(|tip| self.chain(tip)).unwrap_or_default();
        let ends = self.nodes.keys().filter(|id| !parents.contains(id) && !main.contains(id));
        let side = |id: &AppendId| {
            let chain = self.chain(id)?;
            let common = chain.iter().zip(&main).take_while(|(one, other)| one == other).count();
            let (shared, appends) = chain.split_at_checked(common)?;
            Some(OtherSide {
                appends: appends.iter().map(|id| (*id).clone()).collect(),
                shared: shared.iter().rev().map(|id| (*id).clone()).collect(),
            })
        };
        ends.filter_map(side).collect()
    }
}

/// Orders appends by what makes them the default: a high revision, then a low name of the writer.
fn default_order(one: &AppendId, other: &AppendId) -> std::cmp::Ordering {
    one.revision.cmp(&other.revision).then_with(|| other.writer.cmp(&one.writer))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn id(revision: u64) -> AppendId {
        AppendId { revision, writer: "w".into() }
    }

    /// Adds an append as it is read from the store.
    fn add(tree: &mut AppendTree, id: AppendId, parent: Option<AppendId>) {
        let append = StoredAppend { parent, ..StoredAppend::default() };
        let value = append.seal("s", usize::MAX).unwrap();
        tree.add(id.clone(), StoredAppend::open("s", &id, &value).unwrap());
    }

    #[test]
    fn r48_appends_that_name_each_other_as_parents_end_no_history() {
        for (revision, parent) in [(2, 2), (3, 4)] {
            let mut tree = AppendTree::default();
            add(&mut tree, id(1), None);
            tree.settle();
            add(&mut tree, id(revision), Some(id(parent)));
            if parent != revision {
                add(&mut tree, id(parent), Some(id(revision)));
            }
            tree.settle();
            assert_eq!(tree.tip(), Some(&id(1)));
        }
    }
}
