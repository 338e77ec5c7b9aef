//! [`Excerpt`]: a part of a text, with the places of what was found.

use std::ops::Range;

/// Number of characters before the first place that is shown.
const CHARS_BEFORE: usize = 40;

/// Maximum number of characters of an excerpt.
const MAX_CHARS: usize = 160;

/// A part of a text in which something was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The part, with an ellipsis where the text goes on.
    pub text: String,
    /// The places in it: start and end in UTF-16 code units, in order, without overlaps.
    pub ranges: Vec<(usize, usize)>,
}

impl Excerpt {
    /// Makes an excerpt around the first of some places, in bytes.
    #[must_use]
    pub fn around(text: &str, places: &[Range<usize>]) -> Self {
        let first = places.first().map_or(0, |place| place.start);
        let before = text.get(..first).unwrap_or_default();
        let start = before.char_indices().rev().nth(CHARS_BEFORE - 1).map_or(0, |(at, _)| at);
        let rest = text.get(start..).unwrap_or_default();
        let end = rest.char_indices().nth(MAX_CHARS).map_or(text.len(), |(at, _)| start + at);
        let (opening, closing) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
        let units = |from: usize, to: usize| text.get(from..to).map_or(0, |part| part.encode_utf16().count());
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for place in places.iter().filter(|place| place.start < end) {
            let from = opening.encode_utf16().count() + units(start, place.start);
            let to = from + units(place.start, place.end.min(end));
            match ranges.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => ranges.push((from, to)),
            }
        }
        Self { text: format!("{opening}{}{closing}", text.get(start..end).unwrap_or_default()), ranges }
    }
}
