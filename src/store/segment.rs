//! Segments: old log records, merged into one record of about 256 KB, since a store reads few large records faster than
//! many small ones.
//!
//! ```text
//! the index: a sealed [`SegmentIndex`], with the key and the length of each record
//! the records, one after another, each as it was appended, with its own header and checksum
//! the last 4 bytes: length of the index, little-endian
//! ```
//!
//! A damaged byte in a record costs that record alone, as it did before the merge: each record keeps its checksum. The
//! index has a hash of all of them, which takes a quarter of the time of the checksums: they are checked only where it
//! does not match.

use super::record::{RecordKind, is_intact, open_record, seal_record};
use super::{Record, Table};
use crate::error::{Error, ErrorCode, Result};
use crate::id::hash_words;
use bytes::Bytes;
use minicbor::{Decode, Encode};

/// Size of a segment in bytes, unless the store's values must be smaller.
pub(super) const SEGMENT_BYTES: u64 = 256 * 1024;

/// Maximum number of records in a segment: stores limit the number of keys that a batch may remove.
pub(super) const MAX_SEGMENT_RECORDS: u64 = 400;

/// Maximum size of what a segment has beside the bytes of its records: the header and the trailer.
pub(super) const SEGMENT_FRAME_BYTES: u64 = 48;

/// Maximum size of a record's place in the index: key and length.
pub(super) const INDEX_ENTRY_BYTES: u64 = 14;

/// Length of the trailer: the length of the index.
const TRAILER: usize = 4;

/// Where the records of a segment are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
struct SegmentIndex {
    /// The keys, rising.
    #[n(0)]
    keys: Vec<u64>,
    /// The lengths in bytes, in the order of the keys.
    #[n(1)]
    lengths: Vec<u32>,
    /// The hash of the records; absent in segments of earlier builds.
    #[n(2)]
    hash: Option<u64>,
}

/// The log records of a stored record.
#[derive(Default)]
pub struct SplitRecords {
    /// Keys and values, which share the bytes of the stored record.
    pub records: Vec<(u64, Bytes)>,
    /// True if the values are as they were merged, so that their checksums need not be checked.
    pub is_verified: bool,
}

/// Merges log records, in key order, into a segment. Returns none for less than two records, or if one is damaged: what
/// cannot be read stays as it is.
pub(super) fn seal_segment(records: &[Record]) -> Option<Record> {
    let (first, last) = match records {
        [first, .., last] => (first.key, last.key),
        _ => return None,
    };
    let mut index = SegmentIndex::default();
    for record in records {
        if record.last_key.is_some() || !is_intact(RecordKind::Log, &record.value) {
            return None;
        }
        index.keys.push(record.key);
        index.lengths.push(u32::try_from(record.value.len()).ok()?);
    }
    let mut merged = Vec::new();
    for record in records {
        merged.extend_from_slice(&record.value);
    }
    index.hash = Some(segment_hash(&merged));
    let index = seal_record(RecordKind::Segment, &index);
    let trailer = u32::try_from(index.len()).ok()?.to_le_bytes();
    let mut value = Vec::from(index);
    value.append(&mut merged);
    value.extend_from_slice(&trailer);
    Some(Record { table: Table::Log, key: first, last_key: Some(last), index: None, value: value.into() })
}

/// Returns the hash of the records of a segment, which is stored: it may not change. Damage within 8 bytes always
/// changes it.
fn segment_hash(records: &[u8]) -> u64 {
    hash_words(0, records)
}

/// Returns the keys and values of the log records that a stored record contains: those of a segment, or itself.
///
/// # Errors
/// `corrupt_record` or `unsupported_version` for a segment whose index cannot be read.
pub fn split_segment(record: &Record) -> Result<SplitRecords> {
    let Some(last) = record.last_key else {
        return Ok(SplitRecords { records: vec![(record.key, record.value.clone())], is_verified: false });
    };
    let (index, mut rest) = split_index(&record.value).ok_or_else(corrupt_index)?;
    let SegmentIndex { keys, lengths, hash } = open_record(RecordKind::Segment, &index)?;
    if keys.len() != lengths.len() {
        return Err(corrupt_index());
    }
    let is_verified = hash.is_some_and(|hash| hash == segment_hash(&rest));
    let mut records = Vec::with_capacity(keys.len());
    let mut least = record.key;
    for (key, length) in keys.into_iter().zip(lengths) {
        // A length beyond the end leaves a shorter record, which its checksum reports.
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
        if key < least || key > last {
            return Err(corrupt_index());
        }
        least = key.saturating_add(1);
        records.push((key, rest.split_to(length)));
    }
    Ok(SplitRecords { records, is_verified })
}

/// Splits a segment into its index and its records.
fn split_index(value: &Bytes) -> Option<(Bytes, Bytes)> {
    let end = value.len().checked_sub(TRAILER)?;
    let length = usize::try_from(u32::from_le_bytes(*value.last_chunk()?)).ok()?;
    let mut index = value.slice(..end);
    if length > end {
        return None;
    }
    let records = index.split_off(length);
    Some((index, records))
}

fn corrupt_index() -> Error {
    Error::new(
        ErrorCode::CorruptRecord,
        "the index of a segment does not decode; it is left as it is, export the session before deleting anything",
    )
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use crate::store::record::seal_payload;
    use proptest::prelude::*;

    fn log(key: u64, payload: &[u8]) -> Record {
        let value = seal_payload(RecordKind::Log, payload);
        Record { table: Table::Log, key, last_key: None, index: None, value }
    }

    #[test]
    fn a_segment_is_at_most_as_large_as_a_merge_plan_assumes() {
        let keys = (0..MAX_SEGMENT_RECORDS).map(|at| crate::store::MAX_KEY - MAX_SEGMENT_RECORDS + at);
        let records: Vec<_> = keys.map(|key| log(key, &[7; 70_000])).collect();
        let bytes: u64 = records.iter().map(|record| record.value.len() as u64 + INDEX_ENTRY_BYTES).sum();
        let segment = seal_segment(&records).unwrap();
        assert!(segment.value.len() as u64 <= bytes + SEGMENT_FRAME_BYTES);
    }

    #[test]
    fn r67_the_layout_of_a_segment_is_as_documented() {
        let (one, two) = (log(3, b"one"), log(5, b"three"));
        let segment = seal_segment(&[one.clone(), two.clone()]).unwrap();
        let (index, rest) = segment.value.split_at(26);
        // Computed by another program.
        let hash = 0xfa2e_396f_62f8_a2a9_u64.to_be_bytes();
        let payload = [&[0xa3_u8, 0, 0x82, 3, 5, 1, 0x82, 10, 12, 2, 0x1b][..], &hash].concat();
        assert_eq!((&index[..3], &index[7..]), (&[1_u8, 1, 8][..], &payload[..]));
        assert_eq!(rest, [&one.value[..], &two.value[..], &[26, 0, 0, 0]].concat());
    }

    #[test]
    fn r67_a_segment_of_a_build_without_the_hash_is_read() {
        let (one, two) = (log(3, b"one"), log(5, b"three"));
        let index = SegmentIndex { keys: vec![3, 5], lengths: vec![10, 12], hash: None };
        let index = seal_record(RecordKind::Segment, &index);
        let value = [&index[..], &one.value, &two.value, &[u8::try_from(index.len()).unwrap(), 0, 0, 0]].concat();
        let split = split_segment(&Record { last_key: Some(5), value: value.into(), ..log(3, &[]) }).unwrap();
        assert_eq!((split.records, split.is_verified), (vec![(3, one.value), (5, two.value)], false));
    }

    proptest! {
        #[test]
        fn a_segment_contains_its_records_unchanged(
            payloads in proptest::collection::vec((1_u64..1 << 40, proptest::collection::vec(any::<u8>(), 0..50)), 2..30),
        ) {
            let mut key = 0;
            let mut records = Vec::new();
            for (distance, payload) in &payloads {
                key += distance;
                records.push(log(key, payload));
            }
            let segment = seal_segment(&records).unwrap();
            let SplitRecords { records: parts, is_verified } = split_segment(&segment).unwrap();
            prop_assert!(is_verified);
            let expected: Vec<_> = records.iter().map(|record| (record.key, record.value.clone())).collect();
            prop_assert_eq!(parts, expected);
        }

        #[test]
        fn r62_any_bytes_split_or_fail(value in proptest::collection::vec(any::<u8>(), 0..200), last in 0_u64..9) {
            let segment = Record { last_key: Some(last), ..log(0, &[]) };
            let _ = split_segment(&Record { value: value.into(), ..segment });
        }

        #[test]
        fn r48_a_flipped_bit_loses_one_record_or_is_reported(at in any::<proptest::sample::Index>(), bit in 0_u8..8) {
            let records: Vec<_> = (0..20).map(|key| log(key, &[u8::try_from(key).unwrap_or(0); 30])).collect();
            let segment = seal_segment(&records).unwrap();
            let mut bytes = segment.value.to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let Ok(split) = split_segment(&Record { value: bytes.into(), ..segment }) else { return Ok(()) };
            prop_assert!(!split.is_verified);
            let parts = split.records;
            let intact = parts.iter().filter(|(_, value)| is_intact(RecordKind::Log, value)).count();
            prop_assert_eq!((parts.len(), intact), (20, 19));
        }
    }
}
