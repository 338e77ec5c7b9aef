//! The frame of every stored value.
//!
//! ```text
//! byte 0   oldest format version that may read the record
//! byte 1   format version of the build that wrote it
//! byte 2   kind
//! 3..7     CRC-32 (IEEE) of the three bytes above and the payload, little-endian
//! 7..      payload: CBOR, see `encoding`
//! ```
//!
//! Byte 0 is read first: a later version may change everything after it.

use crate::encoding::RecordSource;
use crate::error::{Error, ErrorCode, Result};
use bytes::Bytes;
use crc::{CRC_32_ISO_HDLC, Crc, Table};
use minicbor::{Decode, Encode};
use std::sync::OnceLock;

/// The format version of this build. It rises when a field or a variant is added.
pub const VERSION: u8 = 1;

/// The oldest format version that may read what this build writes. It rises when a reader of an older version would
/// misunderstand or lose something, which an added optional field does not cause.
const OLDEST_READER: u8 = 1;

/// The first byte of a value that [`EncryptedStore`](super::EncryptedStore) has written.
pub(super) const ENCRYPTED: u8 = 0xec;

/// Maximum size of a record in bytes. Edge stores reject larger values.
pub const MAX_RECORD_BYTES: usize = 512 * 1024 * 1024;

/// Where the checksum begins and ends; the payload follows.
const CHECKSUM: usize = 3;
const HEADER: usize = 7;

/// What a record contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
#[repr(u8)]
pub enum RecordKind {
    Head = 1,
    Log = 2,
    Audit = 3,
    Journal = 4,
    JournalMark = 5,
    /// Of a session in a key-value store.
    KvHead = 6,
    /// Of a record in a key-value store.
    KvRecord = 7,
    /// The index of a segment.
    Segment = 8,
    /// Of an append in a key-value store without commits.
    KvAppend = 9,
    /// Of a pack of such appends.
    KvPack = 10,
    /// Which packs there are.
    KvManifest = 11,
    /// Of a whole session, for another store.
    Archive = 12,
    /// Of an unfinished run, for another store.
    Snapshot = 13,
    /// Of a branch in the directory of a session.
    Branch = 14,
    /// What a search needs of all sessions.
    SearchIndex = 15,
}

/// A type that can be stored in a record.
pub trait StoredValue: Encode<RecordSource> + for<'b> Decode<'b, RecordSource> {}

impl<T: Encode<RecordSource> + for<'b> Decode<'b, RecordSource>> StoredValue for T {}

/// Encodes a value with its kind, versions and checksum.
pub fn seal_record<T: StoredValue>(kind: RecordKind, value: &T) -> Bytes {
    let mut bytes = header(kind);
    // proof: writing to a vector does not fail, and no stored type reports an error of its own
    let _ = minicbor::encode_with(value, &mut bytes, &mut RecordSource::default());
    write_checksum(&mut bytes);
    bytes.into()
}

fn header(kind: RecordKind) -> Vec<u8> {
    vec![OLDEST_READER, VERSION, kind as u8, 0, 0, 0, 0]
}

/// Makes a record of a payload that is encoded already, or damaged: for tests.
#[cfg(any(test, feature = "conformance"))]
#[must_use]
pub fn seal_payload(kind: RecordKind, payload: &[u8]) -> Bytes {
    let mut bytes = header(kind);
    bytes.extend_from_slice(payload);
    write_checksum(&mut bytes);
    bytes.into()
}

/// Decodes what [`seal_record`] made. Texts of the value are slices of `bytes`.
///
/// # Errors `unsupported_version` for a record that this build may not read, or of a newer build that it cannot read;
/// `corrupt_record` for one that is damaged or of another kind.
pub fn open_record<T: StoredValue>(kind: RecordKind, bytes: &Bytes) -> Result<T> {
    check_sum(bytes)?;
    open_verified_record(kind, bytes)
}

/// As [`open_record`], for a record whose checksum need not be checked.
///
/// # Errors
/// As [`open_record`].
pub(super) fn open_verified_record<T: StoredValue>(kind: RecordKind, bytes: &Bytes) -> Result<T> {
    let payload = payload_of(kind, bytes)?;
    let decoded = minicbor::decode_with(&payload, &mut RecordSource::new(payload.clone()));
    decoded.map_err(|_| match bytes.get(1) {
        // A variant that was added.
        Some(version) if *version > VERSION => unsupported(*version),
        _ => corrupt("payload"),
    })
}

/// As [`open_record`], for a value whose content is going to be written to another record.
///
/// # Errors
/// As [`open_record`]; `unsupported_version` also for a value with fields of a newer build, which would be lost.
pub fn open_whole_record<T: StoredValue>(kind: RecordKind, bytes: &Bytes) -> Result<T> {
    let value = open_record(kind, bytes)?;
    match bytes.get(1) {
        Some(version) if *version > VERSION => {
            let known = seal_record(kind, &value);
            if known.get(HEADER..) == bytes.get(HEADER..) { Ok(value) } else { Err(unsupported(*version)) }
        }
        _ => Ok(value),
    }
}

/// Returns true if a newer build wrote the record.
#[must_use]
pub fn is_of_newer_build(bytes: &Bytes) -> bool {
    bytes.get(1).is_some_and(|version| *version > VERSION)
}

/// Returns true if the record is undamaged, of this kind, and may be read by this build.
pub(super) fn is_intact(kind: RecordKind, bytes: &Bytes) -> bool {
    check_sum(bytes).and_then(|()| payload_of(kind, bytes)).is_ok()
}

/// Checks a record's checksum, if this build may read the record.
fn check_sum(bytes: &Bytes) -> Result<()> {
    match bytes.as_ref() {
        [ENCRYPTED, ..] => Err(encrypted()),
        [oldest_reader, ..] if *oldest_reader > VERSION => Ok(()),
        [_, _, _, a, b, c, d, ..] if u32::from_le_bytes([*a, *b, *c, *d]) != checksum(bytes) => {
            Err(corrupt("checksum"))
        }
        _ => Ok(()),
    }
}

fn payload_of(kind: RecordKind, bytes: &Bytes) -> Result<Bytes> {
    let [oldest_reader, version, stored_kind, _, _, _, _, ..] = bytes.as_ref() else {
        return Err(corrupt("too short"));
    };
    if *oldest_reader > VERSION {
        return Err(unsupported(*version));
    }
    if *stored_kind != kind as u8 {
        return Err(corrupt("kind"));
    }
    Ok(bytes.slice(HEADER..))
}

fn unsupported(version: u8) -> Error {
    Error::new(
        ErrorCode::UnsupportedVersion,
        format!(
            "a record was written by format version {version} and this build has version {VERSION}; update rethread to write to this session"
        ),
    )
}

fn encrypted() -> Error {
    let message = "a stored record is encrypted; pass its key as `encryption` to `open`. Nothing was changed";
    Error::new(ErrorCode::WrongKey, message)
}

fn corrupt(what: &str) -> Error {
    Error::new(
        ErrorCode::CorruptRecord,
        format!(
            "a stored record does not decode ({what}); it is left as it is, export the session before deleting anything"
        ),
    )
}

/// Writes the checksum of a record into its header.
fn write_checksum(bytes: &mut [u8]) {
    let sum = checksum(bytes);
    if let Some(place) = bytes.get_mut(CHECKSUM..HEADER) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
}

/// CRC-32 (IEEE 802.3) of a record: of everything but the checksum itself.
fn checksum(bytes: &[u8]) -> u32 {
    crc32([bytes.get(..CHECKSUM).unwrap_or(bytes), bytes.get(HEADER..).unwrap_or(&[])])
}

/// CRC-32 (IEEE 802.3) of bytes in two parts.
pub(super) fn crc32(parts: [&[u8]; 2]) -> u32 {
    let mut digest = CRC.get_or_init(|| Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC)).digest();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}

/// The tables of the checksum, 16 KB. Built when first needed: as constants they would make the wasm larger.
static CRC: OnceLock<Crc<u32, Table<16>>> = OnceLock::new();

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use crate::session_head::SessionHead;
    use proptest::prelude::*;

    #[test]
    fn checksums_match_the_reference_value() {
        // The check value of CRC-32/ISO-HDLC: "123456789", of which the first three stand for kind and versions.
        let mut bytes = b"123----".to_vec();
        bytes.extend_from_slice(b"456789");
        assert_eq!(checksum(&bytes), 0xcbf4_3926);
    }

    fn seal_as(version: u8, oldest_reader: u8, value: &impl StoredValue) -> Bytes {
        let mut bytes = seal_record(RecordKind::Log, value).to_vec();
        bytes[0] = oldest_reader;
        bytes[1] = version;
        write_checksum(&mut bytes);
        bytes.into()
    }

    #[test]
    fn r67_a_newer_builds_record_is_read_if_it_permits_this_version() {
        let value = (1_u32, "two".to_owned());
        assert_eq!(
            open_record::<(u32, String)>(RecordKind::Log, &seal_record(RecordKind::Log, &value)).unwrap(),
            value
        );
        assert_eq!(
            open_record::<(u32, String)>(RecordKind::Log, &seal_as(VERSION + 1, VERSION, &value)).unwrap(),
            value
        );
        let refused = |bytes: &Bytes| open_record::<(u32, String)>(RecordKind::Log, bytes).unwrap_err().code;
        assert_eq!(refused(&seal_as(VERSION + 1, VERSION + 1, &value)), ErrorCode::UnsupportedVersion);
        assert_eq!(refused(&seal_as(VERSION + 1, VERSION, &5_u64)), ErrorCode::UnsupportedVersion);
        assert_eq!(refused(&seal_as(VERSION, VERSION, &5_u64)), ErrorCode::CorruptRecord);
        assert_eq!(refused(&seal_record(RecordKind::Head, &value)), ErrorCode::CorruptRecord);
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = open_record::<SessionHead>(RecordKind::Head, &bytes.into());
        }

        #[test]
        fn a_flipped_bit_is_detected(at in 0_usize..200, bit in 0_u8..8) {
            let mut bytes = seal_record(RecordKind::Head, &SessionHead::new("s", 1)).to_vec();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let error = open_record::<SessionHead>(RecordKind::Head, &bytes.into()).unwrap_err();
            prop_assert!(at == 0 || error.code == ErrorCode::CorruptRecord, "{error}");
        }
    }
}
