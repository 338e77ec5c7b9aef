//! The keys of sessions that were unwrapped.

use super::cipher::UnwrappedKey;
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// The most sessions whose keys are kept. Those of others are unwrapped again.
const MAX_SESSIONS: usize = 256;

/// The most keys of one session that are kept: it has several after a rotation, and where two writers began it at once.
const MAX_KEYS: usize = 16;

/// A session's key with its wrapped form, for writing.
#[derive(Clone)]
pub(super) struct WritingKey<K> {
    pub wrapped: Bytes,
    pub key: K,
    /// A replaced key of the application had wrapped it in what was read.
    pub is_replaced: bool,
}

impl<K: Clone> WritingKey<K> {
    /// Returns a key as it is written from now on: wrapped by the current key of the application.
    pub fn of(wrapped: &Bytes, unwrapped: &UnwrappedKey<K>) -> Self {
        let is_replaced = unwrapped.rewrapped.is_some();
        let wrapped = unwrapped.rewrapped.as_ref().unwrap_or(wrapped).clone();
        Self { wrapped, key: unwrapped.key.clone(), is_replaced }
    }
}

struct SessionKeys<K> {
    /// With their wrapped forms, oldest first.
    known: Vec<(Bytes, UnwrappedKey<K>)>,
    writing: Option<WritingKey<K>>,
    /// Its head was opened by a key of the application.
    was_opened: bool,
    /// Of the head that was returned last.
    lineage: Option<u64>,
    /// The session was not stored when it was read last.
    is_absent: bool,
    /// When it was used last.
    used: u64,
}

impl<K> Default for SessionKeys<K> {
    fn default() -> Self {
        Self { known: Vec::new(), writing: None, was_opened: false, lineage: None, is_absent: false, used: 0 }
    }
}

/// The keys of all sessions.
pub(super) struct KeyCache<K> {
    sessions: RefCell<BTreeMap<String, SessionKeys<K>>>,
    /// Counts uses.
    uses: Cell<u64>,
    /// A key of some session was unwrapped.
    has_unwrapped: Cell<bool>,
}

impl<K> Default for KeyCache<K> {
    fn default() -> Self {
        Self { sessions: RefCell::default(), uses: Cell::new(0), has_unwrapped: Cell::new(false) }
    }
}

impl<K: Clone> KeyCache<K> {
    /// Returns the key of a wrapped form.
    pub fn get(&self, session: &str, wrapped: &Bytes) -> Option<UnwrappedKey<K>> {
        let cache = self.sessions.borrow();
        cache.get(session)?.known.iter().find(|(form, _)| form == wrapped).map(|(_, key)| key.clone())
    }

    /// Returns all keys of a session with their wrapped forms, newest first.
    pub fn all(&self, session: &str) -> Vec<(Bytes, UnwrappedKey<K>)> {
        let cache = self.sessions.borrow();
        cache.get(session).into_iter().flat_map(|keys| keys.known.iter().rev().cloned()).collect()
    }

    /// Keeps a key that was unwrapped.
    pub fn add(&self, session: &str, wrapped: &Bytes, key: &UnwrappedKey<K>) {
        self.has_unwrapped.set(true);
        self.with(session, |keys| {
            keys.known.retain(|(form, _)| form != wrapped);
            if keys.known.len() >= MAX_KEYS {
                keys.known.remove(0);
            }
            keys.known.push((wrapped.clone(), key.clone()));
        });
    }

    /// Returns true if a key of some session was unwrapped: the keys of the application are not all wrong.
    pub fn has_unwrapped(&self) -> bool {
        self.has_unwrapped.get()
    }

    /// Returns the key that the session is written with.
    pub fn writing(&self, session: &str) -> Option<WritingKey<K>> {
        self.sessions.borrow().get(session)?.writing.clone()
    }

    /// Sets the key that the session is written with.
    pub fn set_writing(&self, session: &str, key: Option<WritingKey<K>>) {
        if key.is_some() || self.sessions.borrow().contains_key(session) {
            self.with(session, |keys| {
                keys.was_opened |= key.is_some();
                keys.writing = key;
            });
        }
    }

    /// Returns true if a head of the session was opened by a key of the application before.
    pub fn was_opened(&self, session: &str) -> bool {
        self.sessions.borrow().get(session).is_some_and(|keys| keys.was_opened)
    }

    /// Returns the lineage of the head that was returned last.
    pub fn lineage(&self, session: &str) -> Option<u64> {
        self.sessions.borrow().get(session)?.lineage
    }

    /// Keeps the lineage of a head that is returned.
    pub fn set_lineage(&self, session: &str, lineage: u64) {
        self.with(session, |keys| keys.lineage = Some(lineage));
    }

    /// Forgets the keys of a session that is not stored.
    pub fn set_absent(&self, session: &str) {
        self.with(session, |keys| *keys = SessionKeys { is_absent: true, used: keys.used, ..SessionKeys::default() });
    }

    /// Returns true, once, if the session was not stored when it was read last.
    pub fn take_absent(&self, session: &str) -> bool {
        let mut cache = self.sessions.borrow_mut();
        cache.get_mut(session).is_some_and(|keys| std::mem::take(&mut keys.is_absent))
    }

    /// Forgets the keys of a session.
    pub fn forget(&self, session: &str) {
        self.sessions.borrow_mut().remove(session);
    }

    /// Forgets all keys.
    pub fn clear(&self) {
        self.sessions.borrow_mut().clear();
    }

    /// Changes what is kept of a session. One more than the limit takes the place of that used longest ago.
    fn with(&self, session: &str, change: impl FnOnce(&mut SessionKeys<K>)) {
        let used = self.uses.get() + 1;
        self.uses.set(used);
        let mut cache = self.sessions.borrow_mut();
        if cache.len() >= MAX_SESSIONS && !cache.contains_key(session) {
            let oldest = cache.iter().min_by_key(|(_, keys)| keys.used).map(|(id, _)| id.clone());
            oldest.map(|id| cache.remove(&id));
        }
        let keys = cache.entry(session.to_owned()).or_default();
        keys.used = used;
        change(keys);
    }
}
