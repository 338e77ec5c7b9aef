//! The append, as one batch of statements that needs no answer in between.
//!
//! The first statement, the claim, sets `pending` in the head's row if the session is at the expected revision, has not
//! done the operation yet, and has no record where one is put. Every other statement writes only while `pending` is
//! set, and the head is written last, with `pending` cleared. So either all of them write or none, and nobody else ever
//! sees `pending`: the database's transaction is all the locking there is. PostgreSQL compares the revision again when
//! it has waited for another writer of the row, so this holds at each of its isolation levels.

use super::driver::{SqlColumns, SqlDialect, SqlLimits, SqlRow, SqlStatement, SqlValue};
use super::key_ranges::{CONDITION_PARAMS, KeyRange, key_ranges, write_condition, write_conditions};
use super::statement::{ColumnType, SqlWriter, integer};
use super::tables::{table_name, table_number};
use crate::error::{Error, Result};
use crate::store::{Appended, Batch, MAX_KEY, REMEMBERED_OPERATIONS, Record, Table};

/// Parameters of a statement beside the ranges or rows that it repeats.
const OTHER_PARAMS: usize = 12;

/// The `record_table` value of chunks that belong to a head.
const HEAD_CHUNKS: u64 = 0;

/// An append that is being turned into statements.
pub(super) struct AppendPlan<'a> {
    pub(super) dialect: SqlDialect,
    pub(super) limits: SqlLimits,
    pub(super) session: &'a str,
    pub(super) operation: &'a str,
    pub(super) expected: u64,
    pub(super) batch: &'a Batch,
}

/// The columns of a table that rows are inserted into; `session` comes before them.
struct InsertTarget {
    table: &'static str,
    columns: &'static [(&'static str, ColumnType)],
}

const RECORD_COLUMNS: &[(&str, ColumnType)] = &[
    ("key", ColumnType::Integer),
    ("last_key", ColumnType::Integer),
    ("size", ColumnType::Integer),
    ("value", ColumnType::Bytes),
];

const AUDIT_COLUMNS: &[(&str, ColumnType)] = &[
    ("key", ColumnType::Integer),
    ("last_key", ColumnType::Integer),
    ("size", ColumnType::Integer),
    ("value", ColumnType::Bytes),
    ("tool", ColumnType::Bytes),
    ("status", ColumnType::Bytes),
    ("channel", ColumnType::Bytes),
    ("at", ColumnType::Integer),
];

const CHUNKS: InsertTarget = InsertTarget {
    table: "rethread_chunks",
    columns: &[
        ("record_table", ColumnType::Integer),
        ("key", ColumnType::Integer),
        ("part", ColumnType::Integer),
        ("value", ColumnType::Bytes),
    ],
};

impl AppendPlan<'_> {
    /// The statements. The last one has the outcome, for [`outcome`](Self::outcome).
    ///
    /// # Errors
    /// `invalid_input` for a revision that is not exact in JavaScript.
    pub(super) fn statements(&self) -> Result<Vec<SqlStatement>> {
        let revision = self.expected.saturating_add(1).max(self.batch.at_least);
        if self.batch.at_least > MAX_KEY {
            return Err(Error::invalid(format!("a revision stays at or below {MAX_KEY}; {revision} is above it")));
        }
        let mut statements = self.claim();
        let mut cleared = self.batch.remove.clone();
        cleared.extend(self.batch.replace.iter().map(|record| (record.table, record.key)));
        self.clear(&key_ranges(cleared), &mut statements);
        self.insert_records(&mut statements);
        statements.extend(self.note_operation(revision));
        statements.extend(self.batch.notice.as_deref().map(|notice| self.notify(notice)));
        statements.push(self.write_head(revision));
        if self.expected == 0 {
            // Removes the row that the claim inserted, if a later check found that a put record already exists.
            statements.push(self.statement("DELETE FROM rethread_heads WHERE session = ", " AND revision = 0"));
        }
        statements.push(self.select_outcome());
        Ok(statements)
    }

    /// Reads the outcome from what the statements returned.
    ///
    /// # Errors
    /// `store_error` if it is missing.
    pub(super) fn outcome(&self, results: &[Vec<SqlRow>]) -> Result<Appended> {
        let row = results.last().and_then(|rows| rows.first()).map_or(&[][..], Vec::as_slice);
        let columns = SqlColumns::new(self.dialect, row);
        if let Some(made) = columns.integer(0)? {
            return Ok(Appended::Revision(made));
        }
        let revision = columns.integer(1)?.unwrap_or(0);
        Ok(if revision == self.expected { Appended::Occupied } else { Appended::Conflict(revision) })
    }

    fn writer(&self) -> SqlWriter {
        SqlWriter::new(self.dialect)
    }

    /// A statement that names the session once.
    fn statement(&self, before: &str, after: &str) -> SqlStatement {
        let mut out = self.writer();
        out.sql(before).session(self.session).sql(after);
        out.end()
    }

    /// Sets `pending`, unless something is in the way. As many of the places that are to be free are looked at as there
    /// are parameters for; further statements look at the others, and clear `pending` if one is taken.
    fn claim(&self) -> Vec<SqlStatement> {
        let mut removed = self.batch.remove.clone();
        removed.sort_unstable();
        let put = self.batch.put.iter().map(|record| (record.table, record.key));
        let places = key_ranges(put.filter(|place| removed.binary_search(place).is_err()).collect());
        let mut packs = places.chunks(self.ranges_in_statement(CONDITION_PARAMS));
        let mut claim = self.writer();
        claim
            .sql("INSERT INTO rethread_heads (session, id, revision, deleted, pending, size) SELECT ")
            .session(self.session)
            .sql(", ")
            .long_id(self.session)
            .sql(", 0, 1, 1, 0 WHERE COALESCE((SELECT revision FROM rethread_heads WHERE session = ")
            .session(self.session)
            .sql("), 0) = ")
            .integer(self.expected)
            .sql(" AND NOT EXISTS (SELECT 1 FROM rethread_operations WHERE session = ")
            .session(self.session)
            .sql(" AND operation = ")
            .bytes(self.operation.as_bytes())
            .sql(")");
        if let Some(places) = packs.next() {
            claim.sql(" AND NOT (");
            self.write_occupied(&mut claim, places);
            claim.sql(")");
        }
        claim
            .sql(" ON CONFLICT (session) DO UPDATE SET pending = 1 WHERE rethread_heads.revision = ")
            .integer(self.expected);
        let mut statements = vec![claim.end()];
        for places in packs {
            let mut check = self.writer();
            check
                .sql("UPDATE rethread_heads SET pending = 0 WHERE session = ")
                .session(self.session)
                .sql(" AND pending = 1 AND (");
            self.write_occupied(&mut check, places);
            check.sql(")");
            statements.push(check.end());
        }
        statements
    }

    fn write_occupied(&self, out: &mut SqlWriter, places: &[KeyRange]) {
        for (at, range) in places.iter().enumerate() {
            let or = if at == 0 { "" } else { " OR " };
            out.sql(&format!("{or}EXISTS (SELECT 1 FROM {} WHERE session = ", table_name(range.table)));
            out.session(self.session).sql(" AND ");
            write_condition(out, range);
            out.sql(")");
        }
    }

    fn ranges_in_statement(&self, params: usize) -> usize {
        (self.limits.max_params.saturating_sub(OTHER_PARAMS) / params).max(1)
    }

    /// Writes that the session is claimed.
    fn write_guard(&self, out: &mut SqlWriter) {
        out.sql("EXISTS (SELECT 1 FROM rethread_heads WHERE session = ").session(self.session).sql(" AND pending = 1)");
    }

    /// Removes records, and the chunks of them and of the head.
    fn clear(&self, ranges: &[KeyRange], statements: &mut Vec<SqlStatement>) {
        for of_table in ranges.chunk_by(|one, other| one.table == other.table) {
            for pack in of_table.chunks(self.ranges_in_statement(2)) {
                let table = pack.first().map_or(Table::Log, |range| range.table);
                let mut delete = self.writer();
                delete.sql(&format!("DELETE FROM {} WHERE session = ", table_name(table))).session(self.session);
                delete.sql(" AND (");
                write_conditions(&mut delete, pack, false);
                delete.sql(") AND ");
                self.write_guard(&mut delete);
                statements.push(delete.end());
            }
        }
        let mut packs = ranges.chunks(self.ranges_in_statement(CONDITION_PARAMS));
        let mut is_first = true;
        loop {
            let pack = packs.next();
            if pack.is_none() && !is_first {
                return;
            }
            let mut delete = self.writer();
            delete.sql("DELETE FROM rethread_chunks WHERE session = ").session(self.session).sql(" AND (");
            let chunks_of_head = format!("record_table = {HEAD_CHUNKS}");
            delete.sql(if is_first { &chunks_of_head } else { "" });
            delete.sql(if is_first && pack.is_some() { " OR " } else { "" });
            write_conditions(&mut delete, pack.unwrap_or_default(), true);
            delete.sql(") AND ");
            self.write_guard(&mut delete);
            statements.push(delete.end());
            is_first = false;
        }
    }

    fn insert_records(&self, statements: &mut Vec<SqlStatement>) {
        let records = self.batch.written();
        let mut chunks = self.chunks(HEAD_CHUNKS, 0, &self.batch.head);
        for table in [Table::Log, Table::ToolInvocations, Table::Runs] {
            let records = records.iter().copied().filter(|record| record.table == table);
            let rows = records.clone().map(|record| self.record_row(record)).collect();
            let columns = if table == Table::ToolInvocations { AUDIT_COLUMNS } else { RECORD_COLUMNS };
            self.insert_rows(&InsertTarget { table: table_name(table), columns }, rows, statements);
            for record in records {
                chunks.append(&mut self.chunks(table_number(table), record.key, &record.value));
            }
        }
        self.insert_rows(&CHUNKS, chunks, statements);
    }

    /// The part of a value that stands in its own row: all of it, or nothing if it is chunked.
    fn inline<'v>(&self, value: &'v [u8]) -> &'v [u8] {
        if value.len() > self.limits.max_value_bytes { &[] } else { value }
    }

    fn record_row(&self, record: &Record) -> SqlRow {
        let text = |text: &str| SqlValue::Bytes(text.as_bytes().to_vec());
        let mut row = vec![
            integer(record.key),
            record.last_key.map_or(SqlValue::Null, integer),
            integer(record.value.len() as u64),
            SqlValue::Bytes(self.inline(&record.value).to_vec()),
        ];
        if record.table == Table::ToolInvocations {
            let index = record.index.as_ref();
            row.push(index.map_or(SqlValue::Null, |index| text(&index.tool)));
            row.push(index.map_or(SqlValue::Null, |index| text(&index.status)));
            row.push(index.and_then(|index| index.channel.as_deref()).map_or(SqlValue::Null, text));
            row.push(index.map_or(SqlValue::Null, |index| integer(index.at)));
        }
        row
    }

    /// The rows of a value that is too large for one.
    fn chunks(&self, table: u64, key: u64, value: &[u8]) -> Vec<SqlRow> {
        if self.inline(value).len() == value.len() {
            return Vec::new();
        }
        let parts = value.chunks(self.limits.max_value_bytes).zip(0_u64..);
        let row = |(bytes, part): (&[u8], u64)| {
            vec![integer(table), integer(key), integer(part), SqlValue::Bytes(bytes.to_vec())]
        };
        parts.map(row).collect()
    }

    /// Inserts rows in as few statements as the limits on parameters and bytes allow.
    fn insert_rows(&self, target: &InsertTarget, rows: Vec<SqlRow>, statements: &mut Vec<SqlStatement>) {
        let mut pack = Vec::new();
        let mut bytes = 0_usize;
        let most = self.ranges_in_statement(target.columns.len());
        for row in rows {
            let row_bytes = row_bytes(&row);
            let is_full = pack.len() >= most || bytes.saturating_add(row_bytes) > self.limits.max_value_bytes;
            if is_full && !pack.is_empty() {
                statements.push(self.insert(target, std::mem::take(&mut pack)));
                bytes = 0;
            }
            bytes = bytes.saturating_add(row_bytes);
            pack.push(row);
        }
        if !pack.is_empty() {
            statements.push(self.insert(target, pack));
        }
    }

    /// Returns one INSERT statement. It selects from the head's row, so it inserts nothing unless the session is
    /// claimed.
    fn insert(&self, target: &InsertTarget, rows: Vec<SqlRow>) -> SqlStatement {
        let names: Vec<_> = target.columns.iter().map(|(name, _)| *name).collect();
        let values: Vec<_> = (1..=names.len()).map(|number| format!("v.column{number}")).collect();
        let mut out = self.writer();
        out.sql(&format!(
            "INSERT INTO {} (session, {}) SELECT h.session, {} FROM rethread_heads AS h CROSS JOIN (VALUES ",
            target.table,
            names.join(", "),
            values.join(", ")
        ));
        for (at, row) in rows.into_iter().enumerate() {
            out.sql(if at == 0 { "(" } else { ", (" });
            for (column, (value, (_, of_type))) in row.into_iter().zip(target.columns).enumerate() {
                out.sql(if column == 0 { "" } else { ", " }).param(value, *of_type);
            }
            out.sql(")");
        }
        out.sql(") AS v WHERE h.session = ").session(self.session).sql(" AND h.pending = 1");
        out.end()
    }

    /// Remembers the operation, and forgets the oldest.
    fn note_operation(&self, revision: u64) -> [SqlStatement; 2] {
        let mut forget = self.writer();
        forget
            .sql("DELETE FROM rethread_operations WHERE session = ")
            .session(self.session)
            .sql(" AND revision <= (SELECT revision FROM rethread_operations WHERE session = ")
            .session(self.session)
            .sql(&format!(" ORDER BY revision DESC LIMIT 1 OFFSET {}) AND ", REMEMBERED_OPERATIONS.saturating_sub(1)));
        self.write_guard(&mut forget);
        let mut remember = self.writer();
        remember
            .sql("INSERT INTO rethread_operations (session, revision, operation) SELECT session, ")
            .integer(revision)
            .sql(", ")
            .bytes(self.operation.as_bytes())
            .sql(" FROM rethread_heads WHERE session = ")
            .session(self.session)
            // If the head was lost, an operation of this revision may already exist.
            .sql(" AND pending = 1 ON CONFLICT (session, revision) DO UPDATE SET operation = excluded.operation");
        [forget.end(), remember.end()]
    }

    /// Sends a notice to the others who have the schema open. PostgreSQL delivers it when the transaction is committed.
    fn notify(&self, notice: &str) -> SqlStatement {
        let mut out = self.writer();
        out.sql("SELECT pg_notify('rethread_' || md5(current_schema()), convert_from(")
            .bytes(notice.as_bytes())
            .sql(", 'UTF8')) FROM rethread_heads WHERE session = ")
            .session(self.session)
            .sql(" AND pending = 1");
        out.end()
    }

    fn write_head(&self, revision: u64) -> SqlStatement {
        let head = &self.batch.head;
        let mut out = self.writer();
        out.sql("UPDATE rethread_heads SET deleted = 0, pending = 0, revision = ")
            .integer(revision)
            .sql(", channel = ")
            .bytes_or_null(self.batch.channel.as_deref().map(str::as_bytes))
            .sql(", updated_at = ")
            .integer(self.batch.listed_by.updated_at)
            .sql(", archived = ")
            .integer(u64::from(self.batch.listed_by.is_archived))
            .sql(", size = ")
            .integer(head.len() as u64)
            .sql(", value = ")
            .bytes(self.inline(head))
            .sql(" WHERE session = ")
            .session(self.session)
            .sql(" AND pending = 1");
        out.end()
    }

    /// Selects the revision that the operation created, in this or an earlier attempt (NULL if none), and the head's
    /// revision.
    fn select_outcome(&self) -> SqlStatement {
        let mut out = self.writer();
        out.sql("SELECT (SELECT revision FROM rethread_operations WHERE session = ")
            .session(self.session)
            .sql(" AND operation = ")
            .bytes(self.operation.as_bytes())
            .sql(" LIMIT 1) AS made, COALESCE((SELECT revision FROM rethread_heads WHERE session = ")
            .session(self.session)
            .sql("), 0) AS revision");
        out.query(&["made", "revision"])
    }
}

fn row_bytes(row: &SqlRow) -> usize {
    let bytes = row.iter().map(|value| if let SqlValue::Bytes(bytes) = value { bytes.len() } else { 0 });
    bytes.fold(0, usize::saturating_add)
}

/// Removes a session's records and leaves a tombstone, one revision on. Records without a head are removed, too.
pub(super) fn delete_statements(dialect: SqlDialect, session: &str) -> Vec<SqlStatement> {
    let mut claim = SqlWriter::new(dialect);
    claim.sql("UPDATE rethread_heads SET pending = 1 WHERE session = ").session(session).sql(" AND deleted = 0");
    let mut statements = vec![claim.end()];
    for table in ["rethread_log", "rethread_tool_invocations", "rethread_runs", "rethread_chunks"] {
        let mut delete = SqlWriter::new(dialect);
        delete
            .sql(&format!("DELETE FROM {table} WHERE session = "))
            .session(session)
            .sql(" AND NOT EXISTS (SELECT 1 FROM rethread_heads WHERE session = ")
            .session(session)
            .sql(" AND pending = 0)");
        statements.push(delete.end());
    }
    let mut tombstone = SqlWriter::new(dialect);
    tombstone.sql(
        "UPDATE rethread_heads SET revision = revision + 1, deleted = 1, pending = 0, updated_at = 0, archived = 0, channel = NULL, size = 0, value = NULL \
         WHERE session = ",
    )
    .session(session)
    .sql(" AND pending = 1");
    statements.push(tombstone.end());
    statements
}
