//! [`TermFilter`]: which terms the texts of a session may have, in a bounded number of bytes.
//!
//! A search reads the filter of every session, so it is part of the head. It has no false negatives: no text has what
//! it does not contain. Whether one has what it contains, only the text shows.

use crate::encoding::encode_fields;
use minicbor::bytes::ByteVec;

/// Maximum size of a filter, in bytes: each append writes it. False positives: at most 1 % with 250 terms, about 20 %
/// with 1,000.
const MAX_BYTES: usize = 512;

/// The number of bits of a term's number in a filter that is not full.
const START_BITS: u32 = 20;

/// The number of bits for which a bit for each number takes [`MAX_BYTES`].
const BITMAP_BITS: u32 = 12;

/// A set of terms, of each of which it keeps some bits of its hash.
///
/// While these are few, they are a sorted list, as the differences between neighbours; else a bit for each possible
/// number. When the list gets too long, its numbers lose their lowest bit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermFilter {
    /// The revision of the history that it covers. A build that does not know the filter leaves it behind.
    revision: u64,
    /// The number of bits of each term's number, 0 while there is no term.
    bits: u32,
    bytes: Option<ByteVec>,
    /// The [`FORM`](Self::FORM) of its terms.
    form: u32,
}
encode_fields!(struct TermFilter {
    0 => revision,
    1 => bits,
    2 => bytes,
    3 => form,
});

impl TermFilter {
    /// Counts the changes of what a term is and of its hash. A filter of another form counts as absent.
    pub const FORM: u32 = 1;

    /// Creates a filter without terms, of a history at a revision.
    #[must_use]
    pub fn empty(revision: u64) -> Self {
        Self { revision, form: Self::FORM, ..Self::default() }
    }

    /// Returns true if it has the terms of the history at this revision.
    #[must_use]
    pub fn covers(&self, revision: u64) -> bool {
        let is_known = self.form == Self::FORM && self.is_readable();
        self.revision == revision && (is_known || revision == 0)
    }

    /// Sets the revision of the history whose terms it has.
    pub fn set_revision(&mut self, revision: u64) {
        (self.revision, self.form) = (revision, Self::FORM);
    }

    /// Adds the hashes of terms to one that [covers](Self::covers) a history.
    pub fn add(&mut self, hashes: &[u32]) {
        if hashes.is_empty() {
            return;
        }
        let mut bits = if self.bits == 0 { START_BITS } else { self.bits };
        let mut numbers = self.numbers();
        numbers.extend(hashes.iter().map(|hash| number_of(*hash, bits)));
        loop {
            numbers.sort_unstable();
            numbers.dedup();
            let bytes = if bits <= BITMAP_BITS { bitmap(&numbers) } else { differences(&numbers) };
            if bytes.len() <= MAX_BYTES {
                (self.bits, self.bytes) = (bits, Some(bytes.into()));
                return;
            }
            bits -= 1;
            numbers.iter_mut().for_each(|number| *number >>= 1);
        }
    }

    /// Returns false if one of the terms is in no text of the history that it [covers](Self::covers).
    #[must_use]
    pub fn may_have_all(&self, hashes: &[u32]) -> bool {
        if self.bits == 0 {
            return hashes.is_empty();
        }
        let numbers = hashes.iter().map(|hash| number_of(*hash, self.bits));
        if self.bits <= BITMAP_BITS {
            return numbers.into_iter().all(|number| has_bit(self.bytes(), number));
        }
        let mut wanted: Vec<u32> = numbers.collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut wanted = wanted.into_iter().peekable();
        for number in Differences::of(self.bytes()) {
            match wanted.peek() {
                Some(next) if *next < number => return false,
                Some(next) if *next == number => drop(wanted.next()),
                Some(_) => {}
                None => return true,
            }
        }
        wanted.peek().is_none()
    }

    /// Returns the number of bytes that its terms take.
    #[must_use]
    pub fn byte_length(&self) -> usize {
        self.bytes().len()
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref().map_or(&[], |bytes| bytes.as_slice())
    }

    /// Returns false for a filter that no build has made.
    fn is_readable(&self) -> bool {
        self.bits <= START_BITS && self.bytes().len() <= MAX_BYTES
    }

    fn numbers(&self) -> Vec<u32> {
        if self.bits > BITMAP_BITS {
            return Differences::of(self.bytes()).collect();
        }
        let count = u32::try_from(self.bytes().len().saturating_mul(8)).unwrap_or(u32::MAX);
        (0..count).filter(|number| has_bit(self.bytes(), *number)).collect()
    }
}

/// Returns the highest bits of a hash.
fn number_of(hash: u32, bits: u32) -> u32 {
    hash.checked_shr(u32::BITS - bits).unwrap_or(0)
}

fn has_bit(bytes: &[u8], number: u32) -> bool {
    bytes.get(number as usize / 8).is_some_and(|byte| byte & (1 << (number % 8)) != 0)
}

fn bitmap(numbers: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; MAX_BYTES];
    for number in numbers {
        if let Some(byte) = bytes.get_mut(*number as usize / 8) {
            *byte |= 1 << (number % 8);
        }
    }
    bytes
}

/// Writes sorted numbers as the differences to the one before, in groups of seven bits, the lowest first.
fn differences(numbers: &[u32]) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::new(), 0);
    for number in numbers {
        let mut rest = number - last;
        while rest >= 0x80 {
            bytes.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        bytes.push(rest.to_le_bytes()[0]);
        last = *number;
    }
    bytes
}

struct Differences<'a> {
    bytes: std::slice::Iter<'a, u8>,
    last: u32,
}

impl<'a> Differences<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter(), last: 0 }
    }
}

impl Iterator for Differences<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (mut difference, mut shift) = (0_u32, 0);
        loop {
            let byte = *self.bytes.next()?;
            difference |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                self.last = self.last.saturating_add(difference);
                return Some(self.last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hashes that are spread as those of words are.
    fn hashes(count: u32) -> Vec<u32> {
        let mixed = |number: u32| {
            let mixed = (number ^ number >> 16).wrapping_mul(0x21f0_aaad);
            let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x735a_2d97);
            mixed ^ mixed >> 15
        };
        (1..=count).map(mixed).collect()
    }

    proptest! {
        #[test]
        fn r79_a_filter_has_every_term_that_was_added(
            parts in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..900), 0..6),
        ) {
            let mut filter = TermFilter::empty(1);
            for part in &parts {
                filter.add(part);
            }
            let all: Vec<u32> = parts.concat();
            prop_assert!(all.iter().all(|hash| filter.may_have_all(&[*hash])));
            prop_assert!(filter.may_have_all(&all));
            prop_assert!(filter.bytes().len() <= MAX_BYTES);
        }
    }

    #[test]
    fn r79_a_filter_of_a_usual_session_seldom_has_what_was_not_added() {
        let has = |filter: &TermFilter, from: usize| {
            hashes(20_000).get(from..).unwrap().iter().filter(|hash| filter.may_have_all(&[**hash])).count()
        };
        for (terms, at_most) in [(0, 0), (10, 2), (150, 40), (250, 160), (1_000, 5_000)] {
            let mut filter = TermFilter::default();
            hashes(terms).chunks(50).for_each(|part| filter.add(part));
            let wrong = has(&filter, terms as usize);
            assert!(wrong <= at_most, "{wrong} of {} seem to be among {terms}", 20_000 - terms);
        }
    }

    #[test]
    fn a_filter_of_an_unknown_form_covers_nothing() {
        assert!(TermFilter::empty(1).covers(1) && TermFilter::default().covers(0) && !TermFilter::default().covers(1));
        let later = TermFilter { form: TermFilter::FORM + 1, ..TermFilter::empty(1) };
        let damaged = TermFilter { bits: 31, ..TermFilter::empty(1) };
        let large = TermFilter { bits: 12, bytes: Some(vec![0xff; MAX_BYTES + 1].into()), ..TermFilter::empty(1) };
        for filter in [later, damaged, large] {
            assert!(!filter.covers(1));
        }
    }
}
