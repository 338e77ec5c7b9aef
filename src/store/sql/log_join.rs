//! Log records of several sessions, joined with a list of their keys: the payloads of a page of audit rows.

use super::driver::{SqlColumns, SqlDialect, SqlLimits, SqlRow, SqlStatement};
use super::read::append_chunk;
use super::statement::SqlWriter;
use super::tables::table_number;
use crate::error::Result;
use crate::store::{LogKey, Record, Table};

/// Parameters of one key, at most: PostgreSQL needs two for a session with a long id.
const KEY_PARAMS: usize = 3;

/// Returns how many keys a statement takes, beside the parameter that names the table.
pub(super) fn keys_of_statement(limits: SqlLimits) -> usize {
    (limits.max_params.saturating_sub(1) / KEY_PARAMS).max(1)
}

/// Selects the record of each key, or the segment that may have it, once; with the number of the first key that led to
/// it. Both are found through an index. The caller checks that the segment begins at or before the key.
pub(super) fn log_join_statement(dialect: SqlDialect, keys: &[LogKey]) -> SqlStatement {
    let mut out = SqlWriter::new(dialect);
    out.sql(
        "SELECT f.number AS number, r.key AS key, r.last_key AS last_key, r.value AS value, c.value AS chunk FROM \
         (SELECT MIN(k.number) AS number, k.session AS session, k.key AS key FROM \
         (SELECT v.column1 AS number, v.column2 AS session, COALESCE(\
         (SELECT key FROM rethread_log WHERE session = v.column2 AND key = v.column3), \
         (SELECT key FROM rethread_log WHERE session = v.column2 AND last_key IS NOT NULL AND last_key >= v.column3 \
         ORDER BY last_key LIMIT 1)) AS key FROM (VALUES ",
    );
    for (number, LogKey { session, key }) in keys.iter().enumerate() {
        out.sql(&format!("{}({number}, ", if number == 0 { "" } else { ", " })).session(session);
        out.sql(", ").integer(*key).sql(")");
    }
    out.sql(
        ") AS v) AS k GROUP BY k.session, k.key) AS f JOIN rethread_log AS r ON r.session = f.session AND r.key = f.key \
         LEFT JOIN rethread_chunks AS c ON c.session = r.session AND c.key = r.key AND c.record_table = ",
    )
    .integer(table_number(Table::Log))
    .sql(" ORDER BY f.number, c.part");
    out.query(&["number", "key", "last_key", "value", "chunk"])
}

/// Returns the records in the rows of [`log_join_statement`], with their sessions, in the order of the keys.
///
/// # Errors
/// `store_error` for rows that the store did not write.
pub(super) fn joined_records(dialect: SqlDialect, keys: &[LogKey], rows: &[SqlRow]) -> Result<Vec<(String, Record)>> {
    let mut found: Vec<(String, Record)> = Vec::new();
    let number_of = |row: &SqlRow| SqlColumns::new(dialect, row).integer(0).ok().flatten();
    for parts in rows.chunk_by(|one, other| number_of(one) == number_of(other)) {
        let Some(first) = parts.first() else { continue };
        let columns = SqlColumns::new(dialect, first);
        let number = columns.integer(0)?.and_then(|number| usize::try_from(number).ok());
        let Some(LogKey { session, key }) = number.and_then(|number| keys.get(number)) else { continue };
        let value = columns.bytes(3)?.unwrap_or_default().to_vec().into();
        let (first_key, last_key) = (columns.integer(1)?.unwrap_or(0), columns.integer(2)?);
        let mut record = Record { table: Table::Log, key: first_key, last_key, index: None, value };
        if !record.spans(*key) {
            continue;
        }
        for part in parts {
            append_chunk(&mut record.value, SqlColumns::new(dialect, part).bytes(4)?.unwrap_or_default());
        }
        found.push((session.clone(), record));
    }
    Ok(found)
}
