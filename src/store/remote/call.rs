//! The calls of a store as values, and what answers them.

use super::transfer::{Transfer, decode, transfer_fields, transfer_variants};
use crate::error::{Error, ErrorCode, Result};
use crate::store::{
    AuditQuery, Batch, LogKey, LogStore, Query, RecencyQuery, Record, RecordSelector, RetainedAppend, StoredHead,
};
use bytes::Bytes;
use std::cell::RefCell;
use std::rc::Rc;

/// A call of a method of [`LogStore`].
pub(super) enum StoreCall {
    Head(String),
    Append(String, u64, Batch, String),
    Read(String, Query),
    HeadAndRecords(String),
    Sessions(Option<String>, usize, Option<String>),
    LogRecords(Vec<LogKey>),
    Invocations(AuditQuery),
    NewestInvocations(AuditQuery),
    DeleteSession(String),
    Branches(String),
    Pack(String),
    DropCachedValues(String),
    RecentSessions(RecencyQuery),
    Retained(String, Option<String>),
    RewriteRetained(String, Vec<RetainedAppend>),
    EraseOverwritten(String),
}

transfer_variants!(StoreCall {
    0 => Head(session),
    1 => Append(session, expected, batch, operation),
    2 => Read(session, query),
    3 => HeadAndRecords(session),
    4 => Sessions(cursor, limit, channel),
    5 => LogRecords(keys),
    6 => Invocations(query),
    7 => NewestInvocations(query),
    8 => DeleteSession(session),
    9 => Branches(session),
    10 => Pack(session),
    11 => DropCachedValues(session),
    12 => RecentSessions(query),
    13 => Retained(session, cursor),
    14 => RewriteRetained(session, changed),
    15 => EraseOverwritten(session),
});

impl StoreCall {
    /// The session that the call is about, if it is one.
    pub(super) fn session(&self) -> Option<&str> {
        match self {
            Self::Head(session)
            | Self::Append(session, ..)
            | Self::Read(session, _)
            | Self::HeadAndRecords(session)
            | Self::DeleteSession(session)
            | Self::Branches(session)
            | Self::Pack(session)
            | Self::DropCachedValues(session)
            | Self::Retained(session, _)
            | Self::RewriteRetained(session, ..)
            | Self::EraseOverwritten(session) => Some(session),
            Self::Sessions(..)
            | Self::RecentSessions(_)
            | Self::LogRecords(_)
            | Self::Invocations(_)
            | Self::NewestInvocations(_) => None,
        }
    }
}

/// What a store without compare-and-append knows of the forks of a session. Replies contain it.
#[derive(Clone, Copy, Default)]
pub(super) struct ForkState {
    pub(super) lineage: u64,
    pub(super) fork_count: u64,
    pub(super) needs_packing: bool,
}

transfer_fields!(ForkState { lineage, fork_count, needs_packing });

impl ForkState {
    fn of(store: &dyn LogStore, session: Option<&str>) -> Option<Self> {
        let session = session.filter(|_| !store.capabilities().compare_and_append)?;
        Some(Self {
            lineage: store.lineage(session),
            fork_count: store.fork_count(session),
            needs_packing: store.needs_packing(session),
        })
    }
}

/// Asks the caller of `head_and_records` for the query that it makes of an encoded head.
pub type SelectorLink = Box<dyn Fn(Vec<u8>) -> Result<Bytes>>;

/// The answer of the caller to a [`SelectorLink`].
pub(super) fn encode_selection(select: &RecordSelector, head: Bytes) -> Vec<u8> {
    // A head that does not decode was not encoded here: then the answer is one that does not decode either.
    decode::<StoredHead>(head).map_or_else(|_| Vec::new(), |head| select(&head).encode())
}

/// Makes the selector of a link. The first error is kept in `failure`.
fn remote_selector(link: SelectorLink, failure: Rc<RefCell<Option<Error>>>) -> RecordSelector {
    Box::new(move |head| {
        let query = link(head.encode()).and_then(decode::<Option<Query>>);
        query.unwrap_or_else(|error| {
            failure.borrow_mut().get_or_insert(error);
            None
        })
    })
}

/// Calls the store and returns the encoded reply.
///
/// # Errors
/// The store's, and `internal` for bytes that are no call.
pub async fn answer(store: &dyn LogStore, call: Bytes, select: Option<SelectorLink>) -> Result<Vec<u8>> {
    let call: StoreCall = decode(call)?;
    let session = call.session().map(str::to_owned);
    let reply = Reply { store, session: session.as_deref() };
    Ok(match call {
        StoreCall::Head(session) => reply.of(&store.head(&session).await?),
        StoreCall::Append(session, expected, batch, operation) => {
            reply.of(&store.append(&session, expected, batch, &operation).await?)
        }
        StoreCall::Read(session, query) => reply.of(&store.read(&session, query).await?),
        StoreCall::HeadAndRecords(session) => reply.of(&head_and_records(store, &session, select).await?),
        StoreCall::Sessions(cursor, limit, channel) => {
            reply.of(&store.sessions(cursor.as_deref(), limit, channel.as_deref()).await?)
        }
        StoreCall::RecentSessions(query) => match store.recent_sessions(&query) {
            Some(page) => reply.of(&page.await?),
            None => return Err(Error::new(ErrorCode::Internal, "the store does not list sessions by recency")),
        },
        StoreCall::LogRecords(keys) => reply.of(&store.log_records(&keys).await?),
        StoreCall::Invocations(query) => reply.of(&store.invocations(&query).await?),
        StoreCall::NewestInvocations(query) => match store.newest_invocations(&query) {
            Some(page) => reply.of(&page.await?),
            None => return Err(Error::new(ErrorCode::Internal, "the store does not list the newest rows first")),
        },
        StoreCall::DeleteSession(session) => reply.of(&store.delete_session(&session).await?),
        StoreCall::Branches(session) => reply.of(&store.branches(&session).await?),
        StoreCall::Pack(session) => reply.of(&store.pack(&session).await?),
        StoreCall::Retained(session, cursor) => reply.of(&store.retained(&session, cursor.as_deref()).await?),
        StoreCall::RewriteRetained(session, changed) => reply.of(&store.rewrite_retained(&session, changed).await?),
        StoreCall::EraseOverwritten(session) => reply.of(&store.erase_overwritten(&session).await?),
        StoreCall::DropCachedValues(session) => {
            store.drop_cached_values(&session);
            reply.of(&())
        }
    })
}

/// The reply to a call, which may be about a session.
struct Reply<'a> {
    store: &'a dyn LogStore,
    session: Option<&'a str>,
}

impl Reply<'_> {
    /// Encodes what the store has just returned, with the state of the session's forks.
    fn of<T: Transfer>(&self, value: &T) -> Vec<u8> {
        let mut reply = ForkState::of(self.store, self.session).encode();
        value.write(&mut reply);
        reply
    }
}

async fn head_and_records(
    store: &dyn LogStore,
    session: &str,
    select: Option<SelectorLink>,
) -> Result<Option<(StoredHead, Vec<Record>)>> {
    let link = select.ok_or_else(|| Error::new(ErrorCode::Internal, "a read with the head has no selector"))?;
    let failure = Rc::new(RefCell::new(None));
    let read = store.head_and_records(session, remote_selector(link, failure.clone())).await?;
    // Nothing was read then, and the caller must not take that for an empty log.
    match failure.take() {
        Some(error) => Err(error),
        None => Ok(read),
    }
}
