//! The terms of a text: what a search compares.
//!
//! A term is a word: letters, digits and marks in a row, without case and accents, in compatibility form (UAX #15,
//! NFKD). In scripts that do not separate words, and in Hangul, whose words have particles, it is a character, and each
//! two that follow each other.
//!
//! Filters are stored: with another result of this module, [`TermFilter::FORM`](crate::term_filter::TermFilter::FORM) is
//! to be raised.

use std::ops::Range;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Maximum length of a term in characters. Words that begin alike this far are one: encoded data has long ones.
const MAX_CHARS: usize = 64;

/// What a term is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// A word.
    Word,
    /// A character of a script that does not separate words. True if no other one is beside it.
    Character(bool),
    /// Two of these.
    Pair,
}

/// Calls `take` with each term of the text, its kind, and the place in the text that it comes from, in bytes.
pub fn each_term(text: &str, take: &mut dyn FnMut(&str, TermKind, Range<usize>)) {
    let mut run: Option<(Script, usize)> = None;
    let ends = std::iter::once((text.len(), None));
    for (at, next) in text.char_indices().map(|(at, next)| (at, Some(next))).chain(ends) {
        let script = match (next, run) {
            // A mark belongs to what is before it.
            (Some(next), Some((script, _))) if !next.is_ascii() && is_mark(next) => Some(script),
            (Some(next), _) => Script::of(next),
            (None, _) => None,
        };
        if let Some((before, start)) = run.filter(|(before, _)| Some(*before) != script) {
            match before {
                Script::Words => take_word(text, start..at, take),
                Script::Characters => take_characters(text, start..at, take),
            }
            run = None;
        }
        if let (Some(script), None) = (script, run) {
            run = Some((script, at));
        }
    }
}

/// How a script writes words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    /// With something between them.
    Words,
    /// One after the other.
    Characters,
}

impl Script {
    /// Returns the script of a letter or digit.
    fn of(character: char) -> Option<Self> {
        if character.is_ascii() {
            return character.is_ascii_alphanumeric().then_some(Self::Words);
        }
        match u32::from(character) {
            // Thai and Lao, Myanmar, Khmer; kana and the ideographs beside them, Hangul, halfwidth kana and Hangul.
            0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff => Some(Self::Characters),
            0x1100..=0x11ff | 0x3005..=0x3007 | 0x3041..=0x30fa | 0x30fc..=0x318f | 0x31f0..=0x31ff => {
                Some(Self::Characters)
            }
            0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xa960..=0xa97f | 0xac00..=0xd7ff => Some(Self::Characters),
            0xf900..=0xfaff | 0xff66..=0xffdc | 0x1_b000..=0x1_b16f | 0x2_0000..=0x3_ffff => Some(Self::Characters),
            _ => character.is_alphanumeric().then_some(Self::Words),
        }
    }
}

fn take_word(text: &str, range: Range<usize>, take: &mut dyn FnMut(&str, TermKind, Range<usize>)) {
    let word = text.get(range.clone()).unwrap_or_default();
    let folded: String = if word.is_ascii() {
        word.chars().take(MAX_CHARS).map(|letter| letter.to_ascii_lowercase()).collect()
    } else {
        word.nfkd().flat_map(char::to_lowercase).flat_map(folded).take(MAX_CHARS).collect()
    };
    if !folded.is_empty() {
        take(&folded, TermKind::Word, range);
    }
}

/// Returns what is compared of a small letter in NFKD: not accents and vowels that are written above or below.
fn folded(letter: char) -> impl Iterator<Item = char> {
    let (first, second) = match letter {
        'ς' => (Some('σ'), None),
        'ß' => (Some('s'), Some('s')),
        // Accents; Hebrew and Arabic vowels; what changes the look of the character before it.
        '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' => (None, None),
        '\u{670}' | '\u{6d6}'..='\u{6ed}' => (None, None),
        letter if is_invisible(letter) => (None, None),
        letter => (Some(letter), None),
    };
    first.into_iter().chain(second)
}

/// Returns true for what no reader sees of itself: soft hyphens, joiners, and what chooses a form or an enclosure.
fn is_invisible(character: char) -> bool {
    matches!(u32::from(character), 0xad | 0x200c..=0x200d | 0x20e3 | 0xfe00..=0xfe0f | 0xe_0100..=0xe_01ef)
}

fn is_mark(character: char) -> bool {
    is_invisible(character) || is_combining_mark(character)
}

fn take_characters(text: &str, range: Range<usize>, take: &mut dyn FnMut(&str, TermKind, Range<usize>)) {
    let mut characters: Vec<(String, Range<usize>)> = Vec::new();
    let run = text.get(range.clone()).unwrap_or_default();
    for (at, next) in run.char_indices() {
        let (start, end) = (range.start + at, range.start + at + next.len_utf8());
        match characters.last_mut() {
            Some((character, place)) if continues(next) => {
                character.push(next);
                place.end = end;
            }
            _ => characters.push((next.into(), start..end)),
        }
    }
    for (character, _) in &mut characters {
        *character = character.nfkc().filter(|part| !is_invisible(*part)).take(MAX_CHARS).collect();
    }
    let is_alone = characters.len() == 1;
    let mut before: Option<&(String, Range<usize>)> = None;
    for one in &characters {
        take(&one.0, TermKind::Character(is_alone), one.1.clone());
        if let Some((first, place)) = before {
            take(&format!("{first}{}", one.0), TermKind::Pair, place.start..one.1.end);
        }
        before = Some(one);
    }
}

/// Returns true for what forms one character with what is before it: a mark, a vowel or final of Hangul that is written
/// apart, a voiced mark of halfwidth kana.
fn continues(character: char) -> bool {
    matches!(u32::from(character), 0x1160..=0x11ff | 0xd7b0..=0xd7ff | 0xff9e | 0xff9f) || is_mark(character)
}
