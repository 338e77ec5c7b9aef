//! Key-value services without atomic commits: every append is a key of its own, written once, with the writer's name in it.
//!
//! Nobody can exclude a second writer there, and lists and reads may be stale. So no two writers write one key, nothing is overwritten,
//! and what was read once is never forgotten. Two appends after the same one are a fork: both sides are kept, every reader who has seen
//! both takes the same one as the session's history, and [`LogStore::branches`] returns the other.

use super::append_tree::{AppendTree, OtherSide};
use super::driver::KvDriver;
use super::key::{head_key, session_key};
use super::list::{AuditPage, SessionCursor, SessionPage, SessionWalk, decode_audit_cursor};
use super::load::MOST_AT_ONCE;
use super::schema::prepare;
use super::stored_append::{AppendId, StoredAppend, append_prefix};
use super::value::{KvHead, seal_value};
use crate::error::{Error, ErrorCode, Result};
use crate::store::{
    Appended, AuditQuery, Batch, Capabilities, LogStore, MAX_KEY, MAX_RECORD_BYTES, Page, Query, Record, SessionRow,
    StoreFuture, StoredBranch, StoredHead, Table,
};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Room for the description of an append beside its largest record, in bytes.
const DESCRIPTION_BYTES: u64 = 64 * 1024;

/// The most keys in a page of a list.
const KEYS_IN_PAGE: usize = 1000;

/// The digits of a revision that one list of the newest appends leaves open.
const OPEN_DIGITS: usize = 2;

/// A store over a key-value service without atomic commits.
pub struct WriteOnceStore {
    driver: Rc<dyn KvDriver>,
    /// Unique among all writers.
    writer: String,
    sessions: RefCell<BTreeMap<String, AppendTree>>,
    /// The sessions that are being written to, each with the writes that wait for it.
    writing: RefCell<BTreeMap<String, Vec<Waker>>>,
    /// Of each session the last append that may be written although the service returned an error, and its operation.
    unanswered: RefCell<BTreeMap<String, (AppendId, String)>>,
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
    /// # Errors
    /// `unsupported_version` if a newer version wrote the keys, `config_invalid` if somebody else did or the driver's limits are too
    /// narrow, and the driver's own. Nothing is written then.
    pub async fn open(driver: Rc<dyn KvDriver>, writer: String) -> Result<Self> {
        prepare(&*driver).await?;
        let (sessions, writing, unanswered) = (RefCell::default(), RefCell::default(), RefCell::default());
        Ok(Self { driver, writer, sessions, writing, unanswered, closed: Cell::new(false) })
    }

    fn check_open(&self) -> Result<()> {
        if self.closed.get() {
            let message = format!("the {} store was closed; `open` again", self.driver.name());
            return Err(Error::new(ErrorCode::Closed, message));
        }
        Ok(())
    }

    /// Reads the appends of a session that were not read yet.
    async fn refresh(&self, session: &str) -> Result<()> {
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

    fn with_tree<T>(&self, session: &str, read: impl FnOnce(&mut AppendTree) -> T) -> T {
        read(self.sessions.borrow_mut().entry(session.to_owned()).or_default())
    }

    async fn read_listed(&self, session: &str, prefix: &str) -> Result<()> {
        let mut listed = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.driver.list(prefix, cursor.as_deref(), KEYS_IN_PAGE).await?;
            listed.extend(page.keys.iter().filter_map(|key| AppendId::of_key(key)));
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        let mut wanted: Vec<_> = self.with_tree(session, |tree| {
            let floor = tree.floor();
            listed.into_iter().filter(|id| id.revision >= floor && !tree.contains(id)).collect()
        });
        wanted.sort();
        // A list may be stale: whatever an append names was written.
        while !wanted.is_empty() {
            self.read_appends(session, &wanted).await?;
            wanted = self.with_tree(session, |tree| tree.missing_parents()).into_iter().collect();
        }
        Ok(())
    }

    /// Reads appends that are known to exist.
    async fn read_appends(&self, session: &str, ids: &[AppendId]) -> Result<()> {
        for ids in ids.chunks(MOST_AT_ONCE) {
            let values = self.driver.get_many(ids.iter().map(|id| id.key(session)).collect()).await?;
            for (id, value) in ids.iter().zip(values) {
                let Some(value) = value else {
                    return Err(Error::new(
                        ErrorCode::MaybeStale,
                        format!(
                            "the {} store lists more of the session than it shows; its reads are stale: try again in a minute",
                            self.driver.name()
                        ),
                    ));
                };
                let append = StoredAppend::open(session, id, &value)?;
                self.with_tree(session, |tree| tree.add(id.clone(), append));
            }
        }
        let is_whole = self.with_tree(session, |tree| tree.missing_parents().is_empty());
        if is_whole {
            self.with_tree(session, AppendTree::settle);
        }
        Ok(())
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

    /// Returns the writer's name for an append. An unanswered one of another operation may have the revision, unseen by a stale list: the
    /// new one gets another name, which comes first in order, and overwrites nothing.
    fn writer_of(&self, session: &str, revision: u64, operation: &str) -> String {
        match self.unanswered.borrow().get(session) {
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
        if let Err(error) = self.driver.put(id.key(session), value).await {
            self.unanswered.borrow_mut().insert(session.to_owned(), (id, append.operation));
            return Err(error);
        }
        self.unanswered.borrow_mut().remove(session);
        self.with_tree(session, |tree| {
            tree.add(id, append);
            tree.settle();
        });
        Ok(())
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
        self.refresh(&listed.head.id).await?;
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
            self.refresh(session).await?;
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
            Ok(Appended::Revision(revision.saturating_add(offset)))
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            self.refresh_newest(session).await?;
            Ok(self.with_tree(session, |tree| tree.folded().read(query)))
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
            let mut walk = SessionWalk::new(&*self.driver, SessionCursor::decode(cursor)?, page.limit);
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
                self.refresh(id).await?;
                let rest = self.add_rows(&mut page, id, from);
                return Ok(page.end(rest, &at));
            }
            let mut walk = SessionWalk::new(&*self.driver, at, MOST_AT_ONCE);
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
            let tip = self.with_tree(session, |tree| tree.tip().cloned().filter(|_| tree.folded().head().is_some()));
            let Some(tip) = tip else { return Ok(()) };
            let revision = tip.revision.saturating_add(1);
            let deletion = StoredAppend { parent: Some(tip), is_deletion: true, ..StoredAppend::default() };
            self.write(session, deletion, revision).await?;
            // The deletion counts from here on; what cannot be removed now is not read any more.
            let old: Vec<_> = self.with_tree(session, |tree| {
                tree.ids().filter(|id| id.revision < revision).map(|id| id.key(session)).collect()
            });
            for key in old {
                self.driver.delete(key).await?;
            }
            self.with_tree(session, AppendTree::drop_deleted);
            Ok(())
        })
    }

    fn branches<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Vec<StoredBranch>> {
        Box::pin(async move {
            self.refresh(session).await?;
            let branch = |OtherSide { tip, session, before }: OtherSide| {
                let shared = before.read(Query::all(Table::Log));
                let mut log = session.read(Query::all(Table::Log));
                log.retain(|record| !shared.contains(record));
                let head = session.head().map(|head| head.value).unwrap_or_default();
                let fork_head = before.head().map(|head| head.value);
                StoredBranch { id: format!("{:x}-{}", tip.revision, tip.writer), head, fork_head, log }
            };
            Ok(self.with_tree(session, |tree| tree.other_sides().into_iter().map(branch).collect()))
        })
    }
}
