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

/// `length` letters and digits that stand for `text`: the same text gives the same ones.
#[must_use]
pub fn short_name(text: &str, length: usize) -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut value = hash(text.as_bytes());
    let mut out = String::with_capacity(length);
    for place in 0..length {
        // One hash holds ten letters; a longer name hashes on.
        if place > 0 && place % 10 == 0 {
            value = hash_on(hash(text.as_bytes()), &place.to_le_bytes());
        }
        let letter = usize::try_from(value % 62).ok().and_then(|at| LETTERS.get(at)).copied().unwrap_or(b'0');
        out.push(char::from(letter));
        value /= 62;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stable_and_spread() {
        assert_eq!(short_name("call_1", 9), short_name("call_1", 9));
        let mut names: Vec<_> = (0..10_000).map(|n| short_name(&format!("call_{n}"), 9)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 10_000);
    }
}
