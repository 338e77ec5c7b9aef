//! Ids: their injected source, maps with ids as keys, and the hash that derives one id from another.

use std::collections::{BTreeMap, HashMap};

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

/// A map with ids as keys, in insertion order.
///
/// The index maps to a place in `values`, so that its code is in the wasm once and not once for each value type.
#[derive(Clone, Debug)]
pub struct IdMap<V> {
    index: IdIndex,
    values: Vec<V>,
}

/// The place of each id. Whoever writes a body chooses its ids: without a seed that they do not know, they could choose
/// ids of one hash, and each access would take time in proportion to all of them. A tree takes a few comparisons
/// whatever the ids are.
#[derive(Clone, Debug)]
enum IdIndex {
    Tree(BTreeMap<String, usize>),
    Table(HashMap<String, usize, Seed>),
}

impl IdIndex {
    fn with_seed(seed: Seed) -> Self {
        if seed == Seed::default() { Self::Tree(BTreeMap::new()) } else { Self::Table(HashMap::with_hasher(seed)) }
    }

    fn get(&self, id: &str) -> Option<usize> {
        match self {
            Self::Tree(tree) => tree.get(id),
            Self::Table(table) => table.get(id),
        }
        .copied()
    }

    /// Returns the place of an id, which is `next` if it has none yet.
    fn place(&mut self, id: &str, next: usize) -> usize {
        match self {
            // To search a large tree twice takes longer than to copy an id.
            Self::Tree(tree) => *tree.entry(id.to_owned()).or_insert(next),
            Self::Table(table) => table.get(id).copied().unwrap_or_else(|| {
                table.insert(id.to_owned(), next);
                next
            }),
        }
    }
}

impl<V> IdMap<V> {
    /// Creates an empty map.
    #[must_use]
    pub fn with_seed(seed: Seed) -> Self {
        Self { index: IdIndex::with_seed(seed), values: Vec::new() }
    }

    /// Reserves memory for so many ids.
    pub fn reserve(&mut self, count: usize) {
        if let IdIndex::Table(table) = &mut self.index {
            table.reserve(count);
        }
        self.values.reserve(count);
    }

    /// Returns the hash seed.
    #[must_use]
    pub fn seed(&self) -> Seed {
        match &self.index {
            IdIndex::Tree(_) => Seed::default(),
            IdIndex::Table(table) => *table.hasher(),
        }
    }

    /// Returns the value of an id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&V> {
        self.values.get(self.index.get(id)?)
    }

    /// Returns the value of an id for modification.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut V> {
        self.values.get_mut(self.index.get(id)?)
    }

    /// Returns true if the map has the id.
    #[must_use]
    pub fn contains_key(&self, id: &str) -> bool {
        self.index.get(id).is_some()
    }

    /// Sets the value of an id; returns the previous value.
    #[allow(clippy::needless_pass_by_value)] // most callers have the id to give away
    pub fn insert(&mut self, id: String, value: V) -> Option<V> {
        let at = self.index.place(&id, self.values.len());
        if let Some(current) = self.values.get_mut(at) {
            return Some(std::mem::replace(current, value));
        }
        self.values.push(value);
        None
    }

    /// Sets the value of an id that has none. Returns false, and changes nothing, if the id has one.
    pub fn insert_new(&mut self, id: &str, value: V) -> bool {
        let is_new = self.index.place(id, self.values.len()) == self.values.len();
        if is_new {
            self.values.push(value);
        }
        is_new
    }

    /// Returns the value of an id after inserting `value` if there is none.
    #[allow(clippy::indexing_slicing)] // every place in `index` is stored together with its value
    pub fn get_or_insert(&mut self, id: &str, value: V) -> &mut V {
        let at = self.index.place(id, self.values.len());
        if at == self.values.len() {
            self.values.push(value);
        }
        &mut self.values[at]
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

/// The hash seed of an [`IdMap`]: random in a binding, so that nobody can choose colliding ids; fixed in a test. Where
/// no seed is at hand, as in functions of a body, it is 0, the default, and the map is a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed(pub u64);

impl std::hash::BuildHasher for Seed {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        IdHasher { state: self.0 ^ MIX, factor: self.0.wrapping_mul(MIX) | 1 }
    }
}

/// The hasher of an [`IdMap`], which mixes eight bytes at a time. Both halves of each product count, and its factor is
/// of the seed: without the seed, nobody can tell which ids have one hash. In [`hash_words`] some pairs of words have,
/// whatever the seed is.
#[derive(Clone, Copy, Debug)]
pub struct IdHasher {
    state: u64,
    factor: u64,
}

impl IdHasher {
    #[allow(clippy::cast_possible_truncation)] // the lower half
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.factor);
        self.state = (product as u64 ^ (product >> 64) as u64).wrapping_add(self.factor);
    }
}

impl std::hash::Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        self.mix(rest.iter().fold(rest.len() as u64, |tail, byte| (tail << 8) | u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.state ^ (self.state >> 29)
    }
}

/// Returns a fast hash of a long text. Segments store it, so it may not change. Each step is reversible: if only one
/// word of two texts differs, their hashes differ.
#[must_use]
pub fn hash_words(seed: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(seed, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let tail = rest.iter().fold(rest.len() as u64, |tail, byte| (tail << 8) | u64::from(*byte));
    finish(mix(hash, tail))
}

/// Returns [`hash_words`] of one word, without reading bytes.
#[must_use]
#[inline]
pub fn hash_word(seed: u64, word: u64) -> u64 {
    finish(mix(mix(seed, word), 0))
}

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25)
}

#[inline]
fn finish(hash: u64) -> u64 {
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
    fn the_hash_of_a_word_is_that_of_its_bytes() {
        for (seed, word) in [(0, 0), (1, 7), (u64::MAX, 0x0102_0304_0506_0708)] {
            assert_eq!(hash_word(seed, word), hash_words(seed, &word.to_le_bytes()));
        }
    }

    #[test]
    fn r05_derived_ids_are_stable_and_evenly_distributed() {
        assert_eq!(short_name("call_1", 25), "9gD2DimctxN68PmpqJzxfgGvD");
        assert_eq!(short_name("call_1", 9), short_name("call_1", 9));
        let mut names: Vec<_> = (0..10_000).map(|n| short_name(&format!("call_{n}"), 9)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 10_000);
    }

    #[test]
    fn r63_ids_of_one_hash_cannot_be_chosen() {
        // Without a seed there is no hash.
        assert!(matches!(IdMap::<()>::with_seed(Seed::default()).index, IdIndex::Tree(_)));
        // These have one hash in `hash_words` for half of the seeds, so a few such blocks in a row make thousands of
        // ids of one hash.
        let (one, two) = (b"call-xx!--A-----", b"call-xxa--a-----");
        let hash_of = |seed: u64, id: &[u8]| {
            let mut hasher = std::hash::BuildHasher::build_hasher(&Seed(seed));
            std::hash::Hasher::write(&mut hasher, id);
            std::hash::Hasher::finish(&hasher)
        };
        let seeds = (1..1000_u64).map(|seed| hash(&seed.to_le_bytes()));
        assert!(seeds.clone().filter(|seed| hash_words(*seed, one) == hash_words(*seed, two)).count() > 300);
        assert_eq!(seeds.filter(|seed| hash_of(*seed, one) == hash_of(*seed, two)).count(), 0);
    }

    #[test]
    fn r63_both_kinds_of_map_keep_their_ids_in_order() {
        for seed in [Seed::default(), Seed(7)] {
            let mut map = IdMap::with_seed(seed);
            assert!((0..1000).all(|n| map.insert_new(&format!("call_{n}"), n)));
            assert!(!map.insert_new("call_5", 0));
            assert_eq!((map.insert("call_5".into(), 50), *map.get_or_insert("call_6", 0)), (Some(5), 6));
            assert_eq!((*map.get_or_insert("new", 1), map.count(), map.seed()), (1, 1001, seed));
            assert!(map.values_mut().map(|value| *value).take(4).eq(0..4));
            assert_eq!((map.get("call_999"), map.get("call_1000")), (Some(&999), None));
        }
    }
}
