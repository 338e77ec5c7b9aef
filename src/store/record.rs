//! The record codec: what every stored value looks like.
//!
//! ```text
//! byte 0   version of the layout behind it
//! byte 1   kind
//! 2..6     CRC-32 (IEEE) of version, kind and payload, little-endian
//! 6..      payload: the kind's type, as `stored` says
//! ```

use crate::error::{Code, Error, Result};
use crate::stored::{Reader, Stored};
use std::sync::OnceLock;

/// The version this build writes and reads. A change to a stored type takes the next number, and a reader for this one.
pub const VERSION: u8 = 1;

/// Larger than this no record may grow: beyond it an edge store refuses the value.
pub const MAX_RECORD_BYTES: usize = 512 * 1024 * 1024;

const HEADER: usize = 6;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
#[repr(u8)]
pub enum RecordKind {
    Head = 1,
    Log = 2,
    Audit = 3,
    Journal = 4,
    JournalMark = 5,
}

/// Encodes a value with its version, kind and checksum.
pub fn seal_record<T: Stored>(kind: RecordKind, value: &T) -> Vec<u8> {
    let mut bytes = vec![VERSION, kind as u8, 0, 0, 0, 0];
    value.write(&mut bytes);
    let sum = checksum(&bytes);
    if let Some(place) = bytes.get_mut(2..HEADER) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

/// Decodes what [`seal_record`] made.
///
/// # Errors
/// `unsupported_version` for a newer layout, `corrupt_record` for anything that is damaged or of another kind.
pub fn open_record<T: Stored>(kind: RecordKind, bytes: &[u8]) -> Result<T> {
    let mut payload = Reader::new(payload_of(kind, bytes)?);
    let value = T::read(&mut payload);
    if payload.is_broken() { Err(corrupt("payload")) } else { Ok(value) }
}

fn payload_of(kind: RecordKind, bytes: &[u8]) -> Result<&[u8]> {
    let [version, own_kind, a, b, c, d, payload @ ..] = bytes else { return Err(corrupt("too short")) };
    if *version > VERSION {
        return Err(Error::new(
            Code::UnsupportedVersion,
            format!(
                "a record has schema version {version} and this build reads up to {VERSION}; update rethread to write to this session"
            ),
        ));
    }
    if u32::from_le_bytes([*a, *b, *c, *d]) != checksum(bytes) {
        return Err(corrupt("checksum"));
    }
    if *own_kind != kind as u8 {
        return Err(corrupt("kind"));
    }
    Ok(payload)
}

fn corrupt(what: &str) -> Error {
    Error::new(
        Code::CorruptRecord,
        format!(
            "a stored record does not decode ({what}); it is left as it is, export the session before deleting anything"
        ),
    )
}

/// CRC-32 (IEEE 802.3, reflected) over everything but the sum's own place.
fn checksum(bytes: &[u8]) -> u32 {
    let table = TABLE.get_or_init(table);
    let mut sum = !0_u32;
    for part in [bytes.get(..2), bytes.get(HEADER..)] {
        for byte in part.unwrap_or(&[]) {
            let at = usize::from(sum.to_le_bytes()[0] ^ byte); // proof: a byte, and the table has 256 entries
            sum = table.get(at).copied().unwrap_or(0) ^ (sum >> 8);
        }
    }
    !sum
}

/// Made when it is first needed: as a part of the wasm it would weigh its whole kilobyte.
static TABLE: OnceLock<[u32; 256]> = OnceLock::new();

fn table() -> [u32; 256] {
    let mut table = [0_u32; 256];
    for (at, sum) in (0_u32..).zip(&mut table) {
        *sum = at;
        for _ in 0..8 {
            *sum = if *sum & 1 == 1 { 0xedb8_8320 ^ (*sum >> 1) } else { *sum >> 1 };
        }
    }
    table
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn checks_as_everybody_does() {
        // The check value of CRC-32/ISO-HDLC: "123456789", of which the first two stand for version and kind.
        let mut bytes = b"12----".to_vec();
        bytes.extend_from_slice(b"3456789");
        assert_eq!(checksum(&bytes), 0xcbf4_3926);
    }

    #[test]
    fn tells_newer_from_broken() {
        let mut bytes = seal_record(RecordKind::Log, &(1_u32, "two".to_owned()));
        assert_eq!(open_record::<(u32, String)>(RecordKind::Log, &bytes).unwrap(), (1, "two".into()));
        assert_eq!(open_record::<(u32, String)>(RecordKind::Head, &bytes).unwrap_err().code, Code::CorruptRecord);
        bytes[0] = VERSION + 1;
        assert_eq!(open_record::<(u32, String)>(RecordKind::Log, &bytes).unwrap_err().code, Code::UnsupportedVersion);
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_err(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = open_record::<crate::session_head::SessionHead>(RecordKind::Head, &bytes);
        }

        #[test]
        fn a_flipped_bit_is_seen(at in 0_usize..200, bit in 0_u8..8) {
            let mut bytes = seal_record(RecordKind::Head, &crate::session_head::SessionHead::new("s", 1));
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let read = open_record::<crate::session_head::SessionHead>(RecordKind::Head, &bytes);
            prop_assert!(read.is_err());
        }
    }
}
