//! The query of the audit table.

use crate::store::AuditQuery;
use crate::tool::InvocationStatus;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// The query of `invocations`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct InvocationQuery {
    pub session: Option<String>,
    pub message_id: Option<String>,
    pub tool: Option<String>,
    pub status: Option<InvocationStatusOption>,
    pub channel: Option<String>,
    pub since: Option<u64>,
    pub until: Option<u64>,
    pub payload: Option<bool>,
    pub limit: Option<u64>,
    pub cursor: Option<String>,
}

/// `status` of an invocation query.
pub struct InvocationStatusOption(pub InvocationStatus);

impl<'de> Deserialize<'de> for InvocationStatusOption {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let status = InvocationStatus::ALL.into_iter().find(|status| status.as_str() == name);
        status.map(Self).ok_or_else(|| D::Error::custom(format!("\"{name}\" is no status of an invocation")))
    }
}

/// Maximum number of items of a page.
pub const MAX_PAGE: u64 = 10_000;

/// Converts the query, of `session` if one is given.
pub fn audit_query(query: InvocationQuery, session: Option<String>) -> AuditQuery {
    let limit = query.limit.unwrap_or(100).clamp(1, MAX_PAGE);
    AuditQuery {
        session: session.or(query.session),
        status: query.status.map(|option| option.0.as_str().to_owned()),
        tool: query.tool,
        channel: query.channel,
        since: query.since,
        until: query.until,
        cursor: query.cursor,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    }
}
