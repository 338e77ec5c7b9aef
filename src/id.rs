//! Ids, injected, and the hash by which an id is derived from another.

/// Makes ids that no other writer makes.
pub trait IdSource {
    /// A fresh id: letters, digits, `-` and `_` only.
    fn new_id(&self) -> String;
}

/// Counts: for tests, where every build must give the same ids.
#[derive(Debug, Default)]
pub struct CountingIds(std::cell::Cell<u64>);

impl IdSource for CountingIds {
    fn new_id(&self) -> String {
        self.0.set(self.0.get() + 1);
        format!("id-{}", self.0.get())
    }
}

/// The 64-bit FNV-1a hash: the same on every build and platform.
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    hash_on(0xcbf2_9ce4_8422_2325, bytes)
}

/// Goes on hashing from an earlier value.
#[must_use]
pub fn hash_on(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A map by id. Hashed with a seed that is passed in: the standard one would ask the platform for randomness.
///
/// It is one table for every type of value, which says where in a list the value stands: a table of its own would bring its code
/// into the wasm again for each type.
#[derive(Clone, Debug)]
pub struct IdMap<V> {
    places: IndexById,
    values: Vec<V>,
}

type IndexById = std::collections::HashMap<String, usize, Seed>;

impl<V> IdMap<V> {
    /// Empty.
    #[must_use]
    pub fn with_seed(seed: Seed) -> Self {
        Self { places: IndexById::with_hasher(seed), values: Vec::new() }
    }

    /// What it hashes with.
    #[must_use]
    pub fn seed(&self) -> Seed {
        *self.places.hasher()
    }

    /// The value of an id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&V> {
        self.values.get(*self.places.get(id)?)
    }

    /// The value of an id, to be changed.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut V> {
        self.values.get_mut(*self.places.get(id)?)
    }

    /// Whether there is such an id.
    #[must_use]
    pub fn contains_key(&self, id: &str) -> bool {
        self.places.contains_key(id)
    }

    /// Sets an id's value; gives the one it had.
    pub fn insert(&mut self, id: String, value: V) -> Option<V> {
        if let Some(own) = self.get_mut(&id) {
            return Some(std::mem::replace(own, value));
        }
        self.places.insert(id, self.values.len());
        self.values.push(value);
        None
    }

    /// The value of an id; where there is none, this one from now on.
    #[allow(clippy::indexing_slicing)] // proof: every place was given with its value
    pub fn get_or_insert(&mut self, id: &str, value: V) -> &mut V {
        let at = match self.places.get(id) {
            Some(at) => *at,
            None => {
                self.places.insert(id.to_owned(), self.values.len());
                self.values.push(value);
                self.values.len() - 1
            }
        };
        &mut self.values[at]
    }

    /// All values, in the order in which their ids came.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.iter_mut()
    }

    /// How many ids there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.values.len()
    }
}

/// The seed of an [`IdMap`]: unguessable in a binding, fixed in a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed(pub u64);

impl std::hash::BuildHasher for Seed {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher(self.0 ^ 0x9e37_79b9_7f4a_7c15)
    }
}

/// Mixes eight bytes at a time.
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

/// A quick hash of a long text, for telling whether two are the same within one process.
#[must_use]
pub fn hash_words(seed: u64, bytes: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(seed, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let tail = rest.iter().fold(rest.len() as u64, |tail, byte| (tail << 8) | u64::from(*byte));
    let hash = mix(hash, tail);
    hash ^ (hash >> 31)
}

/// `length` letters and digits that stand for `text`: the same text gives the same ones.
#[must_use]
pub fn short_name(text: &str, length: usize) -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut value = hash(text.as_bytes());
    let mut out = String::with_capacity(length);
    for place in 0..length {
        // One hash holds ten letters; a longer name hashes on.
        if place > 0 && place % 10 == 0 {
            // As wide on every platform: a pointer is not.
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
    fn r05_names_are_stable_and_spread() {
        assert_eq!(short_name("call_1", 25), "9gD2DimctxN68PmpqJzxfgGvD");
        assert_eq!(short_name("call_1", 9), short_name("call_1", 9));
        let mut names: Vec<_> = (0..10_000).map(|n| short_name(&format!("call_{n}"), 9)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 10_000);
    }
}
