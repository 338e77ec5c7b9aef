//! The keys. No session's key is the beginning of another's, so no id reaches the records of another session (R49).
//!
//! ```text
//! schema                                          the layout and its version
//! head:<session>                                  revision, directory of the records, and the session's head
//! record:<session>:<table>:<key>                  a record, or the first part of a large one
//! part:<session>:<table>:<key>:<revision>:<part>  the further parts of a large record or head
//! append:<session>:<revision>:<writer>            an append, where the service has no commits
//! pack:<session>:<first>-<last>-…-<hash>          many appends once more, in one value
//! manifest:<session>                              which packs there are
//! ```
//!
//! They consist of `a-z 0-9 - _ = :`, because file systems ignore case and services give other characters a meaning.

use crate::id::{hash, hash_on};
use crate::store::Table;

/// The key of the layout and its version.
pub(super) const SCHEMA_KEY: &str = "schema";

/// The beginning of all heads' keys.
pub(super) const HEAD_PREFIX: &str = "head:";

/// The most bytes of a session's key: file names have at most 255, keys of Workers KV 512.
const MAX_SESSION_KEY: usize = 200;

/// The bytes of a long session's key that are its id's beginning.
const LONG_KEY_BEGINNING: usize = 150;

/// Another start of the hash function, for 64 more bits.
const SECOND_HASH: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a large value in parts is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartOwner {
    Head,
    Record(Table, u64),
}

/// Returns the part of a key that stands for a session: its id with every byte but `a-z 0-9 - _` as `=` and two digits.
/// The key of a long id ends in a hash; a value names its session in full, so that two ids with one hash are detected.
pub(super) fn session_key(id: &str) -> String {
    let mut key = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_' {
            key.push(char::from(byte));
        } else {
            key.push_str(&format!("={byte:02x}"));
        }
        if key.len() > MAX_SESSION_KEY {
            key.truncate(LONG_KEY_BEGINNING);
            // `==` is in no other key.
            return format!("{key}=={:016x}{:016x}", hash(id.as_bytes()), hash_on(SECOND_HASH, id.as_bytes()));
        }
    }
    // A service may refuse an empty name.
    if key.is_empty() { "=".into() } else { key }
}

/// Returns the id that a key of [`session_key`] stands for; none if it is a long one.
pub(super) fn session_of_key(key: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = key.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'=' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after.get(2..)?;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

pub(super) fn table_letter(table: Table) -> char {
    match table {
        Table::Log => 'l',
        Table::ToolInvocations => 't',
        Table::Runs => 'r',
    }
}

pub(super) fn head_key(session: &str) -> String {
    format!("{HEAD_PREFIX}{session}")
}

/// The beginning of the keys of a session's records.
pub(super) fn record_prefix(session: &str) -> String {
    format!("record:{session}:")
}

pub(super) fn record_key(session: &str, table: Table, key: u64) -> String {
    format!("record:{session}:{}:{key:014x}", table_letter(table))
}

/// Returns table and number of a key of [`record_key`].
pub(super) fn record_of_key(key: &str) -> Option<(Table, u64)> {
    let mut names = key.rsplit(':');
    let number = u64::from_str_radix(names.next()?, 16).ok()?;
    let table = match names.next()? {
        "l" => Table::Log,
        "t" => Table::ToolInvocations,
        "r" => Table::Runs,
        _ => return None,
    };
    Some((table, number))
}

/// The key of a further part, from 1, of a value that was written at `revision`. With the revision in it, parts of two
/// versions of a value are never mixed.
pub(super) fn part_key(session: &str, owner: PartOwner, revision: u64, part: u32) -> String {
    match owner {
        PartOwner::Head => format!("part:{session}:h:0:{revision:x}:{part:x}"),
        PartOwner::Record(table, key) => {
            format!("part:{session}:{}:{key:014x}:{revision:x}:{part:x}", table_letter(table))
        }
    }
}

/// Returns true if the key is one that a key-value store of ours has.
pub(super) fn is_ours(key: &str) -> bool {
    let prefixes = [HEAD_PREFIX, "record:", "part:", "append:", "pack:", "manifest:"];
    key == SCHEMA_KEY || prefixes.iter().any(|ours| key.starts_with(ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn r49_keys_of_two_sessions_differ(one in ".{0,15}", two in ".{0,15}") {
            prop_assert_eq!(session_key(&one) == session_key(&two), one == two);
            if !one.is_empty() {
                prop_assert_eq!(session_of_key(&session_key(&one)), Some(one));
            }
        }
    }

    #[test]
    fn r49_long_ids_have_short_keys() {
        let long = "A".repeat(5_000);
        let (key, other) = (session_key(&long), session_key(&format!("{long}A")));
        assert!(key.len() <= MAX_SESSION_KEY && key != other, "{key} {other}");
        assert_eq!(session_of_key(&key), None);
        assert_eq!(session_key(&"a".repeat(MAX_SESSION_KEY)).len(), MAX_SESSION_KEY);
    }
}
