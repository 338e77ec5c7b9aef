//! Queries of the audit table: which rows match, and where the next page begins.

use crate::clock::Ms;
use crate::error::{Error, Result};

/// The fields that audit rows are queried by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditIndex {
    /// The tool's name.
    pub tool: String,
    /// The status's name.
    pub status: String,
    /// The channel.
    pub channel: Option<String>,
    /// When the invocation finished, else when it started, else when it was stored.
    pub at: Ms,
}

/// Which audit rows to read. Absent fields match all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AuditQuery {
    pub session: Option<String>,
    pub tool: Option<String>,
    pub status: Option<String>,
    pub channel: Option<String>,
    /// Inclusive.
    pub since: Option<Ms>,
    /// Inclusive.
    pub until: Option<Ms>,
    pub cursor: Option<String>,
    /// The most rows in a page; 0 means [`PAGE`](super::PAGE).
    pub limit: usize,
}

impl AuditQuery {
    /// Returns true if the query selects a row of this session with this index.
    #[must_use]
    pub fn matches(&self, session: &str, index: &AuditIndex) -> bool {
        let wanted = |condition: &Option<String>, actual: Option<&str>| {
            condition.as_deref().is_none_or(|expected| Some(expected) == actual)
        };
        wanted(&self.session, Some(session))
            && wanted(&self.tool, Some(&index.tool))
            && wanted(&self.status, Some(&index.status))
            && wanted(&self.channel, index.channel.as_deref())
            && self.since.is_none_or(|since| index.at >= since)
            && self.until.is_none_or(|until| index.at <= until)
    }
}

/// Encodes a cursor of the audit table: the last row that was returned.
pub(crate) fn audit_cursor(session: &str, key: u64) -> String {
    format!("{key}:{session}")
}

/// Decodes a cursor of [`audit_cursor`].
pub(crate) fn open_audit_cursor(cursor: &str) -> Result<(&str, u64)> {
    let parts = cursor.split_once(':').and_then(|(key, session)| Some((session, key.parse().ok()?)));
    parts.ok_or_else(|| Error::invalid("this is no cursor that a page of tool invocations gave"))
}
