//! Segments: old log records, merged into one record of about 256 KB, since a store reads few large records faster than many small ones.
//!
//! ```text
//! the index: a sealed [`SegmentIndex`], with the key and the length of each record
//! the records, one after another, each as it was appended, with its own header and checksum
//! the last 4 bytes: length of the index, little-endian
//! ```
//!
//! A damaged byte in a record costs that record alone, as it did before the merge.

use super::record::{RecordKind, is_intact, open_record, seal_record};
use super::{Record, Table};
use crate::error::{Error, ErrorCode, Result};
use bytes::Bytes;
use minicbor::{Decode, Encode};

/// Size of a segment in bytes, unless the store's values must be smaller.
pub(super) const SEGMENT_BYTES: u64 = 256 * 1024;

/// Maximum number of records in a segment: stores limit the number of keys that a batch may remove.
pub(super) const MAX_SEGMENT_RECORDS: u64 = 400;

/// Maximum size of what a segment has beside the bytes of its records: the header and the trailer.
pub(super) const SEGMENT_FRAME_BYTES: u64 = 32;

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
}

/// Merges log records, in key order, into a segment. Returns none for less than two records, or if one is damaged: what cannot be read
/// stays as it is.
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
    let index = seal_record(RecordKind::Segment, &index);
    let trailer = u32::try_from(index.len()).ok()?.to_le_bytes();
    let mut value = Vec::from(index);
    for record in records {
        value.extend_from_slice(&record.value);
    }
    value.extend_from_slice(&trailer);
    Some(Record { table: Table::Log, key: first, last_key: Some(last), index: None, value: value.into() })
}

/// Returns the keys and values of the log records that a stored record contains: those of a segment, or itself. The values share the
/// bytes of the record, and are not checked yet.
///
/// # Errors
/// `corrupt_record` or `unsupported_version` for a segment whose index cannot be read.
pub fn split_segment(record: &Record) -> Result<Vec<(u64, Bytes)>> {
    let Some(last) = record.last_key else { return Ok(vec![(record.key, record.value.clone())]) };
    let (index, mut rest) = split_index(&record.value).ok_or_else(corrupt_index)?;
    let SegmentIndex { keys, lengths } = open_record(RecordKind::Segment, &index)?;
    if keys.len() != lengths.len() {
        return Err(corrupt_index());
    }
    let mut parts = Vec::with_capacity(keys.len());
    let mut least = record.key;
    for (key, length) in keys.into_iter().zip(lengths) {
        // A length beyond the end leaves a shorter record, which its checksum reports.
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
        if key < least || key > last {
            return Err(corrupt_index());
        }
        least = key.saturating_add(1);
        parts.push((key, rest.split_to(length)));
    }
    Ok(parts)
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
        let (index, rest) = segment.value.split_at(16);
        assert_eq!((&index[..3], &index[7..]), (&[1_u8, 1, 8][..], &[0xa2_u8, 0, 0x82, 3, 5, 1, 0x82, 10, 12][..]));
        assert_eq!(rest, [&one.value[..], &two.value[..], &[16, 0, 0, 0]].concat());
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
            let parts = split_segment(&segment).unwrap();
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
            let Ok(parts) = split_segment(&Record { value: bytes.into(), ..segment }) else { return Ok(()) };
            let intact = parts.iter().filter(|(_, value)| is_intact(RecordKind::Log, value)).count();
            prop_assert_eq!((parts.len(), intact), (20, 19));
        }
    }
}
