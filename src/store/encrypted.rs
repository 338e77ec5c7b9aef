//! Encryption at rest: a store whose values are encrypted in another store.
//!
//! Heads, log, journals and audit rows are sealed with a key of their session, which a key of the application wraps.
//! Each value is bound to its place, so that nobody who can write to the database can move one. The ids of sessions,
//! channels, the index of the audit table, keys, sizes and revisions stay readable: stores find records by them.
//!
//! Values that are not encrypted are read as they are, and new ones are encrypted: a database can begin without.

mod cipher;
mod frame;
mod keys;

pub use cipher::{Cipher, PlacedValue, UnwrappedKey};

use super::{
    Appended, AuditQuery, Batch, Capabilities, LogKey, LogStore, Page, Query, Record, SessionRow, StoreFuture,
    StoredBranch, StoredHead, Table,
};
use crate::error::{Error, ErrorCode, Result};
use bytes::Bytes;
use frame::{Frame, head_place, is_encrypted, key_place, record_place};
use keys::{KeyCache, WritingKey};
use std::rc::Rc;

/// More bytes than encryption adds to a value.
const MAX_OVERHEAD: u64 = 1024;

/// What encryption adds to a record, in bytes, of which so many more are read at once.
const RECORD_OVERHEAD: u64 = 128;

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
        "session \"{session}\" was encrypted with another key; pass that key as `encryption.key`, or in `encryption.previous` if it was replaced. Nothing was changed"
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

    /// Decrypts a value with the first key that opens it.
    async fn open_with(&self, keys: Vec<C::Key>, place: &Bytes, sealed: &Bytes) -> Result<Option<Bytes>> {
        let tries = keys.into_iter().map(|key| PlacedValue { key, place: place.clone(), value: sealed.clone() });
        Ok(self.cipher.open(tries.collect()).await?.into_iter().flatten().next())
    }

    /// Decrypts a head. One that is damaged has no bytes then, so that it is rebuilt.
    ///
    /// # Errors
    /// `wrong_key`.
    async fn open_head(&self, session: &str, head: StoredHead) -> Result<StoredHead> {
        let StoredHead { revision, value } = head;
        if !is_encrypted(&value) {
            self.keys.set_writing(session, None);
            return Ok(StoredHead { revision, value });
        }
        let frame = Frame::read(&value);
        let unwrapped = match &frame {
            Some(frame) => self.key_of(session, &frame.wrapped).await?.map(|key| (frame.wrapped.clone(), key)),
            None => None,
        };
        let found = match unwrapped {
            Some(found) => Some(found),
            None => self.key_of_records(session).await?,
        };
        let Some((wrapped, UnwrappedKey { key, rewrapped })) = found else { return Err(wrong_key(session)) };
        let writing = WritingKey { wrapped: rewrapped.unwrap_or(wrapped), key: key.clone() };
        self.keys.set_writing(session, Some(writing));
        let value = match frame {
            Some(frame) => self.open_with(vec![key], &head_place(session), &frame.sealed).await?,
            None => None,
        };
        Ok(StoredHead { revision, value: value.unwrap_or_default() })
    }

    /// Returns the key of the newest record of a session whose head does not tell it.
    async fn key_of_records(&self, session: &str) -> Result<Option<(Bytes, UnwrappedKey<C::Key>)>> {
        for table in [Table::Log, Table::Runs] {
            let query = Query { reverse: true, limit_bytes: 1, expected_records: 1, ..Query::all(table) };
            for record in self.store.read(session, query).await? {
                if let Some(Frame { wrapped, .. }) = Frame::read(&record.value)
                    && let Some(key) = self.key_of(session, &wrapped).await?
                {
                    return Ok(Some((wrapped, key)));
                }
            }
        }
        Ok(None)
    }

    /// Returns the key that a session is written with. One that is new has a new key.
    async fn writing_key(&self, session: &str, expected: u64) -> Result<WritingKey<C::Key>> {
        if let Some(key) = self.keys.writing(session) {
            return Ok(key);
        }
        if expected > 0
            && let Some(head) = self.store.head(session).await?
        {
            let is_lost = head.value.is_empty();
            self.open_head(session, head).await?;
            if let Some(key) = self.keys.writing(session) {
                return Ok(key);
            }
            if is_lost && let Some((wrapped, UnwrappedKey { key, rewrapped })) = self.key_of_records(session).await? {
                return Ok(WritingKey { wrapped: rewrapped.unwrap_or(wrapped), key });
            }
        }
        let (key, wrapped) = self.cipher.generate(key_place(session)).await?;
        Ok(WritingKey { wrapped, key })
    }

    /// Decrypts values in place. One that is damaged has no bytes then: it is reported and skipped, like any other that
    /// does not decode.
    ///
    /// # Errors
    /// `wrong_key` for a session of which no key is known.
    async fn open_values(&self, mut values: Vec<SealedValue<'_>>) -> Result<()> {
        values.retain(|value| is_encrypted(value.value));
        let (mut sealed, mut opened_at) = (Vec::new(), Vec::new());
        for (at, SealedValue { session, place, value }) in values.iter_mut().enumerate() {
            let frame = Frame::read(value);
            let key = match &frame {
                Some(frame) => self.key_of(session, &frame.wrapped).await?,
                None => None,
            };
            match (frame, key) {
                (Some(Frame { sealed: value, .. }), Some(UnwrappedKey { key, .. })) => {
                    sealed.push(PlacedValue { key, place: place.clone(), value });
                    opened_at.push(at);
                }
                (frame, _) => **value = self.open_by_other_keys(session, place, frame).await?.unwrap_or_default(),
            }
        }
        for (at, value) in opened_at.into_iter().zip(self.cipher.open(sealed).await?) {
            if let Some(place) = values.get_mut(at) {
                *place.value = value.unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Decrypts a value whose own wrapped key cannot be unwrapped: it is damaged, or of a key of the application that
    /// has been replaced since.
    async fn open_by_other_keys(&self, session: &str, place: &Bytes, frame: Option<Frame>) -> Result<Option<Bytes>> {
        if self.keys.writing(session).is_none()
            && let Some(head) = self.store.head(session).await?
        {
            self.open_head(session, head).await?;
        }
        let Some(frame) = frame else { return Ok(None) };
        let keys = self.keys.all(session);
        if keys.is_empty() {
            return Err(wrong_key(session));
        }
        self.open_with(keys, place, &frame.sealed).await
    }

    /// Returns the length of a value when it is decrypted.
    fn opened_length(value: &Bytes) -> u64 {
        let frame = Frame::read(value);
        frame.map_or(value.len(), |frame| frame.sealed.len().saturating_sub(C::SEALED_BYTES)) as u64
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
        self.store.lineage(session)
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

    fn drop_cached_values(&self, session: &str) {
        self.keys.forget(session);
        self.store.drop_cached_values(session);
    }

    fn fork_count(&self, session: &str) -> u64 {
        self.store.fork_count(session)
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
            let Some(head) = self.store.head(session).await? else {
                self.keys.forget(session);
                return Ok(None);
            };
            self.open_head(session, head).await.map(Some)
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
            let appended = self.store.append(session, expected, batch, operation).await?;
            if matches!(appended, Appended::Revision(_)) {
                let key = UnwrappedKey { key: writing.key.clone(), rewrapped: None };
                self.keys.add(session, &writing.wrapped, &key);
                self.keys.set_writing(session, Some(writing));
            }
            Ok(appended)
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
            let Page { items, cursor } = self.store.sessions(cursor, limit, channel).await?;
            let mut rows = Vec::with_capacity(items.len());
            for SessionRow { id, head } in items {
                let head = self.open_head(&id, head).await?;
                rows.push(SessionRow { id, head });
            }
            Ok(Page { items: rows, cursor })
        })
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
