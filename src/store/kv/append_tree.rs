//! The appends of a session as a tree, and which side of a fork is the session's history.

use super::stored_append::{AppendId, StoredAppend};
use crate::store::memory::StoredSession;
use std::collections::{BTreeMap, BTreeSet};

/// The appends of a session that this process has read or written. None is ever forgotten, so a stale list shortens nothing.
#[derive(Debug, Default)]
pub(super) struct AppendTree {
    appends: BTreeMap<AppendId, StoredAppend>,
    /// The last append of the default side.
    tip: Option<AppendId>,
    /// The session as of the tip.
    folded: StoredSession,
    /// Counts how often the tip moved to another side.
    pub(super) lineage: u64,
    /// What is added to the revision of an append for the callers of this process. A tip on another side may have a lower revision
    /// than they have seen; for them revisions only rise.
    pub(super) offset: u64,
}

/// Another side of a fork.
pub(super) struct OtherSide {
    pub(super) tip: AppendId,
    pub(super) session: StoredSession,
    /// The session where the sides part.
    pub(super) before: StoredSession,
}

impl AppendTree {
    pub(super) fn contains(&self, id: &AppendId) -> bool {
        self.appends.contains_key(id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &AppendId> {
        self.appends.keys()
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

    /// The newest deletion. What is older does not count any more.
    fn deletion(&self) -> Option<&AppendId> {
        let deletions = self.appends.iter().filter(|(_, append)| append.is_deletion).map(|(id, _)| id);
        deletions.max_by(|one, other| default_order(one, other))
    }

    /// The revision of the newest deletion. Appends below do not count, whatever a stale list shows.
    pub(super) fn floor(&self) -> u64 {
        self.deletion().map_or(0, |deletion| deletion.revision)
    }

    /// Adds an append. A damaged one names no parent: it comes after the one before it in order.
    pub(super) fn add(&mut self, id: AppendId, mut append: StoredAppend) {
        if append.is_damaged {
            append.parent = self.appends.keys().rfind(|other| other.revision < id.revision).cloned();
        }
        self.appends.insert(id, append);
    }

    /// Returns the parents that were not read, as far as they count.
    pub(super) fn missing_parents(&self) -> BTreeSet<AppendId> {
        let floor = self.floor();
        let parents =
            self.appends.values().filter(|append| !append.is_deletion).filter_map(|append| append.parent.as_ref());
        parents.filter(|parent| parent.revision > floor && !self.contains(parent)).cloned().collect()
    }

    /// Returns the appends from the root or the newest deletion to this one; none if it was deleted.
    fn chain(&self, id: &AppendId) -> Option<Vec<&AppendId>> {
        let deletion = self.deletion();
        let mut chain = Vec::new();
        let mut at = Some(id);
        while let Some(id) = at {
            let (id, append) = self.appends.get_key_value(id)?;
            // A parent has a lower revision; anything else is damage, and must not lead in a circle.
            if chain.last().is_some_and(|last: &&AppendId| last.revision <= id.revision) {
                return None;
            }
            chain.push(id);
            if Some(id) == deletion {
                break;
            }
            at = append.parent.as_ref();
        }
        chain.reverse();
        let is_rooted = deletion.is_none() || chain.first().copied() == deletion;
        is_rooted.then_some(chain)
    }

    /// Moves to the default side: the append of the highest revision, and of several the one whose writer's name is lowest. Everybody
    /// who has read the same appends is on the same side.
    pub(super) fn settle(&mut self) {
        let Some(chain) = self.default_chain() else { return };
        let Some(tip) = chain.last().cloned() else { return };
        if self.tip.as_ref() == Some(&tip) {
            return;
        }
        let known = self.folded_length(&chain);
        let mut folded = if known.is_some() { std::mem::take(&mut self.folded) } else { StoredSession::default() };
        for id in chain.get(known.unwrap_or(0)..).unwrap_or_default() {
            if let Some(append) = self.appends.get(id) {
                append.apply(id, &mut folded);
            }
        }
        let seen = self.tip.as_ref().map_or(0, |tip| tip.revision.saturating_add(self.offset));
        if known.is_none() {
            self.lineage = self.lineage.saturating_add(1);
            self.offset = seen.saturating_add(1).saturating_sub(tip.revision);
        }
        self.folded = folded;
        self.tip = Some(tip);
    }

    /// Returns the chain of the default side; none if there is no append.
    fn default_chain(&self) -> Option<Vec<AppendId>> {
        let mut order: Vec<&AppendId> = self.appends.keys().collect();
        order.sort_by(|one, other| default_order(other, one));
        let chain = order.into_iter().find_map(|id| self.chain(id))?;
        Some(chain.into_iter().cloned().collect())
    }

    /// Returns how much of a chain is folded already; none if its end is on another side than the tip.
    fn folded_length(&self, chain: &[AppendId]) -> Option<usize> {
        let Some(tip) = &self.tip else { return Some(0) };
        if let Some(at) = chain.iter().position(|id| id == tip) {
            return Some(at.saturating_add(1));
        }
        let deletion = self.deletion().filter(|deletion| chain.first() == Some(deletion));
        deletion.is_some_and(|deletion| deletion.revision > tip.revision).then_some(0)
    }

    /// Drops what is older than the newest deletion.
    pub(super) fn drop_deleted(&mut self) {
        let floor = self.floor();
        self.appends.retain(|id, _| id.revision >= floor);
    }

    /// Returns the other sides: the ends of all chains but the default one.
    pub(super) fn other_sides(&self) -> Vec<OtherSide> {
        let parents: BTreeSet<_> = self.appends.values().filter_map(|append| append.parent.as_ref()).collect();
        let main = self.tip.as_ref().and_then(|tip| self.chain(tip)).unwrap_or_default();
        let ends = self.appends.keys().filter(|id| !parents.contains(id) && !main.contains(id));
        let side = |id: &AppendId| {
            let chain = self.chain(id)?;
            let shared = chain.iter().zip(&main).take_while(|(one, other)| one == other).count();
            let fold = |ids: &[&AppendId]| {
                let mut session = StoredSession::default();
                for id in ids {
                    if let Some(append) = self.appends.get(id) {
                        append.apply(id, &mut session);
                    }
                }
                session
            };
            let before = fold(chain.get(..shared).unwrap_or_default());
            Some(OtherSide { tip: id.clone(), session: fold(&chain), before })
        };
        ends.filter_map(side).collect()
    }
}

/// Orders appends by what makes them the default: a high revision, then a low name of the writer.
fn default_order(one: &AppendId, other: &AppendId) -> std::cmp::Ordering {
    one.revision.cmp(&other.revision).then_with(|| other.writer.cmp(&one.writer))
}
