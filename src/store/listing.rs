//! What sessions are listed by, and what is asked of a list.

use crate::clock::Ms;

/// What a session is listed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListedBy {
    /// When its history changed last, at most [`MAX_KEY`](super::MAX_KEY).
    pub updated_at: Ms,
    /// True if it is archived.
    pub is_archived: bool,
}

/// Which sessions to list by recency. Absent fields match all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RecencyQuery {
    pub channel: Option<String>,
    pub archived: Option<bool>,
    /// That of the page before.
    pub cursor: Option<String>,
    /// The most sessions in a page; 0 means [`PAGE`](super::PAGE).
    pub limit: usize,
}
