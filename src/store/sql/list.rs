//! Pages over all sessions: their heads, and the audit table.

use super::driver::{SqlColumns, SqlDialect, SqlRow, SqlStatement};
use super::read::{HeadParts, append_chunk, audit_index};
use super::statement::SqlWriter;
use super::tables::table_number;
use crate::error::Result;
use crate::store::newest::AuditPosition;
use crate::store::{AuditQuery, PAGE, Page, Record, SessionRow, StoredHead, Table, audit_cursor, open_audit_cursor};
use bytes::Bytes;

/// A page of sessions that is being read.
pub(super) struct SessionList<'a> {
    pub(super) dialect: SqlDialect,
    pub(super) cursor: Option<&'a str>,
    pub(super) channel: Option<&'a str>,
    pub(super) limit: usize,
}

/// A session in a list, with the key that orders it.
pub(super) struct ListedSession {
    pub(super) key: Vec<u8>,
    pub(super) row: SessionRow,
}

impl ListedSession {
    /// A session that has records and no head, of a row with its key.
    ///
    /// # Errors
    /// `store_error` for a row that the store did not write.
    pub(super) fn without_head(dialect: SqlDialect, row: &SqlRow) -> Result<Self> {
        let key = SqlColumns::new(dialect, row).bytes(0)?.unwrap_or_default().to_vec();
        let head = StoredHead { revision: 0, value: Bytes::new() };
        let row = SessionRow { id: String::from_utf8_lossy(&key).into_owned(), head };
        Ok(Self { key, row })
    }
}

/// A page has no more rows than this: a number that every database takes as a limit.
const MAX_ROWS: usize = 1_000_000;

/// The rows of a page; 0 means the usual number.
pub(super) fn page_size(limit: usize) -> usize {
    if limit == 0 { PAGE } else { limit.min(MAX_ROWS) }
}

impl SessionList<'_> {
    /// The first page of all sessions.
    pub(super) fn all(dialect: SqlDialect) -> Self {
        Self { dialect, cursor: None, channel: None, limit: PAGE }
    }

    /// Selects heads, one more than the page has.
    pub(super) fn heads(&self) -> SqlStatement {
        let mut out = SqlWriter::new(self.dialect);
        out.sql(
            "SELECT h.session AS session, h.id AS id, h.revision AS revision, h.size AS size, h.value AS value, \
             c.value AS chunk FROM (SELECT session, id, revision, size, value FROM rethread_heads WHERE deleted = 0",
        );
        if let Some(cursor) = self.cursor {
            out.sql(" AND session > ").session(cursor);
        }
        if let Some(channel) = self.channel {
            write_name_filter(&mut out, "channel", channel);
        }
        out.sql(&format!(
            " ORDER BY session LIMIT {}) AS h LEFT JOIN rethread_chunks AS c ON c.session = h.session \
             AND c.record_table = 0 AND c.key = 0 ORDER BY h.session, c.part",
            self.limit.saturating_add(1)
        ));
        out.query(&["session", "id", "revision", "size", "value", "chunk"])
    }

    /// The sessions in the rows of [`heads`](Self::heads).
    ///
    /// # Errors
    /// `store_error` for rows that the store did not write.
    pub(super) fn read_heads(&self, rows: &[SqlRow]) -> Result<Vec<ListedSession>> {
        let mut listed = Vec::new();
        let key_of = |row: &SqlRow| SqlColumns::new(self.dialect, row).bytes(0).ok().flatten().map(<[u8]>::to_vec);
        for rows in rows.chunk_by(|one, other| key_of(one) == key_of(other)) {
            let (mut head, mut key, mut id) = (HeadParts::default(), Vec::new(), String::new());
            for row in rows {
                let columns = SqlColumns::new(self.dialect, row);
                key = columns.bytes(0)?.unwrap_or_default().to_vec();
                id = session_id(&columns)?;
                head.take(&columns, [2, 3, 4, 5])?;
            }
            listed.push(ListedSession { key, row: SessionRow { id, head: head.head() } });
        }
        Ok(listed)
    }

    /// Selects the keys of sessions that have records and no head, as far as the page goes. Steps from session to
    /// session through the primary keys, so its cost is the number of sessions, not of records.
    pub(super) fn headless(&self, heads: &[ListedSession]) -> SqlStatement {
        let up_to = heads.last().filter(|_| heads.len() > self.limit).map(|last| last.key.as_slice());
        let mut out = SqlWriter::new(self.dialect);
        let tables = ["rethread_log", "rethread_tool_invocations", "rethread_runs"];
        for (at, table) in tables.iter().enumerate() {
            out.sql(if at == 0 { "WITH RECURSIVE " } else { ", " });
            out.sql(&format!("s{at} (session) AS (SELECT (SELECT session FROM {table}"));
            if let Some(cursor) = self.cursor {
                out.sql(" WHERE session > ").session(cursor);
            }
            out.sql(&format!(
                " ORDER BY session LIMIT 1) UNION ALL SELECT (SELECT t.session FROM {table} AS t WHERE t.session > s{at}.session \
                 ORDER BY t.session LIMIT 1) FROM s{at} WHERE s{at}.session IS NOT NULL"
            ));
            if let Some(up_to) = up_to {
                out.sql(&format!(" AND s{at}.session < ")).bytes(up_to);
            }
            out.sql(")");
        }
        out.sql("SELECT f.session AS session FROM (SELECT session FROM s0 UNION SELECT session FROM s1 UNION SELECT session FROM s2) AS f");
        out.sql(" WHERE f.session IS NOT NULL AND NOT EXISTS (SELECT 1 FROM rethread_heads AS h WHERE h.session = f.session)");
        out.sql(&format!(" ORDER BY f.session LIMIT {}", self.limit.saturating_add(1)));
        out.query(&["session"])
    }

    /// The page of these heads and of the sessions in the rows of [`headless`](Self::headless).
    ///
    /// # Errors
    /// `store_error` for rows that the store did not write.
    pub(super) fn page(&self, mut listed: Vec<ListedSession>, headless: &[SqlRow]) -> Result<Page<SessionRow>> {
        // Both are in the order of their keys.
        for row in headless {
            let headless = ListedSession::without_head(self.dialect, row)?;
            let at = listed.partition_point(|one| one.key < headless.key);
            listed.insert(at, headless);
        }
        let is_last = listed.len() <= self.limit;
        listed.truncate(self.limit);
        let cursor = listed.last().filter(|_| !is_last).map(|last| last.row.id.clone());
        Ok(Page { items: listed.into_iter().map(|listed| listed.row).collect(), cursor })
    }
}

/// The id of a session: the second column if it is too long to be its own key, else the first.
fn session_id(columns: &SqlColumns<'_>) -> Result<String> {
    if let Some(long) = columns.text(1)? {
        return Ok(long);
    }
    Ok(columns.text(0)?.unwrap_or_default())
}

/// Compares a name, which is indexed by its beginning.
pub(super) fn write_name_filter(out: &mut SqlWriter, column: &str, name: &str) {
    // In SQLite the beginning of an empty name is `NULL`.
    if !name.is_empty() {
        let beginning = name.as_bytes().get(..200).unwrap_or(name.as_bytes());
        out.sql(&format!(" AND substr({column}, 1, 200) = ")).bytes(beginning);
    }
    out.sql(&format!(" AND {column} = ")).bytes(name.as_bytes());
}

/// The order of a page of audit rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AuditOrder {
    SessionAndKey,
    NewestFirst,
}

/// A page of audit rows that is being read.
pub(super) struct AuditList<'a> {
    pub(super) dialect: SqlDialect,
    pub(super) order: AuditOrder,
    pub(super) query: &'a AuditQuery,
}

impl AuditList<'_> {
    /// Selects audit rows by their index, one more than the page has.
    ///
    /// # Errors
    /// `invalid_input` for a cursor that no page gave.
    pub(super) fn statement(&self) -> Result<SqlStatement> {
        let mut out = SqlWriter::new(self.dialect);
        out.sql(
            "SELECT t.session AS session, h.id AS id, t.key AS key, t.last_key AS last_key, t.value AS value, t.tool AS tool, \
             t.status AS status, t.channel AS channel, t.at AS at, c.value AS chunk FROM \
             (SELECT session, key, last_key, value, tool, status, channel, at FROM rethread_tool_invocations WHERE tool IS NOT NULL",
        );
        self.write_filters(&mut out);
        self.write_cursor(&mut out)?;
        out.sql(&format!(
            " ORDER BY {} LIMIT {}) AS t",
            self.inner_order(),
            page_size(self.query.limit).saturating_add(1)
        ))
        .sql(" LEFT JOIN rethread_heads AS h ON h.session = t.session")
        .sql(" LEFT JOIN rethread_chunks AS c ON c.session = t.session AND c.key = t.key AND c.record_table = ")
        .integer(table_number(Table::ToolInvocations))
        .sql(match self.order {
            AuditOrder::SessionAndKey => " ORDER BY t.session, t.key, c.part",
            AuditOrder::NewestFirst => " ORDER BY t.at DESC, t.session DESC, t.key DESC, c.part",
        });
        Ok(out.query(&["session", "id", "key", "last_key", "value", "tool", "status", "channel", "at", "chunk"]))
    }

    fn write_filters(&self, out: &mut SqlWriter) {
        let query = self.query;
        if let Some(session) = &query.session {
            out.sql(" AND session = ").session(session);
        }
        for (column, name) in [("tool", &query.tool), ("status", &query.status), ("channel", &query.channel)] {
            if let Some(name) = name {
                write_name_filter(out, column, name);
            }
        }
        if let Some(since) = query.since {
            out.sql(" AND at >= ").integer(since);
        }
        if let Some(until) = query.until {
            out.sql(" AND at <= ").integer(until);
        }
    }

    /// Skips the rows of earlier pages.
    fn write_cursor(&self, out: &mut SqlWriter) -> Result<()> {
        let Some(cursor) = self.query.cursor.as_deref() else { return Ok(()) };
        match self.order {
            AuditOrder::SessionAndKey => {
                let (session, key) = open_audit_cursor(cursor)?;
                out.sql(" AND (session, key) > (").session(session).sql(", ").integer(key).sql(")");
            }
            AuditOrder::NewestFirst => {
                let AuditPosition { at, session, key } = AuditPosition::from_cursor(cursor)?;
                out.sql(" AND (at, session, key) < (").integer(at);
                out.sql(", ").session(&session).sql(", ").integer(key).sql(")");
            }
        }
        Ok(())
    }

    /// The order in which rows are found. SQLite keeps no statistics here: it would go through the whole table in this
    /// order, where the index of a filter has the wanted rows at once. A `+` keeps it from that.
    fn inner_order(&self) -> &'static str {
        let query = self.query;
        let has_other_index =
            [&query.session, &query.tool, &query.status, &query.channel].iter().any(|filter| filter.is_some());
        let is_sqlite = self.dialect == SqlDialect::Sqlite;
        match self.order {
            AuditOrder::SessionAndKey if is_sqlite && query.since.is_some() && !has_other_index => "+session, +key",
            AuditOrder::SessionAndKey => "session, key",
            AuditOrder::NewestFirst if is_sqlite && has_other_index => "+at DESC, session DESC, key DESC",
            AuditOrder::NewestFirst => "at DESC, session DESC, key DESC",
        }
    }

    /// The page in the rows of [`statement`](Self::statement).
    ///
    /// # Errors
    /// `store_error` for rows that the store did not write.
    pub(super) fn page(&self, rows: &[SqlRow]) -> Result<Page<(String, Record)>> {
        let mut items: Vec<(String, Record)> = Vec::new();
        for row in rows {
            let columns = SqlColumns::new(self.dialect, row);
            let session = session_id(&columns)?;
            let key = columns.integer(2)?.unwrap_or(0);
            let chunk = columns.bytes(9)?;
            match items.last_mut() {
                Some((of, record)) if *of == session && record.key == key => {
                    append_chunk(&mut record.value, chunk.unwrap_or_default());
                }
                _ => {
                    let value = chunk.or(columns.bytes(4)?).unwrap_or_default().to_vec().into();
                    let (last_key, index) = (columns.integer(3)?, audit_index(&columns, 5)?);
                    items.push((session, Record { table: Table::ToolInvocations, key, last_key, index, value }));
                }
            }
        }
        let limit = page_size(self.query.limit);
        let is_last = items.len() <= limit;
        items.truncate(limit);
        let cursor = items.last().filter(|_| !is_last).map(|(session, record)| match self.order {
            AuditOrder::SessionAndKey => audit_cursor(session, record.key),
            AuditOrder::NewestFirst => AuditPosition::of(session, record).cursor(),
        });
        Ok(Page { items, cursor })
    }
}
