//! A small map, kept sorted in one vector.
//!
//! For tables of a few entries, or whose keys come in order: then it does what a tree does, in a fraction
//! of the code that each tree brings into the wasm. By call or message id over a whole history use
//! [`IdMap`](crate::id::IdMap).

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The items in order, equal ones as they stood. The one sort of the core: the standard library's are made anew for each type, and
/// each is as large in the wasm as a codec's decoder.
pub fn in_order<T>(mut items: Vec<T>, compare: &dyn Fn(&T, &T) -> Ordering) -> Vec<T> {
    let swaps = swaps_to_order(items.len(), &|a, b| match (items.get(a), items.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    for (a, b) in swaps {
        items.swap(a, b);
    }
    items
}

/// Which places to swap, one pair after the other, so that all is in order.
fn swaps_to_order(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<(usize, usize)> {
    let mut swaps = Vec::new();
    // Where each item is by now, and which one is at each place.
    let mut place_of: Vec<usize> = (0..len).collect();
    let mut item_at = place_of.clone();
    for (to, item) in places_in_order(len, compare).into_iter().enumerate() {
        let from = place_of.get(item).copied().unwrap_or(to);
        let there = item_at.get(to).copied().unwrap_or(item);
        if let (Some(place), Some(own)) = (place_of.get_mut(there), item_at.get_mut(from)) {
            (*place, *own) = (from, there);
        }
        if from != to {
            swaps.push((to, from));
        }
    }
    swaps
}

fn places_in_order(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    struct Place<'a>(usize, &'a dyn Fn(usize, usize) -> Ordering);
    impl Ord for Place<'_> {
        fn cmp(&self, other: &Self) -> Ordering {
            (self.1)(self.0, other.0).then(self.0.cmp(&other.0))
        }
    }
    impl PartialOrd for Place<'_> {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }
    impl PartialEq for Place<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other) == Ordering::Equal
        }
    }
    impl Eq for Place<'_> {}
    let heap: BinaryHeap<Place<'_>> = (0..len).map(|place| Place(place, compare)).collect();
    heap.into_sorted_vec().into_iter().map(|place| place.0).collect()
}

/// The place of what `compare` looks for, or else where it belongs, among so many in order.
fn place_among(len: usize, compare: &dyn Fn(usize) -> Ordering) -> Result<usize, usize> {
    let (mut from, mut to) = (0, len);
    // Keys that come in order are the usual case: the last one is looked at first.
    let mut at = len.saturating_sub(1);
    while from < to {
        match compare(at) {
            Ordering::Equal => return Ok(at),
            Ordering::Less => from = at + 1,
            Ordering::Greater => to = at,
        }
        at = from + (to - from) / 2;
    }
    Err(from)
}

/// Sorted by key; each key once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sorted<K, V>(Vec<(K, V)>);

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord, V> Sorted<K, V> {
    /// Empty.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        place_among(self.0.len(), &|at| self.0.get(at).map_or(Ordering::Equal, |(own, _)| own.borrow().cmp(key)))
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(self.place(key).ok()?).map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let at = self.place(key).ok()?;
        self.0.get_mut(at).map(|(_, value)| value)
    }

    /// Whether there is such a key.
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok()
    }

    /// Sets a key's value; true when the key is new.
    pub fn insert(&mut self, key: K, value: V) -> bool {
        let place = self.place(&key);
        match place {
            Ok(at) => {
                if let Some((_, own)) = self.0.get_mut(at) {
                    *own = value;
                }
            }
            Err(at) => self.0.insert(at, (key, value)),
        }
        place.is_err()
    }

    /// Takes a key out.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| self.0.remove(at).1)
    }

    /// The value of a key, made if there is none.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> Option<&mut V> {
        let at = match self.place(&key) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (key, make()));
                at
            }
        };
        self.0.get_mut(at).map(|(_, value)| value)
    }

    /// Keeps what the test says.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| keep(key, value));
    }

    /// The entries whose keys are not before `key`.
    pub fn from<Q: Ord + ?Sized>(&self, key: &Q) -> &[(K, V)]
    where
        K: Borrow<Q>,
    {
        let at = self.place(key).unwrap_or_else(|at| at);
        self.0.get(at..).unwrap_or(&[])
    }

    /// All entries.
    #[must_use]
    pub fn entries(&self) -> &[(K, V)] {
        &self.0
    }

    /// All values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Sorted<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut sorted = Self::new();
        for (key, value) in entries {
            sorted.insert(key, value);
        }
        sorted
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn orders_as_a_stable_sort_does(items in proptest::collection::vec((0_u8..9, any::<u8>()), 0..80)) {
            let mut want = items.clone();
            want.sort_by_key(|(key, _)| *key);
            prop_assert_eq!(in_order(items, &|a, b| a.0.cmp(&b.0)), want);
        }

        #[test]
        fn does_what_a_tree_does(steps in proptest::collection::vec((any::<bool>(), 0_u8..20, any::<u8>()), 0..80)) {
            let mut tree = std::collections::BTreeMap::new();
            let mut sorted = Sorted::new();
            for (insert, key, value) in steps {
                if insert {
                    prop_assert_eq!(tree.insert(key, value).is_none(), sorted.insert(key, value));
                } else {
                    prop_assert_eq!(tree.remove(&key), sorted.remove(&key));
                }
                prop_assert_eq!(tree.get(&key), sorted.get(&key));
                prop_assert!(tree.iter().map(|(k, v)| (*k, *v)).eq(sorted.entries().iter().copied()));
                prop_assert!(tree.range(key..).map(|(k, v)| (*k, *v)).eq(sorted.from(&key).iter().copied()));
            }
        }
    }
}
