//! A hash of a JSON value that ignores white space and the order of members.

use super::scan::skip_string;
use super::view::JsonRef;
use crate::id::hash_words;

/// An array or an object that is open.
struct OpenValue {
    is_object: bool,
    hash: u64,
    /// The hash of the newest key.
    key: u64,
}

impl OpenValue {
    /// The first hash is not 0: `mix(0, 0)` is 0, so `[[]]` would be equal to `[]`.
    fn new(is_object: bool) -> Self {
        Self { is_object, hash: 1 + u64::from(is_object), key: 0 }
    }

    /// Adds an item, or the value of the newest key. The members of an object are added up, so their order has no effect.
    fn add(&mut self, value: u64) {
        if self.is_object {
            self.hash = self.hash.wrapping_add(mix(self.key, value));
        } else {
            self.hash = mix(self.hash, value);
        }
    }
}

fn mix(seed: u64, value: u64) -> u64 {
    hash_words(seed, &value.to_le_bytes())
}

impl JsonRef<'_> {
    /// Returns a hash that does not depend on white space and on the order of members. Numbers and strings are equal if they are written alike.
    #[must_use]
    pub fn fingerprint(self) -> u64 {
        let text = self.as_raw();
        let bytes = text.as_bytes();
        let token = |start: usize, end: usize| hash_words(0, bytes.get(start..end).unwrap_or(&[]));
        let mut open = vec![OpenValue::new(false)];
        let (mut at, mut is_key) = (0, false);
        while let Some(byte) = bytes.get(at) {
            let start = at;
            at += 1;
            let value = match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b':' => continue,
                b',' => {
                    is_key = open.last().is_some_and(|value| value.is_object);
                    continue;
                }
                b'{' | b'[' => {
                    is_key = *byte == b'{';
                    open.push(OpenValue::new(is_key));
                    continue;
                }
                b'}' | b']' => open.pop().map_or(0, |value| value.hash),
                b'"' => {
                    at = skip_string(bytes, start);
                    token(start, at)
                }
                _ => {
                    while !matches!(bytes.get(at), None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')) {
                        at += 1;
                    }
                    token(start, at)
                }
            };
            if let Some(outer) = open.last_mut() {
                if is_key && *byte == b'"' {
                    outer.key = value;
                } else {
                    outer.add(value);
                }
            }
            is_key = false;
        }
        open.first().map_or(0, |whole| whole.hash)
    }

    /// Returns true if the values are equal but for white space and the order of members, by their hashes of 64 bits.
    #[must_use]
    pub fn has_same_fingerprint(self, other: JsonRef<'_>) -> bool {
        self.as_raw() == other.as_raw() || self.fingerprint() == other.fingerprint()
    }
}
