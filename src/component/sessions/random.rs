//! Random numbers and ids, made of the random bytes that the host passes with each step.

use crate::error::{Error, Result};
use std::cell::Cell;

/// The least number of random bytes of a moment: two engines that drew fewer might give two runs one id.
pub const MIN_RANDOM_BYTES: usize = 16;

/// Digits of the fractional part of pi: a state of zeros would stay one.
const START: [u64; 4] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];

/// A generator (xoshiro256++), into which the host's bytes are mixed.
pub struct Random(Cell<[u64; 4]>);

impl Default for Random {
    fn default() -> Self {
        Self(Cell::new(START))
    }
}

impl Random {
    /// Mixes bytes of the host into the state.
    ///
    /// # Errors
    /// `invalid_input` for fewer than [`MIN_RANDOM_BYTES`].
    pub fn mix(&self, bytes: &[u8]) -> Result<()> {
        if bytes.len() < MIN_RANDOM_BYTES {
            return Err(Error::invalid(format!(
                "a moment needs {MIN_RANDOM_BYTES} random bytes, of which ids are made; {} were passed",
                bytes.len()
            )));
        }
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
            let [a, b, c, d] = self.0.get();
            self.0.set([a ^ word, b, c, d]);
            // So that each word reaches all of the state before the next one is mixed in.
            for _ in 0..8 {
                self.next();
            }
        }
        Ok(())
    }

    /// Returns the next number.
    pub fn next(&self) -> u64 {
        let [a, b, c, d] = self.0.get();
        let number = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c2, d2) = (c ^ a, d ^ b);
        self.0.set([a ^ d2, b ^ c2, c2 ^ (b << 17), d2.rotate_left(45)]);
        number
    }

    /// Returns an id of 16 letters and digits.
    pub fn id(&self) -> String {
        const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let bytes = [self.next().to_le_bytes(), self.next().to_le_bytes()];
        let letter = |byte: &u8| char::from(LETTERS.get(usize::from(byte % 32)).copied().unwrap_or(b'0'));
        bytes.as_flattened().iter().map(letter).collect()
    }
}
