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

use crate::store::record::ENCRYPTED;
use crate::store::{Record, Table};
use bytes::{BufMut, Bytes, BytesMut};

const VERSION: u8 = 1;

const HEADER: usize = 4;

/// An encrypted value.
pub(super) struct Frame {
    /// The session's key, wrapped.
    pub wrapped: Bytes,
    /// The sealed value.
    pub sealed: Bytes,
}

impl Frame {
    /// Reads a value; none if it is not encrypted, or of a form that this build does not know.
    pub fn read(value: &Bytes) -> Option<Self> {
        let [ENCRYPTED, VERSION, high, low, ..] = value.as_ref() else { return None };
        let end = HEADER + usize::from(u16::from_be_bytes([*high, *low]));
        (end <= value.len()).then(|| Self { wrapped: value.slice(HEADER..end), sealed: value.slice(end..) })
    }

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

/// Returns true if a value is encrypted, whether it can be read or not.
pub(super) fn is_encrypted(value: &Bytes) -> bool {
    value.first() == Some(&ENCRYPTED)
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

fn place(kind: u8, (key, last_key): (u64, u64), session: &str) -> Bytes {
    let mut out = BytesMut::with_capacity(18 + session.len());
    out.put_slice(&[VERSION, kind]);
    out.put_u64(key);
    out.put_u64(last_key);
    out.put_slice(session.as_bytes());
    out.freeze()
}
