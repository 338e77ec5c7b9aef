//! A store that another instance of wasm has. In JavaScript that is the program of SQL and key-value stores, which a
//! page with another store never loads.
//!
//! [`RemoteStore`] sends each call as bytes over a [`StoreLink`]; where the store is, [`answer`] decodes the call, calls
//! the store and encodes the reply. Errors do not cross in replies: the link returns them as they are.

mod call;
mod facts;
mod transfer;

pub use call::{SelectorLink, answer};
pub use facts::store_facts;

use super::{
    Appended, AuditQuery, Batch, Capabilities, LogKey, LogStore, Page, Query, RecencyQuery, Record, RecordSelector,
    RetainedAppend, SessionRow, StoreFuture, StoredBranch, StoredHead,
};
use crate::error::Result;
use bytes::Bytes;
use call::{ForkState, StoreCall, encode_selection};
use facts::StoreFacts;
use std::cell::RefCell;
use std::collections::BTreeMap;
use transfer::{Transfer, decode};

/// Answers a question of the other side with bytes, while a call is under way.
pub type Responder = Box<dyn Fn(Bytes) -> Vec<u8>>;

/// Carries the calls of a [`RemoteStore`] to where the store is, and the replies back.
pub trait StoreLink {
    /// Sends a call to [`answer`] and returns what it returned. `responder` answers its questions meanwhile.
    ///
    /// # Errors
    /// Those of `answer`, unchanged, and `internal` if the other instance has stopped.
    fn call(&self, call: Vec<u8>, responder: Option<Responder>) -> StoreFuture<'_, Bytes>;

    /// Sends a call whose reply nobody waits for.
    fn send(&self, call: Vec<u8>);

    /// Closes the store and the link.
    ///
    /// # Errors
    /// The store's.
    fn close(&self) -> StoreFuture<'_, ()>;
}

/// The handle of a store in another instance.
pub struct RemoteStore<Link> {
    link: Link,
    facts: StoreFacts,
    /// What the latest reply said of each session's forks. The trait asks for it synchronously, right after a read: the
    /// store itself may have met another fork by then.
    forks: RefCell<BTreeMap<String, ForkState>>,
}

impl<Link: StoreLink> RemoteStore<Link> {
    /// `facts` are those that [`store_facts`] returned.
    ///
    /// # Errors
    /// `internal` if they are not.
    pub fn new(link: Link, facts: Bytes) -> Result<Self> {
        Ok(Self { link, facts: decode(facts)?, forks: RefCell::default() })
    }

    /// The name that `status()` shows.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.facts.kind
    }

    async fn ask<T: Transfer>(&self, call: &StoreCall, responder: Option<Responder>) -> Result<T> {
        let reply = self.link.call(call.encode(), responder).await?;
        let (forks, value) = decode::<(Option<ForkState>, T)>(reply)?;
        if let (Some(forks), Some(session)) = (forks, call.session()) {
            self.forks.borrow_mut().insert(session.to_owned(), forks);
        }
        Ok(value)
    }

    fn forks(&self, session: &str) -> ForkState {
        self.forks.borrow().get(session).copied().unwrap_or_default()
    }
}

impl<Link: StoreLink> LogStore for RemoteStore<Link> {
    fn capabilities(&self) -> Capabilities {
        self.facts.capabilities
    }

    fn sends_notices(&self) -> bool {
        self.facts.sends_notices
    }

    fn lineage(&self, session: &str) -> u64 {
        self.forks(session).lineage
    }

    fn branches<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Vec<StoredBranch>> {
        Box::pin(async move { self.ask(&StoreCall::Branches(session.to_owned()), None).await })
    }

    fn retained<'a>(&'a self, session: &'a str, cursor: Option<&'a str>) -> StoreFuture<'a, Page<RetainedAppend>> {
        Box::pin(async move {
            if self.facts.capabilities.compare_and_append {
                return Ok(Page { items: Vec::new(), cursor: None });
            }
            self.ask(&StoreCall::Retained(session.to_owned(), cursor.map(str::to_owned)), None).await
        })
    }

    fn rewrite_retained<'a>(&'a self, session: &'a str, changed: Vec<RetainedAppend>) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.ask(&StoreCall::RewriteRetained(session.to_owned(), changed), None).await })
    }

    fn erase_overwritten<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.ask(&StoreCall::EraseOverwritten(session.to_owned()), None).await })
    }

    fn drop_cached_values(&self, session: &str) {
        self.forks.borrow_mut().remove(session);
        // Others keep nothing of a session.
        if !self.facts.capabilities.compare_and_append {
            self.link.send(StoreCall::DropCachedValues(session.to_owned()).encode());
        }
    }

    fn fork_count(&self, session: &str) -> u64 {
        self.forks(session).fork_count
    }

    fn needs_packing(&self, session: &str) -> bool {
        self.forks(session).needs_packing
    }

    fn pack<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.ask(&StoreCall::Pack(session.to_owned()), None).await })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.link.close()
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        Box::pin(async move { self.ask(&StoreCall::Head(session.to_owned()), None).await })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            let call = StoreCall::Append(session.to_owned(), expected, batch, operation.to_owned());
            self.ask(&call, None).await
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move { self.ask(&StoreCall::Read(session.to_owned(), query), None).await })
    }

    fn head_and_records<'a>(
        &'a self,
        session: &'a str,
        select: RecordSelector,
    ) -> StoreFuture<'a, Option<(StoredHead, Vec<Record>)>> {
        Box::pin(async move {
            let responder: Responder = Box::new(move |head| encode_selection(&select, head));
            self.ask(&StoreCall::HeadAndRecords(session.to_owned()), Some(responder)).await
        })
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        Box::pin(async move {
            let call = StoreCall::Sessions(cursor.map(str::to_owned), limit, channel.map(str::to_owned));
            self.ask(&call, None).await
        })
    }

    fn recent_sessions<'a>(&'a self, query: &'a RecencyQuery) -> Option<StoreFuture<'a, Page<SessionRow>>> {
        if !self.facts.lists_by_recency {
            return None;
        }
        Some(Box::pin(async move { self.ask(&StoreCall::RecentSessions(query.clone()), None).await }))
    }

    fn log_records<'a>(&'a self, keys: &'a [LogKey]) -> StoreFuture<'a, Vec<(String, Record)>> {
        Box::pin(async move { self.ask(&StoreCall::LogRecords(keys.to_vec()), None).await })
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        Box::pin(async move { self.ask(&StoreCall::Invocations(query.clone()), None).await })
    }

    fn newest_invocations<'a>(&'a self, query: &'a AuditQuery) -> Option<StoreFuture<'a, Page<(String, Record)>>> {
        if !self.facts.lists_newest_first {
            return None;
        }
        Some(Box::pin(async move { self.ask(&StoreCall::NewestInvocations(query.clone()), None).await }))
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let deleted = self.ask(&StoreCall::DeleteSession(session.to_owned()), None).await;
            self.forks.borrow_mut().remove(session);
            deleted
        })
    }
}
