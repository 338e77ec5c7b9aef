//! What is searched for, and where a text has it.

use super::words::{TermKind, each_term};
use crate::error::{Error, Result};
use crate::id::hash;
use std::collections::BTreeSet;
use std::ops::Range;

/// Maximum number of terms of a query. A set of them is a mask of bits.
const MAX_TERMS: usize = 64;

/// Number of characters by which the beginning of a word is found. Shorter ones have too many words.
const PREFIX_CHARS: usize = 4;

/// A text that is searched for: all of its terms, in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchTerms {
    terms: Vec<SearchTerm>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SearchTerm {
    text: String,
    /// A word that begins so is enough: the last one of a query may not be written to its end.
    is_prefix: bool,
    /// The hash under which [`title_hashes`] has it.
    title_hash: u32,
}

/// Where a text has terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// A bit for each term that it has.
    pub mask: u64,
    /// The places in the text, in bytes; they overlap where terms do.
    pub ranges: Vec<Range<usize>>,
}

impl SearchTerms {
    /// Reads a query.
    ///
    /// # Errors
    /// `invalid_input` if it has more than 64 terms.
    pub fn parse(text: &str) -> Result<Self> {
        let mut terms: Vec<SearchTerm> = Vec::new();
        each_term(text, &mut |term, kind, range| {
            // Pairs are in fewer texts than their characters. More terms than are allowed are an error anyway.
            if kind == TermKind::Character(false) || terms.len() > MAX_TERMS {
                return;
            }
            let is_open = kind == TermKind::Word && range.end == text.len();
            let is_prefix = is_open && term.chars().count() >= PREFIX_CHARS;
            if !terms.iter().any(|known| known.text == term && known.is_prefix == is_prefix) {
                let title_hash = if is_prefix { beginning_hash(term) } else { term_hash(term) };
                terms.push(SearchTerm { text: term.to_owned(), is_prefix, title_hash });
            }
        });
        if terms.len() > MAX_TERMS {
            let sentence = format!(
                "a search has at most {MAX_TERMS} words, or pairs of characters in scripts without spaces; search for fewer"
            );
            return Err(Error::invalid(sentence));
        }
        Ok(Self { terms })
    }

    /// Returns true if nothing is searched for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the mask of a text that has all terms.
    #[must_use]
    pub fn full_mask(&self) -> u64 {
        u64::MAX.checked_shr(u64::BITS - self.terms.len() as u32).unwrap_or(0)
    }

    /// Returns the hashes under which a filter has the terms that are not in a mask.
    #[must_use]
    pub fn hashes_without(&self, mask: u64) -> Vec<u32> {
        let terms = self.terms.iter().enumerate().filter(|(at, _)| mask & (1 << at) == 0);
        terms.map(|(_, term)| if term.is_prefix { prefix_hash(&term.text) } else { term_hash(&term.text) }).collect()
    }

    /// Returns the mask of a title of which these are the [`title_hashes`]: as [`find`](Self::find) does, unless two
    /// terms have one hash.
    #[must_use]
    pub fn mask_of_title(&self, hashes: &[u32]) -> u64 {
        let terms = self.terms.iter().enumerate();
        terms.filter(|(_, term)| hashes.binary_search(&term.title_hash).is_ok()).fold(0, |mask, (at, _)| mask | 1 << at)
    }

    /// Finds the terms in a text.
    #[must_use]
    pub fn find(&self, text: &str) -> Matches {
        let mut found = Matches::default();
        each_term(text, &mut |term, kind, range| {
            let (mut is_found, is_word) = (false, kind == TermKind::Word);
            for (at, wanted) in self.terms.iter().enumerate() {
                if term == wanted.text || is_word && wanted.is_prefix && term.starts_with(&wanted.text) {
                    found.mask |= 1 << at;
                    is_found = true;
                }
            }
            if is_found {
                found.ranges.push(range);
            }
        });
        // A pair begins before its second character.
        found.ranges.sort_by_key(|range| range.start);
        found
    }
}

/// Adds the hashes under which a filter has the terms of a text.
pub fn hash_terms(text: &str, hashes: &mut BTreeSet<u32>) {
    each_term(text, &mut |term, kind, _| {
        hashes.insert(term_hash(term));
        if kind == TermKind::Word && term.chars().nth(PREFIX_CHARS - 1).is_some() {
            hashes.insert(prefix_hash(term));
        }
    });
}

/// Returns the hashes of the terms of a title, sorted: of each term, and of each beginning by which a word is found.
pub fn title_hashes(title: &str) -> Vec<u32> {
    let mut hashes = Vec::new();
    each_term(title, &mut |term, kind, _| {
        hashes.push(term_hash(term));
        if kind == TermKind::Word {
            let ends = term.char_indices().map(|(at, last)| at + last.len_utf8()).skip(PREFIX_CHARS - 1);
            hashes.extend(ends.filter_map(|end| term.get(..end)).map(beginning_hash));
        }
    });
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

fn term_hash(term: &str) -> u32 {
    mixed(hash(term.as_bytes()))
}

/// Returns the hash of the beginning of a word by which a filter has it.
fn prefix_hash(word: &str) -> u32 {
    let end = word.char_indices().nth(PREFIX_CHARS).map_or(word.len(), |(at, _)| at);
    beginning_hash(word.get(..end).unwrap_or(word))
}

fn beginning_hash(beginning: &str) -> u32 {
    mixed(!hash(beginning.as_bytes()))
}

/// Spreads a hash, so that its highest bits depend on all of it.
#[allow(clippy::cast_possible_truncation)]
fn mixed(hash: u64) -> u32 {
    ((hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32
}
