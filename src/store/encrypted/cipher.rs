//! What encrypts: of the platform, so that no key is in this program's memory.

use crate::store::StoreFuture;
use bytes::Bytes;

/// A value, and where it belongs: additional data that is authenticated with it.
#[derive(Clone, Debug)]
pub struct PlacedValue<K> {
    /// The key of its session.
    pub key: K,
    /// Where it is stored.
    pub place: Bytes,
    /// The value.
    pub value: Bytes,
}

/// A session's key that was unwrapped.
#[derive(Clone, Debug)]
pub struct UnwrappedKey<K> {
    /// A handle on it.
    pub key: K,
    /// The same key wrapped by the current key of the application, if an earlier one had wrapped it.
    pub rewrapped: Option<Bytes>,
}

/// Authenticated encryption, and keys of sessions that a key of the application wraps. It draws the random bytes that
/// it needs. `place` is authenticated with what is wrapped or sealed: with another one nothing is opened.
pub trait Cipher {
    /// A handle on a session's key.
    type Key: Clone;

    /// How many bytes sealing adds to a value.
    const SEALED_BYTES: usize;

    /// Makes a session's key. Returns it with its wrapped form.
    ///
    /// # Errors
    /// If the platform fails.
    fn generate(&self, place: Bytes) -> StoreFuture<'_, (Self::Key, Bytes)>;

    /// Unwraps a session's key; none if no key of the application has wrapped it for this place.
    ///
    /// # Errors
    /// If the platform fails.
    fn unwrap_key(&self, wrapped: Bytes, place: Bytes) -> StoreFuture<'_, Option<UnwrappedKey<Self::Key>>>;

    /// Encrypts values, each with a nonce that is never used again.
    ///
    /// # Errors
    /// If the platform fails.
    fn seal(&self, values: Vec<PlacedValue<Self::Key>>) -> StoreFuture<'_, Vec<Bytes>>;

    /// Decrypts values. None stands for one that was not sealed with this key for this place.
    ///
    /// # Errors
    /// If the platform fails.
    fn open(&self, values: Vec<PlacedValue<Self::Key>>) -> StoreFuture<'_, Vec<Option<Bytes>>>;
}
