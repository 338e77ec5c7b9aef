//! Packs: many appends in one value, so that a long session is opened with few requests.
//!
//! A pack repeats appends byte for byte and is named by its content, so two packers write the same bytes or two keys. Every append
//! stays a key of its own: whoever does not find a pack reads those. The manifest names the packs of a session. It is the only key that
//! is written again, and a hint: without it packs are found by a list.

use super::key::session_key;
use super::stored_append::AppendId;
use super::value::{InParts, open_value, seal_value};
use crate::encoding::encode_fields;
use crate::error::Result;
use crate::id::hash;
use crate::store::record::RecordKind;
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;

/// The most bytes of a pack.
const MAX_PACK_BYTES: usize = 8 * 1024 * 1024;

/// Bytes that the description of a pack takes for each append: a revision, a writer's name and a length.
const BYTES_OF_ENTRY: usize = 160;

/// The most bytes of a session's id in the description, and its frame.
const BYTES_OF_DESCRIPTION: usize = 4096;

/// Appends that are worth a pack.
pub(super) const MIN_PACKED: usize = 32;

/// Packs of one level that are merged into one of the next: of 32, of 256 and of 2,048 appends.
const MERGED_AT_ONCE: usize = 8;

/// The appends of unpacked values that are held for the next pack, in bytes. What is above is packed by a later reader.
const MAX_HELD_BYTES: usize = 4 * 1024 * 1024;

/// What the key of a pack tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PackName {
    /// The lowest revision.
    pub(super) first: u64,
    /// The highest revision.
    pub(super) last: u64,
    /// How many appends it has.
    pub(super) count: u64,
    bytes: u64,
    hash: u64,
}
encode_fields!(struct PackName {
    0 => first,
    1 => last,
    2 => count,
    3 => bytes,
    4 => hash,
});

/// The beginning of the keys of a session's packs.
pub(super) fn pack_prefix(session: &str) -> String {
    format!("pack:{}:", session_key(session))
}

pub(super) fn manifest_key(session: &str) -> String {
    format!("manifest:{}", session_key(session))
}

impl PackName {
    pub(super) fn key(&self, session: &str) -> String {
        let Self { first, last, count, bytes, hash } = self;
        format!("{}{first:014x}-{last:014x}-{count:x}-{bytes:x}-{hash:016x}", pack_prefix(session))
    }

    /// Reads the name from a key of [`key`](Self::key).
    pub(super) fn of_key(key: &str) -> Option<Self> {
        let mut numbers = key.rsplit(':').next()?.split('-').map(|digits| u64::from_str_radix(digits, 16).ok());
        let mut next = || numbers.next().flatten();
        let (first, last, count, bytes, hash) = (next()?, next()?, next()?, next()?, next()?);
        Some(Self { first, last, count, bytes, hash })
    }

    /// Whether the pack may have the append.
    pub(super) fn spans(&self, id: &AppendId) -> bool {
        (self.first..=self.last).contains(&id.revision)
    }

    /// Comes before every append that the pack may have.
    pub(super) fn lowest_id(&self) -> AppendId {
        AppendId { revision: self.first, writer: String::new() }
    }

    /// Whether the pack has at least the range of another one.
    fn includes(&self, other: &Self) -> bool {
        self.first <= other.first && self.last >= other.last && self.count >= other.count
    }

    /// How often its appends were merged.
    fn level(&self) -> u32 {
        let units = self.count / MIN_PACKED as u64;
        units.max(1).ilog(MERGED_AT_ONCE as u64)
    }
}

/// The description of a pack. The values of its appends follow, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct KvPack {
    /// The session's id.
    session: String,
    appends: Vec<PackedAppend>,
}
encode_fields!(struct KvPack {
    0 => session: required,
    1 => appends: list,
});

#[derive(Clone, Debug, PartialEq, Eq)]
struct PackedAppend {
    id: AppendId,
    length: u64,
}
encode_fields!(struct PackedAppend {
    0 => id: required,
    1 => length,
});

impl InParts for KvPack {
    const KIND: RecordKind = RecordKind::KvPack;
    /// A pack is one value: [`fits`] says what has room in it.
    fn set_parts(&mut self, _parts: u32) {}
}

/// The packs of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KvManifest {
    /// The session's id.
    session: String,
    pub(super) packs: Vec<PackName>,
    /// Packs whose appends were merged into others. They are removed with the next merge, since older manifests name them.
    pub(super) merged: Vec<PackName>,
}
encode_fields!(struct KvManifest {
    0 => session: required,
    1 => packs: list,
    2 => merged: list,
});

impl InParts for KvManifest {
    const KIND: RecordKind = RecordKind::KvManifest;
    /// A manifest is one value, or is not written.
    fn set_parts(&mut self, _parts: u32) {}
}

/// Returns the size of a pack with so many appends whose values have so many bytes.
fn size_of_pack(count: usize, bytes: usize) -> usize {
    bytes.saturating_add(count.saturating_mul(BYTES_OF_ENTRY)).saturating_add(BYTES_OF_DESCRIPTION)
}

/// Encodes a pack.
///
/// # Errors
/// `too_large`.
pub(super) fn seal_pack(
    session: &str,
    appends: &BTreeMap<AppendId, Bytes>,
    limit: usize,
) -> Result<Option<(PackName, Bytes)>> {
    let (Some(first), Some(last)) = (appends.keys().next(), appends.keys().next_back()) else { return Ok(None) };
    let entry = |(id, value): (&AppendId, &Bytes)| PackedAppend { id: id.clone(), length: value.len() as u64 };
    let mut description = KvPack { session: session.to_owned(), appends: appends.iter().map(entry).collect() };
    let mut values = BytesMut::new();
    appends.values().for_each(|value| values.extend_from_slice(value));
    let (value, rest) = seal_value(&mut description, &values.freeze(), limit)?;
    let (first, last) = (first.revision, last.revision);
    let (count, bytes, hash) = (appends.len() as u64, value.len() as u64, hash(&value));
    Ok(rest.is_empty().then_some((PackName { first, last, count, bytes, hash }, value)))
}

/// Decodes the pack of a session: its appends as they were written. None if it is damaged, another session's or of a newer build:
/// the appends have keys of their own.
pub(super) fn open_pack(session: &str, value: &Bytes) -> Option<Vec<(AppendId, Bytes)>> {
    let (pack, mut values) = open_value::<KvPack>(value).ok().filter(|(pack, _)| pack.session == session)?;
    let mut appends = Vec::new();
    for PackedAppend { id, length } in pack.appends {
        let length = usize::try_from(length).ok().filter(|length| *length <= values.len())?;
        appends.push((id, values.split_to(length)));
    }
    Some(appends)
}

/// Decodes the manifest of a session; none if it is damaged, another session's or of a newer build.
pub(super) fn open_manifest(session: &str, value: &Bytes) -> Option<KvManifest> {
    open_value::<KvManifest>(value).ok().map(|(manifest, _)| manifest).filter(|manifest| manifest.session == session)
}

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
        let held_bytes = self.held_bytes.saturating_add(value.len());
        if held_bytes <= MAX_HELD_BYTES && self.unpacked.insert(id, value).is_none() {
            self.held_bytes = held_bytes;
        }
    }

    /// Drops the values from memory. The appends still wait for a pack.
    pub(super) fn release(&mut self) {
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
        let highest = self.packs.iter().map(PackName::level).max().unwrap_or(0);
        for level in 0..=highest {
            let packs: Vec<_> = self.packs.iter().filter(|pack| pack.level() == level).copied().collect();
            let fits = |packs: &&[PackName]| {
                let bytes: u64 = packs.iter().map(|pack| pack.bytes).sum();
                usize::try_from(bytes).is_ok_and(|bytes| bytes <= MAX_PACK_BYTES.min(max_value_bytes))
            };
            if let Some(packs) = packs.windows(MERGED_AT_ONCE).find(fits) {
                return Some(packs.to_vec());
            }
        }
        None
    }

    /// Replaces packs by the one that they were merged into. Returns those that an earlier merge has replaced: no manifest of the last
    /// merges names them.
    pub(super) fn replace(&mut self, old: &[PackName], name: PackName) -> Vec<PackName> {
        self.packs.retain(|pack| !old.contains(pack));
        self.add_pack(name, &[]);
        let removable = std::mem::take(&mut self.merged);
        self.merged = old.to_vec();
        removable.into_iter().filter(|pack| !self.packs.contains(pack)).collect()
    }

    /// Encodes the manifest; none if it is larger than a value may be.
    ///
    /// # Errors
    /// `too_large`.
    pub(super) fn seal_manifest(&self, session: &str, limit: usize) -> Result<Option<Bytes>> {
        let (packs, merged) = (self.packs.clone(), self.merged.clone());
        let mut manifest = KvManifest { session: session.to_owned(), packs, merged };
        let (value, rest) = seal_value(&mut manifest, &Bytes::new(), limit)?;
        Ok(rest.is_empty().then_some(value))
    }
}
