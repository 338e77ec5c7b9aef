//! Key-value services without atomic commits: every append is a key of its own, written once, with the writer's name in
//! it.
//!
//! Nobody can exclude a second writer there, and lists and reads may be stale. So no two writers write one key, nothing
//! is overwritten, and what was read once is never forgotten. Two appends after the same one are a fork: both sides are
//! kept, every reader who has seen both takes the same one as the session's history, and [`LogStore::branches`] returns
//! the other. Many appends are read from [packs](super::pack).

use super::append_tree::{AppendTree, OtherSide};
use super::driver::KvDriver;
use super::key::{head_key, session_key};
use super::list::{AuditPage, SessionCursor, SessionPage, SessionWalk, decode_audit_cursor};
use super::load::MOST_AT_ONCE;
use super::pack::{manifest_key, pack_prefix};
use super::rate_limit::RetryingDriver;
use super::schema::prepare;
use super::stored_append::{AppendId, StoredAppend, append_prefix};
use super::value::{KvHead, seal_value};
use crate::error::{Error, ErrorCode, Result};
use crate::store::memory::StoredSession;
use crate::store::{
    Appended, AuditQuery, Batch, Capabilities, LogStore, MAX_KEY, MAX_RECORD_BYTES, Page, Query, Record,
    RecordSelector, RetainedAppend, SessionRow, StoreFuture, StoredBranch, StoredHead, Table,
};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Room for the description of an append beside its largest record, in bytes.
const DESCRIPTION_BYTES: u64 = 64 * 1024;

/// The most keys in a page of a list.
pub(super) const KEYS_IN_PAGE: usize = 1000;

/// The digits of a revision that one list of the newest appends leaves open.
const OPEN_DIGITS: usize = 2;

/// A store over a key-value service without atomic commits.
pub struct WriteOnceStore {
    pub(super) driver: RetryingDriver,
    /// Unique among all writers.
    writer: String,
    pub(super) sessions: RefCell<BTreeMap<String, Box<AppendTree>>>,
    /// The sessions that are being written to, each with the writes that wait for it.
    writing: RefCell<BTreeMap<String, Vec<Waker>>>,
    /// Of each session the last append that may be written although the service returned an error, and its operation.
    unanswered: RefCell<BTreeMap<String, Box<(AppendId, String)>>>,
    closed: Cell<bool>,
}

/// A write to a session. Until it is dropped there is no other one by this process: both would have the same key.
struct SessionWrite<'a> {
    store: &'a WriteOnceStore,
    session: &'a str,
}

impl Drop for SessionWrite<'_> {
    fn drop(&mut self) {
        let waiting = self.store.writing.borrow_mut().remove(self.session);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

impl WriteOnceStore {
    /// Opens the store. `writer` is random: letters and digits that no other process has.
    ///
    /// # Errors `unsupported_version` if a newer version wrote the keys, `config_invalid` if somebody else did or the
    /// driver's limits are too narrow, and the driver's own. Nothing is written then.
    pub async fn open(driver: Rc<dyn KvDriver>, writer: String) -> Result<Self> {
        let driver = RetryingDriver::new(driver);
        prepare(&driver).await?;
        let (sessions, writing, unanswered) = (RefCell::default(), RefCell::default(), RefCell::default());
        Ok(Self { driver, writer, sessions, writing, unanswered, closed: Cell::new(false) })
    }

    /// The bytes of a session's values that are in memory.
    #[cfg(any(test, feature = "conformance"))]
    pub fn held_bytes(&self, session: &str) -> usize {
        self.sessions.borrow().get(session).map_or(0, |tree| tree.held_bytes())
    }

    fn check_open(&self) -> Result<()> {
        if self.closed.get() {
            let message = format!("the {} store was closed; `open` again", self.driver.name());
            return Err(Error::new(ErrorCode::Closed, message));
        }
        Ok(())
    }

    /// Reads the appends of a session that were not read yet.
    pub(super) async fn refresh(&self, session: &str) -> Result<()> {
        self.check_open()?;
        self.read_listed(session, &append_prefix(session)).await
    }

    /// Reads the newest appends of a session that was read before, else all.
    async fn refresh_newest(&self, session: &str) -> Result<()> {
        let tip = self.sessions.borrow().get(session).and_then(|tree| tree.tip().cloned());
        let Some(tip) = tip else { return self.refresh(session).await };
        self.check_open()?;
        let mut revision = tip.revision;
        loop {
            // The append that may follow the tip, in this range of revisions or the next one.
            let digits = format!("{revision:014x}");
            let prefix =
                format!("{}{}", append_prefix(session), digits.get(..digits.len() - OPEN_DIGITS).unwrap_or_default());
            self.read_listed(session, &prefix).await?;
            let block = revision >> (4 * OPEN_DIGITS);
            let next = self.with_tree(session, |tree| tree.tip().map_or(0, |tip| tip.revision)).saturating_add(1);
            if next >> (4 * OPEN_DIGITS) <= block {
                return Ok(());
            }
            revision = next;
        }
    }

    pub(super) fn with_tree<T>(&self, session: &str, read: impl FnOnce(&mut AppendTree) -> T) -> T {
        read(self.sessions.borrow_mut().entry(session.to_owned()).or_default())
    }

    /// Lists keys.
    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let (mut keys, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.driver.list(prefix, cursor.as_deref(), KEYS_IN_PAGE).await?;
            keys.extend(page.keys);
            cursor = page.cursor;
            if cursor.is_none() {
                return Ok(keys);
            }
        }
    }

    async fn read_listed(&self, session: &str, prefix: &str) -> Result<()> {
        let listed: Vec<_> = self.list(prefix).await?.iter().filter_map(|key| AppendId::of_key(key)).collect();
        let mut wanted: Vec<_> = self.with_tree(session, |tree| {
            let floor = tree.floor();
            let new = listed.into_iter().filter(|id| id.revision >= floor && !tree.contains(id));
            // Parents that an earlier view did not have.
            new.chain(tree.missing_parents()).collect()
        });
        // A list may be stale: whatever an append names was written.
        while !wanted.is_empty() {
            let appends = self.get_appends(session, wanted).await?;
            wanted = self.with_tree(session, |tree| {
                appends.into_iter().for_each(|(id, append)| tree.add(id, append));
                tree.missing_parents()
            });
        }
        self.settle(session).await
    }

    /// Moves the session to its default side. Appends of another side than before are read again.
    async fn settle(&self, session: &str) -> Result<()> {
        let is_whole = self.with_tree(session, |tree| tree.missing_parents().is_empty());
        if !is_whole {
            return Ok(());
        }
        let unread = self.with_tree(session, |tree| tree.unread());
        if !unread.is_empty() {
            let appends = self.get_appends(session, unread).await?;
            self.with_tree(session, |tree| appends.into_iter().for_each(|(id, append)| tree.add_content(id, append)));
        }
        self.with_tree(session, |tree| {
            if tree.unread().is_empty() {
                tree.settle()
            }
        });
        Ok(())
    }

    /// Removes what is older than the newest deletion: appends, packs, the manifest.
    async fn remove_deleted(&self, session: &str) -> Result<()> {
        let floor = self.with_tree(session, |tree| tree.floor());
        let is_old = |key: &String| AppendId::of_key(key).is_some_and(|id| id.revision < floor);
        let mut appends = BTreeSet::new();
        appends.extend(self.list(&append_prefix(session)).await?.into_iter().filter(is_old));
        // A list may be stale.
        self.with_tree(session, |tree| appends.extend(tree.ids().map(|id| id.key(session)).filter(is_old)));
        let mut old: Vec<_> = appends.into_iter().collect();
        old.extend(self.list(&pack_prefix(session)).await?);
        old.push(manifest_key(session));
        for key in old {
            self.driver.delete(key).await?;
        }
        Ok(())
    }

    /// Reads another side of a fork.
    async fn read_branch(&self, session: &str, side: OtherSide) -> Result<Option<StoredBranch>> {
        let Some(tip) = side.appends.last() else { return Ok(None) };
        let id = tip.name();
        let mut own = StoredSession::default();
        for (id, append) in self.get_appends(session, side.appends.clone()).await? {
            append.apply(&id, &mut own);
        }
        let mut fork_head = None;
        for id in side.shared {
            let found = self.get_appends(session, vec![id]).await?.into_iter().next();
            if let Some((_, append)) = found.filter(|(_, append)| !append.is_damaged) {
                fork_head = Some(append.batch.head).filter(|_| !append.is_deletion);
                break;
            }
        }
        let head = own.head().map(|head| head.value).unwrap_or_default();
        Ok(Some(StoredBranch { id, head, fork_head, log: own.read(Query::all(Table::Log)) }))
    }

    /// Waits for the writes to the session that this process has begun.
    async fn begin_write<'a>(&'a self, session: &'a str) -> SessionWrite<'a> {
        poll_fn(|context| {
            let mut writing = self.writing.borrow_mut();
            if let Some(waiting) = writing.get_mut(session) {
                waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            writing.insert(session.to_owned(), Vec::new());
            Poll::Ready(())
        })
        .await;
        SessionWrite { store: self, session }
    }

    /// Returns the writer's name for an append. An unanswered one of another operation may have the revision, unseen by
    /// a stale list: the new one gets another name, which comes first in order, and overwrites nothing.
    fn writer_of(&self, session: &str, revision: u64, operation: &str) -> String {
        match self.unanswered.borrow().get(session).map(|unanswered| &**unanswered) {
            Some((id, of)) if id.revision == revision && of == operation => id.writer.clone(),
            Some((id, _)) if id.revision == revision => format!("-{}", id.writer),
            _ => self.writer.clone(),
        }
    }

    /// Writes an append after the tip.
    async fn write(&self, session: &str, append: StoredAppend, revision: u64) -> Result<()> {
        let id = AppendId { revision, writer: self.writer_of(session, revision, &append.operation) };
        let value = append.seal(session, self.driver.limits().max_value_bytes)?;
        if append.parent.is_none() {
            // By this key the session is listed. It always has the same value.
            let (marker, _) = seal_value(&mut KvHead::new(session), &Bytes::new(), usize::MAX)?;
            self.driver.put(head_key(&session_key(session)), marker).await?;
        }
        if let Err(error) = self.driver.put(id.key(session), value.clone()).await {
            self.unanswered.borrow_mut().insert(session.to_owned(), Box::new((id, append.operation)));
            return Err(error);
        }
        self.unanswered.borrow_mut().remove(session);
        self.with_tree(session, |tree| {
            tree.packed.add_unpacked(id.clone(), value);
            tree.add(id, append);
        });
        // The append is written: an error would make the caller repeat it under another name. The next read settles
        // again.
        if self.settle(session).await.is_ok() {
            self.with_tree(session, AppendTree::drop_values_of_tip);
        }
        Ok(())
    }

    /// Reads records; log records whose values are not in memory, from the service.
    async fn read_records(&self, session: &str, query: Query) -> Result<Vec<Record>> {
        let (mut records, unread) = self.with_tree(session, |tree| tree.read(query));
        if unread.is_empty() {
            return Ok(records);
        }
        let mut values = BTreeMap::new();
        for (_, append) in self.get_appends(session, unread).await? {
            let written = append.batch.put.into_iter().chain(append.batch.replace);
            values.extend(
                written.filter(|record| record.table == Table::Log).map(|record| (record.key, Box::new(record.value))),
            );
        }
        for record in &mut records {
            if let Some(value) = values.remove(&record.key).filter(|_| record.value.is_empty()) {
                record.value = *value;
            }
        }
        Ok(records)
    }

    fn head_of(&self, session: &str) -> Option<StoredHead> {
        self.with_tree(session, |tree| {
            let head = tree.folded().head()?;
            Some(StoredHead { revision: tree.revision(), value: head.value })
        })
    }

    /// Reads the next session of a list, and returns its id, channel and head; the head is none of a deleted one.
    async fn read_next(&self, walk: &mut SessionWalk<'_>) -> Result<Option<(String, Option<StoredHead>)>> {
        let Some(listed) = walk.next().await? else { return Ok(None) };
        let is_known = self.with_tree(&listed.head.id, |tree| tree.tip().is_some());
        self.refresh_newest(&listed.head.id).await?;
        if !is_known {
            // A list needs no log, and goes over all sessions.
            self.drop_cached_values(&listed.head.id);
        }
        let head = self.head_of(&listed.head.id);
        Ok(Some((listed.head.id, head)))
    }

    /// Adds a session's audit rows to a page; returns the key of the first that has no place.
    fn add_rows(&self, page: &mut AuditPage<'_>, session: &str, from: u64) -> Option<u64> {
        let query = Query { from, ..Query::all(Table::ToolInvocations) };
        let rows = self.with_tree(session, |tree| tree.folded().read(query));
        rows.into_iter().filter(|row| row.key >= from).find_map(|row| page.add(session, row))
    }
}

impl LogStore for WriteOnceStore {
    fn capabilities(&self) -> Capabilities {
        let limits = self.driver.limits();
        let largest = (limits.max_value_bytes as u64).saturating_sub(DESCRIPTION_BYTES).max(1);
        Capabilities {
            compare_and_append: false,
            atomic_batch: true,
            read_your_writes: limits.read_your_writes,
            max_value_bytes: largest.min(MAX_RECORD_BYTES as u64),
            durable: true,
        }
    }

    fn lineage(&self, session: &str) -> u64 {
        self.sessions.borrow().get(session).map_or(0, |tree| tree.lineage)
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.sessions.take();
            if self.closed.replace(true) { Ok(()) } else { self.driver.close().await }
        })
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        Box::pin(async move {
            self.refresh_newest(session).await?;
            Ok(self.head_of(session))
        })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            batch.check(operation, self.capabilities().max_value_bytes)?;
            let _write = self.begin_write(session).await;
            self.refresh_newest(session).await?;
            let (offset, parent, refused) = self.with_tree(session, |tree| {
                let (stored, offset) = (tree.folded(), tree.offset);
                let outcome = stored.operations().outcome(tree.revision(), expected, operation);
                let occupied = || stored.is_occupied(&batch).then_some(Appended::Occupied);
                (offset, tree.tip().cloned(), outcome.or_else(occupied))
            });
            match refused {
                Some(Appended::Revision(made)) => return Ok(Appended::Revision(made.saturating_add(offset))),
                Some(refused) => return Ok(refused),
                None => {}
            }
            let at_least = batch.at_least.saturating_sub(offset);
            let revision = expected.saturating_sub(offset).saturating_add(1).max(at_least);
            if revision > MAX_KEY {
                return Err(Error::invalid(format!("a revision stays at or below {MAX_KEY}; {revision} is above it")));
            }
            let batch = Batch { at_least: revision, ..batch };
            let append = StoredAppend { parent, operation: operation.to_owned(), batch, ..StoredAppend::default() };
            self.write(session, append, revision).await?;
            self.pack_if_due(session).await;
            Ok(Appended::Revision(revision.saturating_add(offset)))
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            self.refresh_newest(session).await?;
            self.read_records(session, query).await
        })
    }

    fn head_and_records<'a>(
        &'a self,
        session: &'a str,
        select: RecordSelector,
    ) -> StoreFuture<'a, Option<(StoredHead, Vec<Record>)>> {
        Box::pin(async move {
            self.refresh_newest(session).await?;
            let Some(head) = self.head_of(session) else { return Ok(None) };
            let records = match select(&head) {
                Some(query) => self.read_records(session, query).await?,
                None => Vec::new(),
            };
            Ok(Some((head, records)))
        })
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        Box::pin(async move {
            self.check_open()?;
            let mut page = SessionPage::new(limit);
            let mut walk = SessionWalk::of_ids(&self.driver, SessionCursor::decode(cursor)?, page.limit);
            while let Some((id, head)) = self.read_next(&mut walk).await? {
                let of = self.with_tree(&id, |tree| tree.folded().channel().map(str::to_owned));
                let Some(head) = head.filter(|_| channel.is_none() || of.as_deref() == channel) else { continue };
                if !page.add(SessionRow { id, head }, &walk) {
                    break;
                }
            }
            Ok(page.end())
        })
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        Box::pin(async move {
            self.check_open()?;
            let (mut from, at) = decode_audit_cursor(query)?;
            let mut page = AuditPage::new(query);
            if let Some(id) = &query.session {
                self.refresh_newest(id).await?;
                let rest = self.add_rows(&mut page, id, from);
                return Ok(page.end(rest, &at));
            }
            let mut walk = SessionWalk::of_ids(&self.driver, at, MOST_AT_ONCE);
            loop {
                let before = walk.position();
                let Some((id, _)) = self.read_next(&mut walk).await? else { return Ok(page.end(None, &before)) };
                let before = walk.position_before(before);
                if let rest @ Some(_) = self.add_rows(&mut page, &id, from) {
                    return Ok(page.end(rest, &before));
                }
                from = 0;
            }
        })
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let _write = self.begin_write(session).await;
            self.refresh(session).await?;
            let (tip, is_live) = self.with_tree(session, |tree| (tree.tip().cloned(), tree.folded().head().is_some()));
            let Some(tip) = tip else { return Ok(()) };
            if is_live {
                let revision = tip.revision.saturating_add(1);
                let deletion = StoredAppend { parent: Some(tip), is_deletion: true, ..StoredAppend::default() };
                self.write(session, deletion, revision).await?;
            }
            // The deletion counts from here on; what cannot be removed now is removed by the next one.
            self.remove_deleted(session).await?;
            self.with_tree(session, AppendTree::drop_deleted);
            Ok(())
        })
    }

    fn branches<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Vec<StoredBranch>> {
        Box::pin(async move {
            self.refresh(session).await?;
            let mut branches = Vec::new();
            for side in self.with_tree(session, |tree| tree.other_sides()) {
                branches.extend(self.read_branch(session, side).await?);
            }
            Ok(branches)
        })
    }

    fn retained<'a>(&'a self, session: &'a str, cursor: Option<&'a str>) -> StoreFuture<'a, Page<RetainedAppend>> {
        Box::pin(self.read_retained(session, cursor))
    }

    fn rewrite_retained<'a>(&'a self, session: &'a str, changed: Vec<RetainedAppend>) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let _write = self.begin_write(session).await;
            self.write_retained(session, changed).await
        })
    }

    fn erase_overwritten<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let _write = self.begin_write(session).await;
            self.correct_packs(session).await
        })
    }

    fn fork_count(&self, session: &str) -> u64 {
        self.sessions.borrow().get(session).map_or(0, |tree| tree.fork_count())
    }

    fn drop_cached_values(&self, session: &str) {
        if let Some(tree) = self.sessions.borrow_mut().get_mut(session) {
            tree.drop_cached_values();
        }
    }

    fn needs_packing(&self, session: &str) -> bool {
        self.sessions.borrow().get(session).is_some_and(|tree| tree.packed.needs_packing())
    }

    fn pack<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.check_open()?;
            let _write = self.begin_write(session).await;
            // An erasure that nobody here has read: no pack may repeat what it has replaced.
            self.refresh_newest(session).await?;
            self.write_packs(session).await
        })
    }
}
