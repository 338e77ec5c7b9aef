//! Which key a session is written with.
//!
//! It is the key of the head, in the form that the head has. So all writers have one key, and one that was wrapped anew
//! stays so. A new key becomes the key of its session by the head that it is written with: until that was read, nobody
//! takes it for granted, as the append may be a repeated one, or belong to the side of a fork that is dropped.

use super::cipher::{Cipher, UnwrappedKey};
use super::frame::{Form, Frame, head_place, is_changed_copy, key_place, unsupported};
use super::keys::WritingKey;
use super::{EncryptedStore, wrong_key};
use crate::branch_path::DIRECTORY;
use crate::error::Result;
use crate::store::{MAX_KEY, Query, StoredHead, Table};
use bytes::Bytes;

/// The most records of a table that are read to find a key. More than one only if the newest are damaged.
const MAX_TRIES: usize = 4;

/// The key that a head tells.
enum HeadKey<K> {
    /// The session is written with it.
    Writing(WritingKey<K>),
    /// The head is not encrypted, or as damaged as all other values.
    None,
    /// It is wrapped by a newer key of the application: nothing is written.
    Newer,
}

/// What records tell of a session's key.
enum RecordKey<K> {
    Found(Bytes, UnwrappedKey<K>),
    /// No record is encrypted, or all that are have a damaged form.
    None,
    /// None of the application's keys unwraps it.
    Foreign,
}

impl<C: Cipher> EncryptedStore<C> {
    /// Decrypts a head. One that is damaged has no bytes then, so that it is rebuilt.
    ///
    /// # Errors
    /// `wrong_key`; `unsupported_version` for a form of a later build.
    pub(super) async fn open_head(&self, session: &str, head: StoredHead) -> Result<StoredHead> {
        Ok(self.open_head_and_key(session, head).await?.0)
    }

    async fn open_head_and_key(&self, session: &str, head: StoredHead) -> Result<(StoredHead, HeadKey<C::Key>)> {
        let StoredHead { revision, value } = head;
        let (value, key) = match Form::of(&value) {
            Form::Plain => (value, HeadKey::None),
            Form::OtherVersion(version) => return Err(unsupported(session, version)),
            Form::Malformed => (Bytes::new(), self.key_beside(session).await?.map_or(HeadKey::None, HeadKey::Writing)),
            Form::Encrypted(frame) => self.open_head_frame(session, frame).await?,
        };
        let writing = if let HeadKey::Writing(key) = &key { Some(key.clone()) } else { None };
        self.keys.set_writing(session, writing);
        Ok((StoredHead { revision, value }, key))
    }

    async fn open_head_frame(&self, session: &str, frame: Frame) -> Result<(Bytes, HeadKey<C::Key>)> {
        let Frame { wrapped, sealed } = frame;
        let place = head_place(session);
        if let Some(unwrapped) = self.key_of(session, &wrapped).await? {
            let writing = WritingKey::of(&wrapped, &unwrapped);
            let value = self.open_with(unwrapped.key, &place, &sealed).await?;
            return Ok((value.unwrap_or_default(), HeadKey::Writing(writing)));
        }
        // A newer key of the application has wrapped it, or it is damaged.
        let mut damaged = self.damaged_copy_of(session, &wrapped);
        if damaged.is_none() {
            // A session that was open before the rotation is read on. Another one is not, although its older records
            // tell the key: whether it opens must not depend on what was read before.
            let known = if self.keys.was_opened(session) { self.keys.all(session) } else { Vec::new() };
            for (_, UnwrappedKey { key, .. }) in known {
                if let Some(value) = self.open_with(key, &place, &sealed).await? {
                    return Ok((value, HeadKey::Newer));
                }
            }
            self.key_of_records(session).await?;
            damaged = self.damaged_copy_of(session, &wrapped);
        }
        let Some(writing) = damaged else { return Err(wrong_key(session)) };
        let value = self.open_with(writing.key.clone(), &place, &sealed).await?;
        Ok((value.unwrap_or_default(), HeadKey::Writing(writing)))
    }

    /// Returns the known key of which a wrapped form seems to be a damaged copy.
    fn damaged_copy_of(&self, session: &str, wrapped: &Bytes) -> Option<WritingKey<C::Key>> {
        let known = self.keys.all(session);
        let copy = known.iter().find(|(form, _)| is_changed_copy(wrapped, form));
        copy.map(|(form, unwrapped)| WritingKey::of(form, unwrapped))
    }

    /// Returns the key of a session whose head tells none, as it is written.
    ///
    /// # Errors
    /// `wrong_key` if the records have one that cannot be unwrapped.
    async fn key_beside(&self, session: &str) -> Result<Option<WritingKey<C::Key>>> {
        match self.key_of_records(session).await? {
            RecordKey::Found(wrapped, unwrapped) => Ok(Some(WritingKey::of(&wrapped, &unwrapped))),
            RecordKey::None => Ok(None),
            RecordKey::Foreign => Err(wrong_key(session)),
        }
    }

    /// Returns the key of the newest records of a session.
    async fn key_of_records(&self, session: &str) -> Result<RecordKey<C::Key>> {
        let mut is_foreign = false;
        let newest = [
            (Table::Log, 0, DIRECTORY - 1),
            (Table::Runs, 0, MAX_KEY),
            (Table::ToolInvocations, 0, MAX_KEY),
            (Table::Log, DIRECTORY, MAX_KEY),
        ];
        for (table, from, mut to) in newest {
            for _ in 0..MAX_TRIES {
                let one = Query { from, to, reverse: true, limit_bytes: 1, expected_records: 1, ..Query::all(table) };
                let records = self.store.read(session, one).await?;
                let Some(record) = records.first() else { break };
                match Form::of(&record.value) {
                    Form::Encrypted(Frame { wrapped, .. }) => {
                        if let Some(key) = self.key_of(session, &wrapped).await? {
                            return Ok(RecordKey::Found(wrapped, key));
                        }
                        is_foreign = true;
                    }
                    Form::OtherVersion(version) => return Err(unsupported(session, version)),
                    Form::Plain | Form::Malformed => {}
                }
                if record.key <= from {
                    break;
                }
                to = record.key - 1;
            }
        }
        Ok(if is_foreign { RecordKey::Foreign } else { RecordKey::None })
    }

    /// Returns the key that a session is written with: that of its head, or of its records. One that has none has a new
    /// key.
    ///
    /// # Errors
    /// `wrong_key` if the session has a key that the application has not; `unsupported_version`.
    pub(super) async fn writing_key(&self, session: &str, expected: u64) -> Result<WritingKey<C::Key>> {
        if let Some(key) = self.keys.writing(session) {
            return Ok(key);
        }
        let is_absent = self.keys.take_absent(session) && expected == 0;
        if !is_absent && let Some(head) = self.store.head(session).await? {
            match self.open_head_and_key(session, head).await?.1 {
                HeadKey::Writing(key) => return Ok(key),
                HeadKey::Newer => return Err(wrong_key(session)),
                HeadKey::None => {}
            }
            if let Some(key) = self.key_beside(session).await? {
                return Ok(key);
            }
        }
        let (key, wrapped) = self.cipher.generate(key_place(session)).await?;
        Ok(WritingKey { wrapped, key, is_replaced: false })
    }

    /// Returns true if the keys of the application open some session.
    ///
    /// # Errors
    /// The store's own.
    pub(super) async fn opens_any(&self) -> Result<bool> {
        if self.keys.has_unwrapped() {
            return Ok(true);
        }
        for row in self.store.sessions(None, 0, None).await?.items {
            match Form::of(&row.head.value) {
                Form::Encrypted(frame) if self.key_of(&row.id, &frame.wrapped).await?.is_some() => return Ok(true),
                _ => {}
            }
        }
        Ok(false)
    }
}
