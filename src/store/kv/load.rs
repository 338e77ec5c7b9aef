//! Reads a session: its head, and ranges of its records.

use super::directory::KeyRun;
use super::driver::{ATTEMPTS, KvDriver, KvEntry, too_busy};
use super::key::{PartOwner, head_key, part_key, record_key, record_of_key, record_prefix, session_key};
use super::value::{KvHead, KvRecord, open_value};
use crate::error::{Error, ErrorCode, Result};
use crate::store::{Query, Record, Table};
use bytes::{Bytes, BytesMut};

/// The most values that are asked for at once.
pub(super) const MOST_AT_ONCE: usize = 100;

/// The values that the first request of a limited read asks for; each further one asks for twice as many.
const FIRST_AT_ONCE: usize = 16;

/// The most keys in a page of a list.
const KEYS_IN_PAGE: usize = 1000;

/// A session as it was read.
#[derive(Debug)]
pub(super) struct LoadedSession {
    /// What stands for the session in keys.
    pub(super) key: String,
    /// The version of the head's key; none if there is no such key.
    pub(super) version: Option<String>,
    pub(super) head: KvHead,
    /// The session's head; empty if it is damaged.
    pub(super) value: Bytes,
}

impl LoadedSession {
    /// A session of which the key alone was read.
    pub(super) fn of_id(key: String, id: &str) -> Self {
        Self { key, version: None, head: KvHead::new(id), value: Bytes::new() }
    }
}

/// Reads a session. One that does not exist is a tombstone of revision 0. The directory of a damaged one is rebuilt
/// from the keys.
///
/// # Errors
/// `unsupported_version`, `busy` while others write all the time, and the driver's own.
pub(super) async fn load_session(driver: &dyn KvDriver, id: &str) -> Result<LoadedSession> {
    load_by_key(driver, session_key(id), id).await
}

/// Reads the session of a key. `id` is empty if the key does not tell it; the head has it.
///
/// # Errors
/// As [`load_session`].
pub(super) async fn load_by_key(driver: &dyn KvDriver, key: String, id: &str) -> Result<LoadedSession> {
    for _ in 0..ATTEMPTS {
        let Some(entry) = driver.get(head_key(&key)).await? else {
            let records = driver.list(&record_prefix(&key), None, 1).await?;
            let head = if records.keys.is_empty() {
                KvHead::new(id)
            } else if driver.get(head_key(&key)).await?.is_some() {
                // Another process began the session between the two requests.
                continue;
            } else {
                rebuild(driver, &key, id).await?
            };
            return Ok(LoadedSession { key, version: None, head, value: Bytes::new() });
        };
        if let Some(loaded) = open_head(driver, &key, id, entry).await? {
            return Ok(loaded);
        }
    }
    Err(too_busy(driver))
}

/// Reads a session whose head was got; none if it was written in between.
pub(super) async fn open_head(
    driver: &dyn KvDriver,
    key: &str,
    id: &str,
    entry: KvEntry,
) -> Result<Option<LoadedSession>> {
    let loaded = |head, value| LoadedSession { key: key.to_owned(), version: entry.version.clone(), head, value };
    match open_value::<KvHead>(&entry.value) {
        Ok((head, first)) => {
            if !id.is_empty() && head.id != id {
                return Err(Error::invalid(
                    "the session's id has the same hash as a long id that is stored; choose another id",
                ));
            }
            let parts = join_parts(driver, key, (PartOwner::Head, head.revision), (first, head.parts)).await?;
            Ok(parts.map(|value| loaded(head, value)))
        }
        Err(error) if error.code == ErrorCode::CorruptRecord => {
            Ok(Some(loaded(rebuild(driver, key, id).await?, Bytes::new())))
        }
        Err(error) => Err(error),
    }
}

/// Appends the further parts of a value to its first one; none if one is missing.
async fn join_parts(
    driver: &dyn KvDriver,
    session: &str,
    (owner, revision): (PartOwner, u64),
    (first, count): (Bytes, u32),
) -> Result<Option<Bytes>> {
    if count == 0 {
        return Ok(Some(first));
    }
    let mut value = BytesMut::from(first.as_ref());
    let keys: Vec<_> = (1..=count).map(|part| part_key(session, owner, revision, part)).collect();
    for keys in keys.chunks(MOST_AT_ONCE) {
        for part in driver.get_many(keys.to_vec()).await? {
            let Some(part) = part else { return Ok(None) };
            value.extend_from_slice(&part);
        }
    }
    Ok(Some(value.freeze()))
}

/// Makes the description of a session whose head is lost, from the keys of its records.
async fn rebuild(driver: &dyn KvDriver, key: &str, id: &str) -> Result<KvHead> {
    let mut head = KvHead::new(id);
    head.is_live = true;
    let prefix = record_prefix(key);
    let mut cursor = None;
    loop {
        let page = driver.list(&prefix, cursor.as_deref(), KEYS_IN_PAGE).await?;
        for keys in page.keys.chunks(MOST_AT_ONCE) {
            for (key, value) in keys.iter().zip(driver.get_many(keys.to_vec()).await?) {
                let (Some((table, number)), Some(value)) = (record_of_key(key), value) else { continue };
                // A damaged record is in the directory, so that it is reported.
                let record = open_value::<KvRecord>(&value).map(|(record, _)| record).unwrap_or_default();
                let (segment_last, parts, revision) = (record.last_key, record.parts, record.revision);
                let revision = if parts > 0 { revision } else { 0 };
                head.directory_mut(table).insert(KeyRun { segment_last, parts, revision, ..KeyRun::single(number) });
            }
        }
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(head);
        }
    }
}

/// Reads the records of a range as of the loaded head; none if it was written in between. `is_last` insists: what is
/// missing then was removed by others than us, and costs that record alone.
pub(super) async fn read_range(
    driver: &dyn KvDriver,
    loaded: &LoadedSession,
    query: Query,
    is_last: bool,
) -> Result<Option<Vec<Record>>> {
    let mut runs = loaded.head.directory(query.table).overlapping(query.from, query.to);
    let mut at_once = match usize::try_from(query.expected_records) {
        _ if query.limit_bytes == u64::MAX => MOST_AT_ONCE,
        Ok(0) | Err(_) => FIRST_AT_ONCE,
        Ok(expected) => expected.min(MOST_AT_ONCE),
    };
    let (mut records, mut bytes) = (Vec::new(), 0_u64);
    loop {
        let mut wanted = Vec::new();
        while wanted.len() < at_once {
            let Some(run) = (if query.reverse { runs.next_back() } else { runs.next() }) else { break };
            wanted.push(run.first);
        }
        if wanted.is_empty() {
            return Ok(Some(records));
        }
        let RecordsRead { found, changed } = get_records(driver, loaded, query.table, &wanted).await?;
        if changed && !is_last {
            return Ok(None);
        }
        for record in found {
            bytes = bytes.saturating_add(record.value.len() as u64);
            records.push(record);
            if bytes >= query.limit_bytes {
                return Ok(Some(records));
            }
        }
        at_once = at_once.saturating_mul(2).min(MOST_AT_ONCE);
    }
}

/// Records that were got together.
pub(super) struct RecordsRead {
    pub(super) found: Vec<Record>,
    /// One is missing, or was written after the head that was loaded.
    pub(super) changed: bool,
}

/// Gets records by their keys.
pub(super) async fn get_records(
    driver: &dyn KvDriver,
    loaded: &LoadedSession,
    table: Table,
    wanted: &[u64],
) -> Result<RecordsRead> {
    let keys = wanted.iter().map(|key| record_key(&loaded.key, table, *key)).collect();
    let mut read = RecordsRead { found: Vec::new(), changed: false };
    for (key, value) in wanted.iter().zip(driver.get_many(keys).await?) {
        let Some(value) = value else {
            read.changed = true;
            continue;
        };
        match open_value::<KvRecord>(&value) {
            Ok((record, first)) => {
                read.changed |= loaded.head.revision > 0 && record.revision > loaded.head.revision;
                let owner = (PartOwner::Record(table, *key), record.revision);
                match join_parts(driver, &loaded.key, owner, (first, record.parts)).await? {
                    Some(value) => read.found.push(record.record(table, *key, value)),
                    None => read.changed = true,
                }
            }
            // The reader of the record reports it.
            Err(error) if error.code == ErrorCode::CorruptRecord => {
                read.found.push(KvRecord::default().record(table, *key, value));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
