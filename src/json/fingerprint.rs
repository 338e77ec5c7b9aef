//! A hash of a JSON value that ignores white space and the order of members.

use super::tokens::{JsonToken, JsonTokens};
use super::view::JsonRef;
use crate::id::{hash_word, hash_words};

/// An array or an object that is open.
struct OpenValue {
    is_object: bool,
    hash: u64,
    /// The hash of the newest key.
    key: u64,
}

impl OpenValue {
    /// The first hash is not 0: `hash_word(0, 0)` is 0, so `[[]]` would be equal to `[]`.
    fn new(is_object: bool) -> Self {
        Self { is_object, hash: 1 + u64::from(is_object), key: 0 }
    }

    /// Adds an item, or the value of the newest key. The members of an object are added up, so their order has no
    /// effect.
    fn add(&mut self, value: u64) {
        if self.is_object {
            self.hash = self.hash.wrapping_add(hash_word(self.key, value));
        } else {
            self.hash = hash_word(self.hash, value);
        }
    }
}

impl JsonRef<'_> {
    /// Returns a hash that does not depend on white space and on the order of members. Numbers and strings are equal if
    /// they are written alike.
    #[must_use]
    pub fn fingerprint(self) -> u64 {
        let mut open = vec![OpenValue::new(false)];
        for token in JsonTokens::of(self) {
            let value = match token {
                JsonToken::Open { is_object } => {
                    open.push(OpenValue::new(is_object));
                    continue;
                }
                JsonToken::Key(key) => {
                    if let Some(object) = open.last_mut() {
                        object.key = hash_words(0, key.as_bytes());
                    }
                    continue;
                }
                JsonToken::Close => open.pop().map_or(0, |value| value.hash),
                JsonToken::Text(token) | JsonToken::Literal(token) => hash_words(0, token.as_bytes()),
            };
            if let Some(outer) = open.last_mut() {
                outer.add(value);
            }
        }
        open.first().map_or(0, |whole| whole.hash)
    }

    /// Returns true if the values are equal but for white space and the order of members, by their hashes of 64 bits.
    #[must_use]
    pub fn has_same_fingerprint(self, other: JsonRef<'_>) -> bool {
        self.as_raw() == other.as_raw() || self.fingerprint() == other.fingerprint()
    }
}
