//! Values of the contract as bytes.
//!
//! The fields of a struct follow each other in the order in which they are listed here. Writer and reader are of one
//! build and nothing of it is stored, so there are no numbers of fields and no versions.

use crate::error::{Error, ErrorCode, Result};
use crate::store::{
    Appended, AuditIndex, AuditQuery, Batch, Capabilities, ListedBy, LogKey, Page, Query, RecencyQuery, Record,
    RetainedAppend, SessionRow, StoredBranch, StoredHead, Table,
};
use bytes::{Buf, Bytes};

/// A value that crosses between two instances.
pub(super) trait Transfer: Sized {
    /// Appends the encoded value to `out`.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads a value from the beginning of `from`. Bytes are copied: a head that a store keeps would keep all the
    /// records that came with it.
    ///
    /// # Errors
    /// `internal` if there is none.
    fn read(from: &mut Bytes) -> Result<Self>;

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

/// Decodes a value of which `bytes` are the whole.
pub(super) fn decode<T: Transfer>(mut bytes: Bytes) -> Result<T> {
    let value = T::read(&mut bytes)?;
    if bytes.is_empty() { Ok(value) } else { Err(unreadable()) }
}

pub(super) fn unreadable() -> Error {
    let message =
        "the main program and the program of stores do not understand each other; they must be of one version";
    Error::new(ErrorCode::Internal, message)
}

/// Transfers the fields of a struct in this order.
macro_rules! transfer_fields {
    ($name:ident $(<$T:ident>)? { $($field:ident),* $(,)? }) => {
        impl $(<$T: $crate::store::remote::transfer::Transfer>)? $crate::store::remote::transfer::Transfer
            for $name $(<$T>)?
        {
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$field.write(out);)*
            }

            fn read(from: &mut bytes::Bytes) -> $crate::error::Result<Self> {
                Ok(Self { $($field: $crate::store::remote::transfer::Transfer::read(from)?,)* })
            }
        }
    };
}
pub(super) use transfer_fields;

/// Transfers the number of a variant, and its values in this order.
macro_rules! transfer_variants {
    ($name:ident { $($number:literal => $variant:ident $(($($value:ident),*))?),* $(,)? }) => {
        impl $crate::store::remote::transfer::Transfer for $name {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($($value),*))? => {
                        out.push($number);
                        $($($value.write(out);)*)?
                    })*
                }
            }

            fn read(from: &mut bytes::Bytes) -> $crate::error::Result<Self> {
                match u8::read(from)? {
                    $($number => {
                        $($(let $value = $crate::store::remote::transfer::Transfer::read(from)?;)*)?
                        Ok(Self::$variant $(($($value),*))?)
                    })*
                    _ => Err($crate::store::remote::transfer::unreadable()),
                }
            }
        }
    };
}
pub(super) use transfer_variants;

impl Transfer for u8 {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn read(from: &mut Bytes) -> Result<Self> {
        from.try_get_u8().map_err(|_| unreadable())
    }
}

impl Transfer for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn read(from: &mut Bytes) -> Result<Self> {
        from.try_get_u64_le().map_err(|_| unreadable())
    }
}

impl Transfer for usize {
    fn write(&self, out: &mut Vec<u8>) {
        (*self as u64).write(out);
    }

    fn read(from: &mut Bytes) -> Result<Self> {
        Self::try_from(u64::read(from)?).map_err(|_| unreadable())
    }
}

impl Transfer for bool {
    fn write(&self, out: &mut Vec<u8>) {
        u8::from(*self).write(out);
    }

    fn read(from: &mut Bytes) -> Result<Self> {
        Ok(u8::read(from)? != 0)
    }
}

impl Transfer for () {
    fn write(&self, _out: &mut Vec<u8>) {}

    fn read(_from: &mut Bytes) -> Result<Self> {
        Ok(())
    }
}

impl Transfer for Bytes {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        out.extend_from_slice(self);
    }

    fn read(from: &mut Bytes) -> Result<Self> {
        let length = usize::read(from)?;
        if length > from.len() {
            return Err(unreadable());
        }
        Ok(Self::copy_from_slice(&from.split_to(length)))
    }
}

impl Transfer for String {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(from: &mut Bytes) -> Result<Self> {
        Self::from_utf8(Bytes::read(from)?.into()).map_err(|_| unreadable())
    }
}

impl<T: Transfer> Transfer for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(from: &mut Bytes) -> Result<Self> {
        if bool::read(from)? { T::read(from).map(Some) } else { Ok(None) }
    }
}

impl<T: Transfer> Transfer for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        for item in self {
            item.write(out);
        }
    }

    fn read(from: &mut Bytes) -> Result<Self> {
        // Each item has a byte at least.
        let count = usize::read(from)?;
        if count > from.len() {
            return Err(unreadable());
        }
        (0..count).map(|_| T::read(from)).collect()
    }
}

impl<A: Transfer, B: Transfer> Transfer for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(from: &mut Bytes) -> Result<Self> {
        Ok((A::read(from)?, B::read(from)?))
    }
}

transfer_variants!(Table { 0 => Log, 1 => ToolInvocations, 2 => Runs });
transfer_variants!(Appended { 0 => Revision(revision), 1 => Conflict(revision), 2 => Occupied });
transfer_fields!(Capabilities { compare_and_append, atomic_batch, read_your_writes, max_value_bytes, durable });
transfer_fields!(AuditIndex { tool, status, channel, at });
transfer_fields!(Record { table, key, last_key, index, value });
transfer_fields!(ListedBy { updated_at, is_archived });
transfer_fields!(Batch { head, channel, listed_by, at_least, put, replace, remove, erases, notice });
transfer_fields!(StoredHead { revision, value });
transfer_fields!(Query { table, from, to, reverse, limit_bytes, expected_records });
transfer_fields!(AuditQuery { session, tool, status, channel, since, until, cursor, limit });
transfer_fields!(RecencyQuery { channel, archived, cursor, limit });
transfer_fields!(LogKey { session, key });
transfer_fields!(SessionRow { id, head });
transfer_fields!(StoredBranch { id, head, fork_head, log });
transfer_fields!(RetainedAppend { id, parent, is_of_conflict, is_damaged, head, records });
transfer_fields!(Page<T> { items, cursor });

#[cfg(test)]
mod tests;
