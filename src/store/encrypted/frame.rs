//! The form of an encrypted value, and the places to which values are bound.
//!
//! ```text
//! byte 0   0xec: as the oldest version of a plain record it is one that no build reads
//! byte 1   version of this form
//! 2..4     length of the wrapped key, big-endian
//! 4..      the session's key, wrapped; then the sealed value
//! ```
//!
//! Each value has the wrapped key, so that one that is damaged costs no other.

use crate::error::{Error, ErrorCode};
use crate::store::record::ENCRYPTED;
use crate::store::{Record, Table};
use bytes::{BufMut, Bytes, BytesMut};

const VERSION: u8 = 1;

const HEADER: usize = 4;

/// An encrypted value.
#[derive(Clone)]
pub(super) struct Frame {
    /// The session's key, wrapped.
    pub wrapped: Bytes,
    /// The sealed value.
    pub sealed: Bytes,
}

/// What a stored value is.
pub(super) enum Form {
    /// It is not encrypted.
    Plain,
    /// It is encrypted.
    Encrypted(Frame),
    /// It is encrypted, and damaged.
    Malformed,
    /// It is encrypted, in a form that a later build has added.
    OtherVersion(u8),
}

impl Form {
    /// Reads a value.
    pub fn of(value: &Bytes) -> Self {
        match value.as_ref() {
            [ENCRYPTED, version, ..] if *version > VERSION => Self::OtherVersion(*version),
            [ENCRYPTED, VERSION, high, low, ..] => {
                let end = HEADER + usize::from(u16::from_be_bytes([*high, *low]));
                if end > value.len() {
                    return Self::Malformed;
                }
                Self::Encrypted(Frame { wrapped: value.slice(HEADER..end), sealed: value.slice(end..) })
            }
            [ENCRYPTED, ..] => Self::Malformed,
            _ => Self::Plain,
        }
    }
}

/// Returns the error of a value whose form a later build has added.
pub(super) fn unsupported(session: &str, version: u8) -> Error {
    let message = format!(
        "a value of session \"{session}\" has version {version} of the encrypted form, and this build reads version {VERSION}; update rethread. Nothing was changed"
    );
    Error::new(ErrorCode::UnsupportedVersion, message)
}

/// Returns true if a wrapped key may be another one of which some bytes were changed. Wrapped keys begin with random
/// bytes and are indistinguishable from such: two of them have about one byte in 256 in common.
pub(super) fn is_changed_copy(wrapped: &Bytes, of: &Bytes) -> bool {
    let equal = wrapped.iter().zip(of).filter(|(a, b)| a == b).count();
    wrapped.len() == of.len() && equal * 2 >= of.len()
}

impl Frame {
    /// Writes a value.
    pub fn write(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(HEADER + self.wrapped.len() + self.sealed.len());
        out.put_slice(&[ENCRYPTED, VERSION]);
        out.put_u16(u16::try_from(self.wrapped.len()).unwrap_or_default());
        out.put_slice(&self.wrapped);
        out.put_slice(&self.sealed);
        out.freeze()
    }
}

/// Returns the place of a session's key.
pub(super) fn key_place(session: &str) -> Bytes {
    place(b'k', (0, 0), session)
}

/// Returns the place of a session's head.
pub(super) fn head_place(session: &str) -> Bytes {
    place(b'h', (0, 0), session)
}

/// Returns the place of a record.
pub(super) fn record_place(session: &str, record: &Record) -> Bytes {
    let table = match record.table {
        Table::Log => b'l',
        Table::ToolInvocations => b't',
        Table::Runs => b'r',
    };
    place(table, (record.key, record.last_key.unwrap_or(record.key)), session)
}

/// Returns the place of the key of the index of a search.
pub(super) fn index_key_place() -> Bytes {
    place(b'i', (0, 0), "")
}

/// Returns the place of that index.
pub(super) fn index_place() -> Bytes {
    place(b's', (0, 0), "")
}

fn place(kind: u8, (key, last_key): (u64, u64), session: &str) -> Bytes {
    let mut out = BytesMut::with_capacity(18 + session.len());
    out.put_slice(&[VERSION, kind]);
    out.put_u64(key);
    out.put_u64(last_key);
    out.put_slice(session.as_bytes());
    out.freeze()
}
