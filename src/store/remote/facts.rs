//! What a store says of itself, once, as it is opened.

use super::transfer::{Transfer, transfer_fields};
use crate::store::{AuditQuery, Capabilities, LogStore, RecencyQuery};

pub(super) struct StoreFacts {
    pub(super) kind: String,
    pub(super) capabilities: Capabilities,
    pub(super) sends_notices: bool,
    /// The store has [`LogStore::newest_invocations`].
    pub(super) lists_newest_first: bool,
    /// The store has [`LogStore::recent_sessions`].
    pub(super) lists_by_recency: bool,
}

transfer_fields!(StoreFacts { kind, capabilities, sends_notices, lists_newest_first, lists_by_recency });

/// Describes a store, for [`RemoteStore::new`](super::RemoteStore::new). `kind` is the name that `status()` shows.
#[must_use]
pub fn store_facts(store: &dyn LogStore, kind: &str) -> Vec<u8> {
    let facts = StoreFacts {
        kind: kind.to_owned(),
        capabilities: store.capabilities(),
        sends_notices: store.sends_notices(),
        // The queries do not run: nothing polls them.
        lists_newest_first: store.newest_invocations(&AuditQuery::default()).is_some(),
        lists_by_recency: store.recent_sessions(&RecencyQuery::default()).is_some(),
    };
    facts.encode()
}
