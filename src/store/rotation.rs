//! Wraps the key of a session anew after the application's key was replaced (R80).

use super::record::{RecordKind, open_record};
use super::{Appended, Batch, LogStore, MAX_KEY, Query, Record, Table};
use crate::branch_path::DIRECTORY;
use crate::error::{Error, ErrorCode, Result};
use crate::session_head::SessionHead;

/// Conflicts after which a session counts as failed.
const MAX_CONFLICTS: u32 = 20;

/// Writes the head of a session again, and its newest log record, if their key was wrapped by a replaced key of the
/// application. Their content stays as it is; the copy in the record serves if the head gets damaged. Returns true if
/// it has written. `operation` is the unique name of the write.
///
/// # Errors
/// `busy` if others write all the time; `wrong_key`; an error for a damaged head; the store's own.
pub async fn rotate_key(store: &dyn LogStore, id: &str, operation: &str) -> Result<bool> {
    for attempt in 0..MAX_CONFLICTS {
        let Some(stored) = store.head(id).await? else { return Ok(false) };
        let is_replaced = store.has_replaced_key(id) == Some(true);
        let head: SessionHead = open_record(RecordKind::Head, &stored.value)?;
        if !is_replaced {
            return Ok(false);
        }
        let replace = newest_record(store, id).await?;
        let mut batch = Batch { head: stored.value, replace, ..Batch::default() };
        batch.describe(&head);
        match store.append(id, stored.revision, batch, &format!("{operation}.{attempt}")).await? {
            Appended::Revision(_) => return Ok(true),
            Appended::Conflict(_) | Appended::Occupied => {}
        }
    }
    Err(Error::new(ErrorCode::Busy, "other writers keep changing the session; try again in a moment"))
}

/// Returns the newest record of the log, or of the journals of a session without history, if it can be read.
async fn newest_record(store: &dyn LogStore, id: &str) -> Result<Vec<Record>> {
    for (table, to) in [(Table::Log, DIRECTORY - 1), (Table::Runs, MAX_KEY)] {
        let newest = Query { to, reverse: true, limit_bytes: 1, expected_records: 1, ..Query::all(table) };
        let mut records = store.read(id, newest).await?;
        records.truncate(1);
        records.retain(|record| !record.value.is_empty());
        if !records.is_empty() {
            return Ok(records);
        }
    }
    Ok(Vec::new())
}
