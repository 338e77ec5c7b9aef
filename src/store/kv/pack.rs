//! Packs: many appends in one value, so that a long session is opened with few requests.
//!
//! A pack repeats appends byte for byte and is named by its content, so two packers write the same bytes or two keys.
//! Every append stays a key of its own: whoever does not find a pack reads those. The manifest names the packs of a
//! session. It is the only key that is written again, and a hint: without it packs are found by a list.

use super::key::session_key;
use super::stored_append::AppendId;
use super::value::{InParts, open_value, seal_value};
use crate::encoding::encode_fields;
use crate::error::Result;
use crate::id::hash;
use crate::store::record::RecordKind;
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;

/// Bytes that the description of a pack takes for each append: a revision, a writer's name and a length.
const ENTRY_BYTES: usize = 160;

/// The most bytes of a session's id in the description, and its frame.
const PACK_HEADER_BYTES: usize = 4096;

/// The name of a pack: the numbers in its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PackName {
    /// The lowest revision.
    pub(super) first: u64,
    /// The highest revision.
    pub(super) last: u64,
    /// How many appends it has.
    pub(super) count: u64,
    pub(super) bytes: u64,
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
    pub(super) fn includes(&self, other: &Self) -> bool {
        self.first <= other.first && self.last >= other.last && self.count >= other.count
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
    /// A pack is always one value, of at most `MAX_PACK_BYTES`.
    fn set_parts(&mut self, _parts: u32) {}
}

/// The packs of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KvManifest {
    /// The session's id.
    pub(super) session: String,
    pub(super) packs: Vec<PackName>,
    /// Packs whose appends were merged into others. They are removed with the next merge, since older manifests name
    /// them.
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
pub(super) fn size_of_pack(count: usize, bytes: usize) -> usize {
    bytes.saturating_add(count.saturating_mul(ENTRY_BYTES)).saturating_add(PACK_HEADER_BYTES)
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

/// Decodes the pack of a session: its appends as they were written. None if it is damaged, another session's or of a
/// newer build: the appends have keys of their own.
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
