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
    places: Places,
    values: Vec<V>,
}

impl<V> IdMap<V> {
    /// Empty.
    #[must_use]
    pub fn with_hasher(seed: Seed) -> Self {
        Self { places: Places { seed, slots: Vec::new(), ids: Vec::new() }, values: Vec::new() }
    }

    /// What it hashes with.
    #[must_use]
    pub fn seed(&self) -> Seed {
        self.places.seed
    }

    /// The value of an id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&V> {
        self.values.get(self.places.find(id).ok()?)
    }

    /// The value of an id, to be changed.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut V> {
        self.values.get_mut(self.places.find(id).ok()?)
    }

    /// Whether there is such an id.
    #[must_use]
    pub fn contains_key(&self, id: &str) -> bool {
        self.places.find(id).is_ok()
    }

    /// Sets an id's value; gives the one it had.
    pub fn insert(&mut self, id: String, value: V) -> Option<V> {
        if let Some(own) = self.get_mut(&id) {
            return Some(std::mem::replace(own, value));
        }
        self.places.add(id);
        self.values.push(value);
        None
    }

    /// The value of an id, made if there is none.
    #[allow(clippy::indexing_slicing)] // proof: every place was given with its value
    pub fn get_or_insert(&mut self, id: &str, value: V) -> &mut V {
        let at = self.places.find(id).unwrap_or_else(|_| {
            self.places.add(id.to_owned());
            self.values.push(value);
            self.values.len() - 1
        });
        &mut self.values[at]
    }

    /// All values, in the order in which their ids came.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.iter_mut()
    }
}

/// The seed of an [`IdMap`]: unguessable in a binding, fixed in a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed(pub u64);

/// Ids in the order in which they came, and a table of their places: a quarter of it is free at least, and what finds its slot
/// taken stands in the next one that is free.
#[derive(Clone, Debug)]
struct Places {
    seed: Seed,
    /// 0 is free; otherwise one more than the place. As many as a power of two.
    slots: Vec<usize>,
    ids: Vec<String>,
}

impl Places {
    /// The place of an id, or the slot that is free for it.
    #[allow(clippy::cast_possible_truncation)] // the lower half of a hash is as good
    fn find(&self, id: &str) -> Result<usize, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash_words(self.seed.0 ^ 0x9e37_79b9_7f4a_7c15, id.as_bytes()) as usize & mask;
        loop {
            let Some(place) = self.slots.get(at).and_then(|slot| slot.checked_sub(1)) else { return Err(at) };
            if self.ids.get(place).is_some_and(|own| own == id) {
                return Ok(place);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds an id that is not there.
    fn add(&mut self, id: String) {
        if self.ids.len() >= self.slots.len() / 4 * 3 {
            self.slots = vec![0; (self.slots.len() * 2).max(8)];
            for (place, id) in std::mem::take(&mut self.ids).into_iter().enumerate() {
                self.place(&id, place);
                self.ids.push(id);
            }
        }
        self.place(&id, self.ids.len());
        self.ids.push(id);
    }

    fn place(&mut self, id: &str, place: usize) {
        if let Err(at) = self.find(id)
            && let Some(slot) = self.slots.get_mut(at)
        {
            *slot = place + 1;
        }
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

    #[test]
    fn a_map_finds_what_was_put_in() {
        let mut map = IdMap::with_hasher(Seed(7));
        for n in 0..1000_usize {
            assert!(map.get(&format!("id-{n}")).is_none());
            assert!(map.insert(format!("id-{n}"), n).is_none());
        }
        assert_eq!(map.insert("id-3".into(), 0), Some(3));
        *map.get_or_insert("id-3", 9) += 1;
        assert_eq!(*map.get_or_insert("other", 9), 9);
        for n in 0..1000_usize {
            assert_eq!(map.get(&format!("id-{n}")).copied(), Some(if n == 3 { 1 } else { n }));
        }
        assert!(map.contains_key("other") && !map.contains_key("id-1000"));
        assert_eq!(map.values_mut().count(), 1001);
    }
}
