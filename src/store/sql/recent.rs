//! Pages of sessions by recency.

use super::driver::{SqlColumns, SqlDialect, SqlRow, SqlStatement};
use super::list::{ListedSession, SessionList, write_name_filter};
use super::statement::SqlWriter;
use crate::clock::Ms;
use crate::error::Result;
use crate::store::{MAX_KEY, Page, RecencyQuery, SessionPosition, SessionRow};
use std::cmp::Reverse;

/// A page that is being read.
pub(super) struct RecentList<'a> {
    dialect: SqlDialect,
    query: &'a RecencyQuery,
    limit: usize,
    after: Option<SessionPosition>,
}

/// A session with its place in the order: sessions of one time are in the order of their keys.
pub(super) struct RecentSession {
    updated_at: Reverse<Ms>,
    listed: ListedSession,
}

impl<'a> RecentList<'a> {
    /// # Errors
    /// `invalid_input` for a cursor that no page gave.
    pub(super) fn new(dialect: SqlDialect, query: &'a RecencyQuery) -> Result<Self> {
        Ok(Self { dialect, query, limit: super::list::page_size(query.limit), after: query.after()? })
    }

    /// Selects heads, at least one more than the page has, if there are so many. Archived sessions and others are read
    /// apart, each with the index of their order.
    pub(super) fn heads(&self) -> SqlStatement {
        let mut out = SqlWriter::new(self.dialect);
        out.sql(
            "SELECT h.session AS session, h.id AS id, h.revision AS revision, h.size AS size, h.value AS value, \
             c.value AS chunk, h.updated_at AS updated_at FROM (",
        );
        let parts: &[u8] = match self.query.archived {
            Some(false) => &[0],
            Some(true) => &[1],
            None => &[0, 1],
        };
        for (at, archived) in parts.iter().enumerate() {
            out.sql(if at == 0 { "SELECT * FROM (" } else { " UNION ALL SELECT * FROM (" });
            out.sql(&format!(
                "SELECT session, id, revision, size, value, updated_at FROM rethread_heads \
                 WHERE deleted = 0 AND archived = {archived}"
            ));
            if let Some(SessionPosition { updated_at: Reverse(updated_at), id }) = &self.after {
                out.sql(" AND updated_at <= ").integer(*updated_at);
                out.sql(" AND (updated_at < ").integer(*updated_at).sql(" OR session > ").session(id).sql(")");
            }
            if let Some(channel) = &self.query.channel {
                write_name_filter(&mut out, "channel", channel);
            }
            let rows = self.limit.saturating_add(1);
            out.sql(&format!(" ORDER BY updated_at DESC, session LIMIT {rows}) AS part{at}"));
        }
        out.sql(
            ") AS h LEFT JOIN rethread_chunks AS c ON c.session = h.session AND c.record_table = 0 AND c.key = 0 \
             ORDER BY h.updated_at DESC, h.session, c.part",
        );
        out.query(&["session", "id", "revision", "size", "value", "chunk", "updated_at"])
    }

    /// The sessions in the rows of [`heads`](Self::heads).
    ///
    /// # Errors
    /// `store_error` for rows that the store did not write.
    pub(super) fn read_heads(&self, rows: &[SqlRow]) -> Result<Vec<RecentSession>> {
        let listed = SessionList::all(self.dialect).read_heads(rows)?;
        let key_of = |row: &SqlRow| SqlColumns::new(self.dialect, row).bytes(0).ok().flatten().map(<[u8]>::to_vec);
        let mut times = Vec::with_capacity(listed.len());
        for rows in rows.chunk_by(|one, other| key_of(one) == key_of(other)) {
            let Some(row) = rows.first() else { continue };
            let updated_at = SqlColumns::new(self.dialect, row).integer(6)?;
            times.push(Reverse(updated_at.unwrap_or(0).min(MAX_KEY)));
        }
        Ok(times.into_iter().zip(listed).map(|(updated_at, listed)| RecentSession { updated_at, listed }).collect())
    }

    /// Selects the keys of sessions that have records and no head, if the page has place for them: they are among the
    /// oldest.
    pub(super) fn headless(&self, heads: &[RecentSession]) -> Option<SqlStatement> {
        let last = self.limit.checked_sub(1).and_then(|last| heads.get(last));
        let is_full = heads.len() > self.limit && last.is_some_and(|last| last.updated_at.0 > 0);
        if is_full || !self.query.lists_unknown() {
            return None;
        }
        let after = self.after.as_ref().filter(|after| after.updated_at.0 == 0);
        let cursor = after.map(|after| after.id.as_str());
        Some(SessionList { cursor, limit: self.limit, ..SessionList::all(self.dialect) }.headless(&[]))
    }

    /// The page of these heads and of the sessions in the rows of [`headless`](Self::headless).
    ///
    /// # Errors
    /// `store_error` for rows that the store did not write.
    pub(super) fn page(&self, mut recent: Vec<RecentSession>, headless: &[SqlRow]) -> Result<Page<SessionRow>> {
        for row in headless {
            let listed = ListedSession::without_head(self.dialect, row)?;
            recent.push(RecentSession { updated_at: Reverse(0), listed });
        }
        recent.sort_by(|one, other| (one.updated_at, &one.listed.key).cmp(&(other.updated_at, &other.listed.key)));
        let is_last = recent.len() <= self.limit;
        recent.truncate(self.limit);
        let position = |last: &RecentSession| SessionPosition::new(last.updated_at.0, &last.listed.row.id).cursor();
        let cursor = recent.last().filter(|_| !is_last).map(position);
        Ok(Page { items: recent.into_iter().map(|session| session.listed.row).collect(), cursor })
    }
}
