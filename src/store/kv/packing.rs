//! Which appends are packed, and which packs are merged: the state of one session.

use super::pack::{KvManifest, PackName, size_of_pack};
use super::stored_append::AppendId;
use super::value::seal_value;
use crate::error::Result;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Maximum size of a pack, in bytes.
const MAX_PACK_BYTES: usize = 8 * 1024 * 1024;

/// Maximum size of the unpacked values that are held for the next pack, in bytes. A later reader packs the rest.
const MAX_HELD_BYTES: usize = 4 * 1024 * 1024;

/// Minimum number of appends in a pack.
pub(super) const MIN_PACKED: usize = 32;

/// The number of packs of one level that are merged into one of the next level: packs of 32, of 256 and of 2,048
/// appends.
const PACKS_PER_MERGE: usize = 8;

/// The packs of a session that this process knows, and the appends that it knows to be in none.
#[derive(Debug, Default)]
pub(super) struct PackedAppends {
    /// In order.
    packs: Vec<PackName>,
    /// Merged into others, and still there.
    merged: Vec<PackName>,
    /// The values of appends that are in no pack, as they were written; empty if they were released.
    unpacked: BTreeMap<AppendId, Bytes>,
    held_bytes: usize,
    /// The manifest lacks a pack.
    pub(super) manifest_is_due: bool,
    /// When it was written last.
    pub(super) manifest_written_at: Option<u64>,
    /// How many unpacked appends there were when a pack could not be written.
    pub(super) failed_at: usize,
}

impl PackedAppends {
    /// Adds an append that was read from its own key, unless a pack seems to have it.
    pub(super) fn add_single(&mut self, id: &AppendId, value: Bytes) {
        if !self.packs.iter().any(|name| name.spans(id)) {
            self.add_unpacked(id.clone(), value);
        }
    }

    /// Adds an append that was written.
    pub(super) fn add_unpacked(&mut self, id: AppendId, value: Bytes) {
        let replaced_bytes = self.unpacked.get(&id).map_or(0, Bytes::len);
        let held_bytes = self.held_bytes.saturating_sub(replaced_bytes).saturating_add(value.len());
        if held_bytes <= MAX_HELD_BYTES {
            self.unpacked.insert(id, value);
            self.held_bytes = held_bytes;
        }
    }

    /// Drops the values from memory. The appends still wait for a pack.
    pub(super) fn drop_cached_values(&mut self) {
        self.unpacked.values_mut().for_each(Bytes::clear);
        self.held_bytes = 0;
    }

    /// Returns the appends whose values were released.
    pub(super) fn released(&self) -> Vec<AppendId> {
        self.unpacked.iter().filter(|(_, value)| value.is_empty()).map(|(id, _)| id.clone()).collect()
    }

    /// Sets the value of an append that was released.
    pub(super) fn restore(&mut self, id: &AppendId, value: Bytes) {
        if let Some(released) = self.unpacked.get_mut(id).filter(|value| value.is_empty()) {
            self.held_bytes = self.held_bytes.saturating_add(value.len());
            *released = value;
        }
    }

    /// The bytes of the values that are held.
    #[cfg(any(test, feature = "conformance"))]
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// How many appends wait for a pack.
    pub(super) fn unpacked_count(&self) -> usize {
        self.unpacked.len()
    }

    /// Returns true if enough appends are in no pack, or the manifest lacks a pack.
    pub(super) fn needs_packing(&self) -> bool {
        self.unpacked_count() >= MIN_PACKED || self.manifest_is_due
    }

    /// Adds a pack that was read or written; its appends need no other one.
    pub(super) fn add_pack(&mut self, name: PackName, appends: &[AppendId]) {
        self.drop_unpacked(appends);
        if let Err(at) = self.packs.binary_search(&name) {
            self.packs.insert(at, name);
        }
    }

    /// Forgets that appends wait for a pack: none has room for them.
    pub(super) fn drop_unpacked(&mut self, ids: &[AppendId]) {
        for id in ids {
            if let Some(value) = self.unpacked.remove(id) {
                self.held_bytes = self.held_bytes.saturating_sub(value.len());
            }
        }
    }

    /// Drops a pack that is not there or is damaged.
    pub(super) fn drop_pack(&mut self, name: &PackName) {
        self.packs.retain(|pack| pack != name);
    }

    /// Takes over what a manifest names. It may be older than what is known.
    pub(super) fn add_manifest(&mut self, manifest: &KvManifest) {
        for name in &manifest.packs {
            if !self.packs.iter().any(|known| known.includes(name)) {
                self.add_pack(*name, &[]);
            }
        }
        for name in &manifest.merged {
            if !self.merged.contains(name) && !self.packs.contains(name) {
                self.merged.push(*name);
            }
        }
    }

    /// Returns the oldest appends that wait for a pack, as many as fit.
    pub(super) fn next_pack(&self, max_value_bytes: usize) -> BTreeMap<AppendId, Bytes> {
        let (mut appends, mut bytes) = (BTreeMap::new(), 0_usize);
        for (id, value) in &self.unpacked {
            bytes = bytes.saturating_add(value.len());
            if !appends.is_empty() && size_of_pack(appends.len() + 1, bytes) > MAX_PACK_BYTES.min(max_value_bytes) {
                break;
            }
            appends.insert(id.clone(), value.clone());
        }
        appends
    }

    /// Returns packs next to each other that are worth a merge.
    pub(super) fn next_merge(&self, max_value_bytes: usize) -> Option<Vec<PackName>> {
        let highest = self.packs.iter().map(merge_level).max().unwrap_or(0);
        for level in 0..=highest {
            let packs: Vec<_> = self.packs.iter().filter(|pack| merge_level(pack) == level).copied().collect();
            let fits = |packs: &&[PackName]| {
                let bytes: u64 = packs.iter().map(|pack| pack.bytes).sum();
                usize::try_from(bytes).is_ok_and(|bytes| bytes <= MAX_PACK_BYTES.min(max_value_bytes))
            };
            if let Some(packs) = packs.windows(PACKS_PER_MERGE).find(fits) {
                return Some(packs.to_vec());
            }
        }
        None
    }

    /// Replaces packs by the one that they were merged into. They stay in the store until the next merge.
    pub(super) fn replace(&mut self, old: &[PackName], name: PackName) {
        self.packs.retain(|pack| !old.contains(pack));
        self.add_pack(name, &[]);
        self.merged.extend_from_slice(old);
        self.manifest_is_due = true;
    }

    /// Returns the packs that merges have replaced and that are still in the store: the current manifest does not name
    /// them as packs.
    pub(super) fn replaced(&self) -> Vec<PackName> {
        self.merged.iter().filter(|pack| !self.packs.contains(pack)).copied().collect()
    }

    /// Forgets a replaced pack that was removed from the store.
    pub(super) fn forget_replaced(&mut self, name: &PackName) {
        self.merged.retain(|pack| pack != name);
    }

    /// Encodes the manifest without the packs that are removed next; none if it is larger than a value may be.
    ///
    /// # Errors
    /// `too_large`.
    pub(super) fn seal_manifest(&self, session: &str, removable: &[PackName], limit: usize) -> Result<Option<Bytes>> {
        let (packs, mut merged) = (self.packs.clone(), self.merged.clone());
        merged.retain(|pack| !removable.contains(pack));
        let mut manifest = KvManifest { session: session.to_owned(), packs, merged };
        let (value, rest) = seal_value(&mut manifest, &Bytes::new(), limit)?;
        Ok(rest.is_empty().then_some(value))
    }
}

/// Returns how often the appends of a pack were merged.
fn merge_level(pack: &PackName) -> u32 {
    let units = pack.count / MIN_PACKED as u64;
    units.max(1).ilog(PACKS_PER_MERGE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r49_a_value_that_is_read_again_counts_as_held() {
        let (mut packed, id) = (PackedAppends::default(), AppendId::default());
        packed.add_unpacked(id.clone(), Bytes::from_static(b"value"));
        packed.drop_cached_values();
        assert_eq!(packed.held_bytes(), 0);
        for _ in 0..2 {
            packed.add_unpacked(id.clone(), Bytes::from_static(b"value"));
            assert_eq!(packed.held_bytes(), 5);
        }
        packed.drop_unpacked(&[id]);
        assert_eq!(packed.held_bytes(), 0);
    }
}
