//! Encryption at rest: a store whose values are encrypted in another store.
//!
//! Heads, log, journals and audit rows are sealed with a key of their session, which a key of the application wraps.
//! Each value is bound to its place, so that nobody who can write to the database can move one. The ids of sessions,
//! channels, the times of their last change and what is archived, the index of the audit table, keys, sizes and
//! revisions stay readable: stores find records by them.
//!
//! Values that are not encrypted are read as they are, and new ones are encrypted: a database can begin without.

mod cipher;
mod frame;
mod keys;
mod retained;
mod search_index;
mod session_key;

pub use cipher::{Cipher, PlacedValue, UnwrappedKey};

use super::{
    Appended, AuditQuery, Batch, Capabilities, ChangedHead, HeadChanges, LogKey, LogStore, Page, Query, RecencyQuery,
    Record, RecordSelector, RetainedAppend, SearchIndexStore, SessionRow, StoreFuture, StoredBranch, StoredHead,
};
use crate::error::{Error, ErrorCode, Result};
use bytes::Bytes;
use frame::{Form, Frame, head_place, key_place, record_place, unsupported};
use keys::{KeyCache, WritingKey};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// More bytes than encryption adds to a value.
const MAX_OVERHEAD: u64 = 1024;

/// What encryption adds to a record, in bytes, of which so many more are read at once.
const RECORD_OVERHEAD: u64 = 128;

/// The most values that the platform decrypts at once.
const MAX_OPENED_AT_ONCE: usize = 64;

/// A store over another one.
pub struct EncryptedStore<C: Cipher> {
    store: Rc<dyn LogStore>,
    cipher: C,
    keys: KeyCache<C::Key>,
}

/// A value to decrypt.
struct SealedValue<'s> {
    session: &'s str,
    place: Bytes,
    value: &'s mut Bytes,
}

/// The error of a session whose key none of the application's keys has wrapped.
fn wrong_key(session: &str) -> Error {
    let message = format!(
        "session \"{session}\" was encrypted with another key, or a newer one; pass that key as `encryption.key`, or in `encryption.previous` if it was replaced. Nothing was changed"
    );
    Error::new(ErrorCode::WrongKey, message)
}

impl<C: Cipher> EncryptedStore<C> {
    /// Encrypts the values of a store.
    #[must_use]
    pub fn new(store: Rc<dyn LogStore>, cipher: C) -> Self {
        Self { store, cipher, keys: KeyCache::default() }
    }

    /// Returns the key of a wrapped form; none if no key of the application has wrapped it.
    async fn key_of(&self, session: &str, wrapped: &Bytes) -> Result<Option<UnwrappedKey<C::Key>>> {
        if let Some(key) = self.keys.get(session, wrapped) {
            return Ok(Some(key));
        }
        let key = self.cipher.unwrap_key(wrapped.clone(), key_place(session)).await?;
        if let Some(key) = &key {
            self.keys.add(session, wrapped, key);
        }
        Ok(key)
    }

    /// Decrypts one value with a key; none if it was sealed with another one.
    async fn open_with(&self, key: C::Key, place: &Bytes, sealed: &Bytes) -> Result<Option<Bytes>> {
        let value = PlacedValue { key, place: place.clone(), value: sealed.clone() };
        Ok(self.cipher.open(vec![value]).await?.into_iter().flatten().next())
    }

    /// Decrypts values, a limited number at once. Returns them in the same order.
    async fn open_all(&self, sealed: Vec<PlacedValue<C::Key>>) -> Result<Vec<Option<Bytes>>> {
        let mut opened = Vec::with_capacity(sealed.len());
        for part in sealed.chunks(MAX_OPENED_AT_ONCE) {
            opened.extend(self.cipher.open(part.to_vec()).await?);
        }
        Ok(opened)
    }

    /// Decrypts the head of a session among others.
    async fn open_head_of_many(&self, id: &str, head: StoredHead) -> Result<StoredHead> {
        let revision = head.revision;
        match self.open_head(id, head).await {
            // Of a wrong key none opens: this one is damaged, or of another key.
            Err(error) if error.code == ErrorCode::WrongKey && self.opens_any().await? => {
                Ok(StoredHead { revision, value: Bytes::new() })
            }
            head => head,
        }
    }

    /// Decrypts the heads of a page of sessions.
    async fn open_listed(&self, page: Page<SessionRow>) -> Result<Page<SessionRow>> {
        let mut rows = Vec::with_capacity(page.items.len());
        for SessionRow { id, head } in page.items {
            let head = self.open_head_of_many(&id, head).await?;
            rows.push(SessionRow { id, head });
        }
        Ok(Page { items: rows, cursor: page.cursor })
    }

    /// Decrypts values in place. One that is damaged has no bytes then: it is reported and skipped, like any other that
    /// does not decode.
    ///
    /// # Errors
    /// `wrong_key` for a session of which no key is known; `unsupported_version` for a form of a later build.
    async fn open_values(&self, mut values: Vec<SealedValue<'_>>) -> Result<()> {
        let (mut sealed, mut opened_at, mut foreign) = (Vec::new(), Vec::new(), BTreeSet::new());
        // By session: those whose own wrapped key cannot be unwrapped.
        let mut rest: BTreeMap<&str, Vec<(usize, Bytes)>> = BTreeMap::new();
        for (at, SealedValue { session, place, value }) in values.iter_mut().enumerate() {
            let frame = match Form::of(value) {
                Form::Plain => continue,
                Form::OtherVersion(version) => return Err(unsupported(session, version)),
                Form::Encrypted(frame) => Some(frame),
                Form::Malformed => None,
            };
            **value = Bytes::new();
            let Some(Frame { wrapped, sealed: value }) = frame else {
                rest.entry(session).or_default();
                continue;
            };
            let is_known_foreign = foreign.contains(&(*session, wrapped.clone()));
            match if is_known_foreign { None } else { self.key_of(session, &wrapped).await? } {
                Some(UnwrappedKey { key, .. }) => {
                    sealed.push(PlacedValue { key, place: place.clone(), value });
                    opened_at.push(at);
                }
                None => {
                    foreign.insert((*session, wrapped));
                    rest.entry(session).or_default().push((at, value));
                }
            }
        }
        let mut opened: Vec<_> = opened_at.into_iter().zip(self.open_all(sealed).await?).collect();
        for (session, sealed) in rest {
            let sealed = sealed.into_iter().filter_map(|(at, value)| Some((at, values.get(at)?.place.clone(), value)));
            opened.extend(self.open_by_other_keys(session, sealed.collect()).await?);
        }
        for (at, value) in opened {
            if let (Some(place), Some(value)) = (values.get_mut(at), value) {
                *place.value = value;
            }
        }
        Ok(())
    }

    /// Decrypts values of a session whose own wrapped keys cannot be unwrapped: they are damaged, or of a key of the
    /// application that has been replaced since. Returns those that one of the session's keys opens.
    async fn open_by_other_keys(
        &self,
        session: &str,
        mut sealed: Vec<(usize, Bytes, Bytes)>,
    ) -> Result<Vec<(usize, Option<Bytes>)>> {
        if self.keys.writing(session).is_none()
            && let Some(head) = self.store.head(session).await?
        {
            self.open_head(session, head).await?;
        }
        let keys = self.keys.all(session);
        if keys.is_empty() && !sealed.is_empty() {
            return Err(wrong_key(session));
        }
        let mut found = Vec::new();
        for (_, UnwrappedKey { key, .. }) in keys {
            let tries = sealed.iter().map(|(_, place, value)| PlacedValue {
                key: key.clone(),
                place: place.clone(),
                value: value.clone(),
            });
            let opened = self.open_all(tries.collect()).await?;
            let (done, rest): (Vec<_>, Vec<_>) =
                sealed.into_iter().zip(opened).partition(|(_, opened)| opened.is_some());
            found.extend(done.into_iter().map(|((at, ..), value)| (at, value)));
            sealed = rest.into_iter().map(|(value, _)| value).collect();
        }
        Ok(found)
    }

    /// Returns the length of a value when it is decrypted.
    fn opened_length(value: &Bytes) -> u64 {
        let length = match Form::of(value) {
            Form::Encrypted(frame) => frame.sealed.len().saturating_sub(C::SEALED_BYTES),
            _ => value.len(),
        };
        length as u64
    }

    /// Reads records that have the size of the query when they are decrypted. They are larger in the store, by as much
    /// as nobody knows before.
    async fn read_sealed(&self, session: &str, query: Query) -> Result<Vec<Record>> {
        let mut more = RECORD_OVERHEAD * query.expected_records.clamp(16, 4096);
        loop {
            let limit_bytes = query.limit_bytes.saturating_add(more);
            let mut records = self.store.read(session, Query { limit_bytes, ..query }).await?;
            let (mut stored, mut opened) = (0, 0);
            for at in 0..records.len() {
                let Some(record) = records.get(at) else { break };
                stored += record.value.len() as u64;
                opened += Self::opened_length(&record.value);
                if opened >= query.limit_bytes {
                    records.truncate(at + 1);
                    return Ok(records);
                }
            }
            if stored < limit_bytes {
                return Ok(records);
            }
            more = more.saturating_add(stored.saturating_sub(opened)).saturating_mul(2);
        }
    }

    /// Decrypts records of several sessions.
    async fn open_rows(&self, mut rows: Vec<(String, Record)>) -> Result<Vec<(String, Record)>> {
        let sealed = rows.iter_mut().map(|(session, record)| {
            let place = record_place(session, record);
            SealedValue { session, place, value: &mut record.value }
        });
        self.open_values(sealed.collect()).await?;
        Ok(rows)
    }

    /// Returns the head, and the lineage that it is of: others may read the session while it is decrypted.
    async fn head_and_lineage(&self, session: &str) -> Result<Option<(StoredHead, u64)>> {
        let head = self.store.head(session).await?;
        let lineage = self.store.lineage(session);
        let Some(head) = head else {
            self.keys.set_absent(session);
            return Ok(None);
        };
        Ok(Some((self.open_head(session, head).await?, lineage)))
    }

    /// Encrypts a batch.
    async fn seal_batch(&self, session: &str, writing: &WritingKey<C::Key>, batch: &mut Batch) -> Result<()> {
        let records = batch.put.iter_mut().chain(&mut batch.replace);
        let mut values = vec![(head_place(session), &mut batch.head)];
        values.extend(records.map(|record| {
            let place = record_place(session, record);
            (place, &mut record.value)
        }));
        let plain = values.iter().map(|(place, value)| PlacedValue {
            key: writing.key.clone(),
            place: place.clone(),
            value: (**value).clone(),
        });
        let sealed = self.cipher.seal(plain.collect()).await?;
        for ((_, value), sealed) in values.into_iter().zip(sealed) {
            *value = Frame { wrapped: writing.wrapped.clone(), sealed }.write();
        }
        Ok(())
    }
}

impl<C: Cipher> LogStore for EncryptedStore<C> {
    fn capabilities(&self) -> Capabilities {
        let inner = self.store.capabilities();
        Capabilities { max_value_bytes: inner.max_value_bytes.saturating_sub(MAX_OVERHEAD), ..inner }
    }

    fn was_evicted(&self) -> bool {
        self.store.was_evicted()
    }

    fn sends_notices(&self) -> bool {
        self.store.sends_notices()
    }

    fn lineage(&self, session: &str) -> u64 {
        self.keys.lineage(session).unwrap_or_else(|| self.store.lineage(session))
    }

    fn branches<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Vec<StoredBranch>> {
        Box::pin(async move {
            let mut branches = self.store.branches(session).await?;
            for branch in &mut branches {
                let mut heads = vec![&mut branch.head];
                heads.extend(&mut branch.fork_head);
                let heads = heads.into_iter().map(|value| (head_place(session), value));
                let records = branch.log.iter_mut().map(|record| {
                    let place = record_place(session, record);
                    (place, &mut record.value)
                });
                let values = heads.chain(records).map(|(place, value)| SealedValue { session, place, value });
                self.open_values(values.collect()).await?;
            }
            Ok(branches)
        })
    }

    fn retained<'a>(&'a self, session: &'a str, cursor: Option<&'a str>) -> StoreFuture<'a, Page<RetainedAppend>> {
        Box::pin(async move {
            let mut page = self.store.retained(session, cursor).await?;
            self.open_retained(session, &mut page.items).await?;
            Ok(page)
        })
    }

    fn rewrite_retained<'a>(&'a self, session: &'a str, changed: Vec<RetainedAppend>) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let changed = self.seal_retained(session, changed).await?;
            self.store.rewrite_retained(session, changed).await
        })
    }

    fn erase_overwritten<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        self.store.erase_overwritten(session)
    }

    fn drop_cached_values(&self, session: &str) {
        self.keys.forget(session);
        self.store.drop_cached_values(session);
    }

    fn fork_count(&self, session: &str) -> u64 {
        self.store.fork_count(session)
    }

    fn has_replaced_key(&self, session: &str) -> Option<bool> {
        self.keys.writing(session).map(|key| key.is_replaced)
    }

    fn needs_packing(&self, session: &str) -> bool {
        self.store.needs_packing(session)
    }

    fn pack<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        self.store.pack(session)
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.keys.clear();
        self.store.close()
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        Box::pin(async move {
            let Some((head, lineage)) = self.head_and_lineage(session).await? else { return Ok(None) };
            self.keys.set_lineage(session, lineage);
            Ok(Some(head))
        })
    }

    fn head_and_records<'a>(
        &'a self,
        session: &'a str,
        select: RecordSelector,
    ) -> StoreFuture<'a, Option<(StoredHead, Vec<Record>)>> {
        Box::pin(async move {
            let Some((head, lineage)) = self.head_and_lineage(session).await? else { return Ok(None) };
            let records = match select(&head) {
                Some(query) => self.read(session, query).await?,
                None => Vec::new(),
            };
            self.keys.set_lineage(session, lineage);
            Ok(Some((head, records)))
        })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        mut batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            batch.check(operation, self.capabilities().max_value_bytes)?;
            let writing = self.writing_key(session, expected).await?;
            self.seal_batch(session, &writing, &mut batch).await?;
            let appended = self.store.append(session, expected, batch, operation).await;
            if !matches!(appended, Ok(Appended::Revision(_))) {
                // Somebody else has written to the session, or it is unknown who has.
                self.keys.set_writing(session, None);
            }
            appended
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            let mut records = self.read_sealed(session, query).await?;
            let sealed = records.iter_mut().map(|record| {
                let place = record_place(session, record);
                SealedValue { session, place, value: &mut record.value }
            });
            self.open_values(sealed.collect()).await?;
            Ok(records)
        })
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        Box::pin(async move {
            let page = self.store.sessions(cursor, limit, channel).await?;
            self.open_listed(page).await
        })
    }

    fn heads<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        Box::pin(async move {
            let page = self.store.heads(cursor, limit, channel).await?;
            self.open_listed(page).await
        })
    }

    fn head_changes(&self, since: Option<u64>) -> Option<StoreFuture<'_, HeadChanges>> {
        let changes = self.store.head_changes(since)?;
        Some(Box::pin(async move {
            let HeadChanges { mark, changed } = changes.await?;
            let Some(sealed) = changed else { return Ok(HeadChanges { mark, changed: None }) };
            let mut changed = Vec::with_capacity(sealed.len());
            for ChangedHead { id, head } in sealed {
                let head = match head {
                    Some(head) => Some(self.open_head_of_many(&id, head).await?),
                    None => None,
                };
                changed.push(ChangedHead { id, head });
            }
            Ok(HeadChanges { mark, changed: Some(changed) })
        }))
    }

    fn search_index_store(&self) -> Option<&dyn SearchIndexStore> {
        self.store.search_index_store().map(|_| self as &dyn SearchIndexStore)
    }

    fn recent_sessions<'a>(&'a self, query: &'a RecencyQuery) -> Option<StoreFuture<'a, Page<SessionRow>>> {
        let page = self.store.recent_sessions(query)?;
        Some(Box::pin(async move { self.open_listed(page.await?).await }))
    }

    fn log_records<'a>(&'a self, keys: &'a [LogKey]) -> StoreFuture<'a, Vec<(String, Record)>> {
        Box::pin(async move { self.open_rows(self.store.log_records(keys).await?).await })
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        Box::pin(async move {
            let Page { items, cursor } = self.store.invocations(query).await?;
            Ok(Page { items: self.open_rows(items).await?, cursor })
        })
    }

    fn newest_invocations<'a>(&'a self, query: &'a AuditQuery) -> Option<StoreFuture<'a, Page<(String, Record)>>> {
        let page = self.store.newest_invocations(query)?;
        Some(Box::pin(async move {
            let Page { items, cursor } = page.await?;
            Ok(Page { items: self.open_rows(items).await?, cursor })
        }))
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        self.keys.forget(session);
        self.store.delete_session(session)
    }
}
