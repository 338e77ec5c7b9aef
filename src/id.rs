//! Ids: their injected source, maps with ids as keys, and the hash that derives one id from another.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A source of ids that no other writer creates.
pub trait IdSource {
    /// Returns a new id of letters, digits, `-` and `_`.
    fn new_id(&self) -> String;
}

/// An id source that counts, for tests: every build gives the same ids.
#[derive(Debug, Default)]
pub struct CountingIds(std::cell::Cell<u64>);

impl IdSource for CountingIds {
    fn new_id(&self) -> String {
        self.0.set(self.0.get() + 1);
        format!("id-{}", self.0.get())
    }
}

/// The 64-bit FNV-1a hash of nothing.
pub const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Returns the 64-bit FNV-1a hash, which is the same in every build and on every platform.
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    hash_on(HASH_START, bytes)
}

/// Continues an FNV-1a hash with more bytes.
#[must_use]
pub fn hash_on(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A map with ids as keys, in insertion order. Its hash seed is passed in, since the standard one asks the platform for randomness.
///
/// The hash table maps to an index into `values`, so that its code is in the wasm once and not once for each value type.
#[derive(Clone, Debug)]
pub struct IdMap<V> {
    indexes: IndexById,
    values: Vec<V>,
}

type IndexById = HashMap<String, usize, Seed>;

impl<V> IdMap<V> {
    /// Creates an empty map.
    #[must_use]
    pub fn with_seed(seed: Seed) -> Self {
        Self { indexes: IndexById::with_hasher(seed), values: Vec::new() }
    }

    /// Reserves memory for so many ids.
    pub fn reserve(&mut self, count: usize) {
        self.indexes.reserve(count);
        self.values.reserve(count);
    }

    /// Returns the hash seed.
    #[must_use]
    pub fn seed(&self) -> Seed {
        *self.indexes.hasher()
    }

    /// Returns the value of an id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&V> {
        self.values.get(*self.indexes.get(id)?)
    }

    /// Returns the value of an id for modification.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut V> {
        self.values.get_mut(*self.indexes.get(id)?)
    }

    /// Returns true if the map has the id.
    #[must_use]
    pub fn contains_key(&self, id: &str) -> bool {
        self.indexes.contains_key(id)
    }

    /// Sets the value of an id; returns the previous value.
    pub fn insert(&mut self, id: String, value: V) -> Option<V> {
        if let Some(current) = self.get_mut(&id) {
            return Some(std::mem::replace(current, value));
        }
        self.indexes.insert(id, self.values.len());
        self.values.push(value);
        None
    }

    /// Sets the value of an id that has none. Returns false, and changes nothing, if the id has one.
    pub fn insert_new(&mut self, id: &str, value: V) -> bool {
        let Entry::Vacant(vacant) = self.indexes.entry(id.to_owned()) else { return false };
        vacant.insert(self.values.len());
        self.values.push(value);
        true
    }

    /// Returns the value of an id after inserting `value` if there is none.
    #[allow(clippy::indexing_slicing)] // every index in `indexes` was stored together with its value
    pub fn get_or_insert(&mut self, id: &str, value: V) -> &mut V {
        let index = match self.indexes.get(id) {
            Some(index) => *index,
            None => {
                self.indexes.insert(id.to_owned(), self.values.len());
                self.values.push(value);
                self.values.len() - 1
            }
        };
        &mut self.values[index]
    }

    /// Iterates over all values, in insertion order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.iter_mut()
    }

    /// Returns the number of ids.
    #[must_use]
    pub fn count(&self) -> usize {
        self.values.len()
    }
}

/// The hash seed of an [`IdMap`]: random in a binding, so that nobody can choose colliding ids; fixed in a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed(pub u64);

impl std::hash::BuildHasher for Seed {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher(self.0 ^ 0x9e37_79b9_7f4a_7c15)
    }
}

/// The hasher of an [`IdMap`], which mixes eight bytes at a time.
#[derive(Clone, Copy, Debug)]
pub struct IdHasher(u64);

impl std::hash::Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash_words(self.0, bytes);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}

/// Returns a fast hash of a long text. Segments store it, so it may not change. Each step is reversible: if only one word of two texts differs, their
/// hashes differ.
#[must_use]
pub fn hash_words(seed: u64, bytes: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(seed, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let tail = rest.iter().fold(rest.len() as u64, |tail, byte| (tail << 8) | u64::from(*byte));
    let hash = mix(hash, tail);
    hash ^ (hash >> 31)
}

/// Returns `length` letters and digits derived from `text`: the same text gives the same name in every build.
#[must_use]
pub fn short_name(text: &str, length: usize) -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut value = hash(text.as_bytes());
    let mut out = String::with_capacity(length);
    for place in 0..length {
        // One hash gives ten letters; a longer name needs another hash.
        if place > 0 && place % 10 == 0 {
            // `u64`, because the width of `usize` differs between platforms.
            value = hash_on(hash(text.as_bytes()), &(place as u64).to_le_bytes());
        }
        let letter = usize::try_from(value % 62).ok().and_then(|at| LETTERS.get(at)).copied().unwrap_or(b'0');
        out.push(char::from(letter));
        value /= 62;
    }
    out
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn r05_derived_ids_are_stable_and_evenly_distributed() {
        assert_eq!(short_name("call_1", 25), "9gD2DimctxN68PmpqJzxfgGvD");
        assert_eq!(short_name("call_1", 9), short_name("call_1", 9));
        let mut names: Vec<_> = (0..10_000).map(|n| short_name(&format!("call_{n}"), 9)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 10_000);
    }
}
