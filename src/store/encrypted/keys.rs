//! The keys of sessions that were unwrapped.

use super::cipher::UnwrappedKey;
use bytes::Bytes;
use std::cell::RefCell;
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
}

struct SessionKeys<K> {
    /// By their wrapped forms.
    known: BTreeMap<Bytes, UnwrappedKey<K>>,
    writing: Option<WritingKey<K>>,
}

/// The keys of all sessions.
pub(super) struct KeyCache<K>(RefCell<BTreeMap<String, SessionKeys<K>>>);

impl<K> Default for KeyCache<K> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<K: Clone> KeyCache<K> {
    /// Returns the key of a wrapped form.
    pub fn get(&self, session: &str, wrapped: &Bytes) -> Option<UnwrappedKey<K>> {
        self.0.borrow().get(session)?.known.get(wrapped).cloned()
    }

    /// Returns all keys of a session.
    pub fn all(&self, session: &str) -> Vec<K> {
        let cache = self.0.borrow();
        cache.get(session).into_iter().flat_map(|keys| keys.known.values().map(|key| key.key.clone())).collect()
    }

    /// Keeps a key.
    pub fn add(&self, session: &str, wrapped: &Bytes, key: &UnwrappedKey<K>) {
        self.with(session, |keys| {
            if keys.known.len() >= MAX_KEYS {
                keys.known.clear();
            }
            keys.known.insert(wrapped.clone(), key.clone());
        });
    }

    /// Returns the key that the session is written with.
    pub fn writing(&self, session: &str) -> Option<WritingKey<K>> {
        self.0.borrow().get(session)?.writing.clone()
    }

    /// Sets the key that the session is written with.
    pub fn set_writing(&self, session: &str, key: Option<WritingKey<K>>) {
        if key.is_some() || self.0.borrow().contains_key(session) {
            self.with(session, |keys| keys.writing = key);
        }
    }

    /// Forgets the keys of a session.
    pub fn forget(&self, session: &str) {
        self.0.borrow_mut().remove(session);
    }

    /// Forgets all keys.
    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    fn with(&self, session: &str, change: impl FnOnce(&mut SessionKeys<K>)) {
        let mut cache = self.0.borrow_mut();
        if cache.len() >= MAX_SESSIONS && !cache.contains_key(session) {
            cache.clear();
        }
        change(
            cache.entry(session.to_owned()).or_insert_with(|| SessionKeys { known: BTreeMap::new(), writing: None }),
        );
    }
}
