//! Reads a session: its head, and ranges of its records, page by page.

use super::driver::{SqlColumns, SqlDialect, SqlRow, SqlStatement};
use super::statement::SqlWriter;
use super::tables::{table_name, table_number};
use crate::error::Result;
use crate::store::{AuditIndex, MAX_KEY, Query, Record, StoredHead, Table};
use bytes::{Bytes, BytesMut};

/// How much one statement reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadPage {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

impl ReadPage {
    pub(super) const USUAL: Self = Self { records: 512, bytes: 4 * 1024 * 1024 };
    /// All that is left: one statement sees one state of the database.
    pub(super) const WHOLE: Self = Self { records: MAX_KEY, bytes: MAX_KEY };
}

/// A range that is being read. One statement sees one state; several may not, so each returns the head's revision as
/// well.
pub(super) struct RangeRead {
    query: Query,
    page: ReadPage,
    /// The revision that the first page saw; `Some(None)` is a session without a head.
    revision: Option<Option<u64>>,
    bytes: u64,
    pub(super) records: Vec<Record>,
}

/// Where a read stands after a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// There may be more.
    More,
    /// Everything is read.
    Ended,
    /// The session was written in between.
    Changed,
}

const COLUMNS: &[&str] = &["revision", "key", "last_key", "value", "tool", "status", "channel", "at", "chunk", "size"];

impl RangeRead {
    pub(super) fn new(query: Query, page: ReadPage) -> Self {
        Self { query, page, revision: None, bytes: 0, records: Vec::new() }
    }

    /// The statement of the next page.
    pub(super) fn statement(&self, dialect: SqlDialect, session: &str) -> SqlStatement {
        let Query { table, reverse, .. } = self.query;
        let (name, order) = (table_name(table), if reverse { "DESC" } else { "ASC" });
        let index = if table == Table::ToolInvocations {
            "r.tool AS tool, r.status AS status, r.channel AS channel, r.at AS at"
        } else {
            "NULL AS tool, NULL AS status, NULL AS channel, NULL AS at"
        };
        let mut out = SqlWriter::new(dialect);
        out.sql(&format!(
            "SELECT h.revision AS revision, r.key AS key, r.last_key AS last_key, r.value AS value, {index}, \
             c.value AS chunk, r.size AS size FROM (SELECT 1 AS one) AS o LEFT JOIN rethread_heads AS h ON h.session = "
        ))
        .session(session)
        .sql(&format!(
            " LEFT JOIN (SELECT p.key AS key, SUM(p.size) OVER (ORDER BY p.key {order}) - p.size AS bytes_before FROM ("
        ));
        self.write_keys(&mut out, session);
        out.sql(") AS p) AS k ON k.bytes_before < ").integer(self.bytes_left().max(1));
        out.sql(&format!(" LEFT JOIN {name} AS r ON r.key = k.key AND r.session = ")).session(session);
        out.sql(" LEFT JOIN rethread_chunks AS c ON c.key = r.key AND c.record_table = ").integer(table_number(table));
        out.sql(" AND c.session = ").session(session).sql(&format!(" ORDER BY r.key {order}, c.part"));
        out.query(COLUMNS)
    }

    /// Selects the keys and sizes of a page: of the records that begin in the range, and of segments that reach into
    /// it.
    fn write_keys(&self, out: &mut SqlWriter, session: &str) {
        let Query { table, from, to, reverse, .. } = self.query;
        let (name, order) = (table_name(table), if reverse { "DESC" } else { "ASC" });
        let to = to.min(MAX_KEY);
        let last = self.records.last().map(|record| record.key);
        let (least, most) = match last {
            None => (0, to),
            Some(key) if reverse => (0, key.saturating_sub(1)),
            Some(key) => (key.saturating_add(1), to),
        };
        // Nothing is before key 0.
        let is_over = reverse && last == Some(0);
        let limit = format!(" ORDER BY key {order} LIMIT {}", self.page.records);
        out.sql("SELECT key, size FROM (");
        out.sql(&format!("SELECT key, size FROM {name} WHERE session = ")).session(session);
        out.sql(" AND key BETWEEN ").integer(from.max(least)).sql(" AND ").integer(most);
        out.sql(if is_over { " AND 1 = 0" } else { "" }).sql(&limit).sql(") AS inside");
        if from > least && !is_over {
            out.sql(&format!(" UNION ALL SELECT key, size FROM (SELECT key, size FROM {name} WHERE session = "));
            out.session(session).sql(" AND last_key IS NOT NULL AND last_key >= ").integer(from);
            out.sql(" AND key BETWEEN ").integer(least).sql(" AND ").integer(most.min(from.saturating_sub(1)));
            out.sql(&limit).sql(") AS reaching");
        }
        out.sql(&limit);
    }

    /// The bytes that are still to be read, of what was asked for and of what a page has.
    fn bytes_left(&self) -> u64 {
        self.query.limit_bytes.saturating_sub(self.bytes).min(self.page.bytes)
    }

    /// Takes the rows of a page.
    ///
    /// # Errors
    /// `store_error` for rows that the store did not write.
    pub(super) fn take(&mut self, dialect: SqlDialect, rows: &[SqlRow]) -> Result<ReadProgress> {
        let (mut found, mut page_bytes, left) = (0_u64, 0_u64, self.bytes_left().max(1));
        let mut key = None;
        for row in rows {
            let columns = SqlColumns::new(dialect, row);
            let revision = columns.integer(0)?;
            if *self.revision.get_or_insert(revision) != revision {
                return Ok(ReadProgress::Changed);
            }
            let Some(row_key) = columns.integer(1)? else { continue };
            if key != Some(row_key) {
                if self.has_enough() {
                    return Ok(ReadProgress::Ended);
                }
                key = Some(row_key);
                found = found.saturating_add(1);
                let size = columns.integer(9)?.unwrap_or(0);
                page_bytes = page_bytes.saturating_add(size);
                self.bytes = self.bytes.saturating_add(size);
                self.records.push(record_of(&columns, self.query.table, row_key)?);
            }
            if let (Some(chunk), Some(record)) = (columns.bytes(8)?, self.records.last_mut()) {
                append_chunk(&mut record.value, chunk);
            }
        }
        let page_is_full = found >= self.page.records || page_bytes >= left;
        Ok(if page_is_full && !self.has_enough() { ReadProgress::More } else { ReadProgress::Ended })
    }

    fn has_enough(&self) -> bool {
        !self.records.is_empty() && self.bytes >= self.query.limit_bytes
    }
}

/// Appends a chunk to a value; in place, since nothing shares the value yet.
pub(super) fn append_chunk(value: &mut Bytes, chunk: &[u8]) {
    let mut grown = BytesMut::from(std::mem::take(value));
    grown.extend_from_slice(chunk);
    *value = grown.freeze();
}

/// A record without its chunks. Columns as in [`COLUMNS`], from `last_key` on.
fn record_of(columns: &SqlColumns<'_>, table: Table, key: u64) -> Result<Record> {
    let value = columns.bytes(3)?.unwrap_or_default().to_vec().into();
    Ok(Record { table, key, last_key: columns.integer(2)?, index: audit_index(columns, 4)?, value })
}

/// The index of an audit row: four columns, from `first` on.
pub(super) fn audit_index(columns: &SqlColumns<'_>, first: usize) -> Result<Option<AuditIndex>> {
    let Some(tool) = columns.text(first)? else { return Ok(None) };
    let status = columns.text(first.saturating_add(1))?.unwrap_or_default();
    let channel = columns.text(first.saturating_add(2))?;
    let at = columns.integer(first.saturating_add(3))?.unwrap_or(0);
    Ok(Some(AuditIndex { tool, status, channel, at }))
}

/// Reads a head, and whether there are records without one.
pub(super) fn head_statement(dialect: SqlDialect, session: &str) -> SqlStatement {
    let mut out = SqlWriter::new(dialect);
    out.sql(
        "SELECT h.revision AS revision, h.deleted AS deleted, h.size AS size, h.value AS value, c.value AS chunk, \
         CASE WHEN h.session IS NOT NULL THEN 0",
    );
    for table in [Table::Log, Table::ToolInvocations, Table::Runs] {
        out.sql(&format!(" WHEN EXISTS (SELECT 1 FROM {} WHERE session = ", table_name(table)));
        out.session(session).sql(") THEN 1");
    }
    out.sql(" ELSE 0 END AS headless FROM (SELECT 1 AS one) AS o LEFT JOIN rethread_heads AS h ON h.session = ")
        .session(session)
        .sql(" LEFT JOIN rethread_chunks AS c ON c.session = h.session AND c.record_table = 0 AND c.key = 0 ORDER BY c.part");
    out.query(&["revision", "deleted", "size", "value", "chunk", "headless"])
}

/// The head in the rows of [`head_statement`].
///
/// # Errors
/// `store_error` for rows that the store did not write.
pub(super) fn read_head_rows(dialect: SqlDialect, rows: &[SqlRow]) -> Result<Option<StoredHead>> {
    let mut head = HeadParts::default();
    for row in rows {
        let columns = SqlColumns::new(dialect, row);
        if columns.integer(5)? == Some(1) {
            return Ok(Some(StoredHead { revision: 0, value: Bytes::new() }));
        }
        if columns.integer(0)?.is_none() || columns.integer(1)? == Some(1) {
            return Ok(None);
        }
        head.take(&columns, [0, 2, 3, 4])?;
    }
    Ok(Some(head.head()))
}

/// A head, row by row: more than one if it is chunked.
#[derive(Debug, Default)]
pub(super) struct HeadParts {
    revision: u64,
    size: u64,
    value: Vec<u8>,
}

impl HeadParts {
    /// Takes a row, whose columns of revision, size, value and chunk are named.
    pub(super) fn take(&mut self, columns: &SqlColumns<'_>, [revision, size, value, chunk]: [usize; 4]) -> Result<()> {
        self.revision = columns.integer(revision)?.unwrap_or(0);
        self.size = columns.integer(size)?.unwrap_or(0);
        match columns.bytes(chunk)? {
            Some(chunk) => self.value.extend_from_slice(chunk),
            // What somebody else wrote there is no head, and is treated as one that is lost.
            None => self.value = columns.bytes(value).ok().flatten().unwrap_or_default().to_vec(),
        }
        Ok(())
    }

    /// The head; without bytes if a part of it is missing.
    pub(super) fn head(self) -> StoredHead {
        let is_whole = self.value.len() as u64 == self.size;
        StoredHead { revision: self.revision, value: if is_whole { self.value.into() } else { Bytes::new() } }
    }
}
