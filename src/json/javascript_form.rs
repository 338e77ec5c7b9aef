//! What a value is after JavaScript has parsed it: digits of numbers, duplicate keys and the spelling of escapes are lost.

use super::string::JsonStr;
use super::tokens::{JsonToken, JsonTokens};
use super::view::JsonRef;
use crate::id::{HASH_START, hash_on, hash_words};

/// Number of significant digits that every number in JavaScript keeps.
const KEPT_DIGITS: usize = 15;

/// What JavaScript makes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JavaScriptForm {
    /// A hash that is the same for all values that JavaScript shows alike.
    pub hash: u64,
    /// True if `JSON.stringify` writes each text and number as it is written here, and no key occurs twice.
    pub is_kept: bool,
}

/// An array or an object that is open.
#[derive(Default)]
struct OpenValue {
    is_object: bool,
    /// The hash of the newest key.
    key: u64,
    /// Keys and values; of an array, values alone.
    members: Vec<(u64, u64)>,
}

impl OpenValue {
    fn add(&mut self, value: u64) {
        self.members.push((if self.is_object { self.key } else { 0 }, value));
    }

    /// Returns the hash, and true if no key occurs twice. Of two members with one key the last counts.
    fn close(mut self) -> (u64, bool) {
        let start = hash_words(1 + u64::from(self.is_object), &[]);
        let add = |hash: u64, (key, value): &(u64, u64)| {
            let hash = hash_words(hash, &key.to_le_bytes());
            hash_words(hash, &value.to_le_bytes())
        };
        if !self.is_object {
            return (self.members.iter().fold(start, add), true);
        }
        let count = self.members.len();
        self.members.reverse();
        self.members.sort_by_key(|(key, _)| *key);
        self.members.dedup_by_key(|(key, _)| *key);
        (self.members.iter().fold(start, add), self.members.len() == count)
    }
}

impl JsonRef<'_> {
    /// Returns what JavaScript makes of the value. Does not recurse.
    #[must_use]
    pub fn javascript_form(self) -> JavaScriptForm {
        let mut is_kept = true;
        let mut open = vec![OpenValue::default()];
        for token in JsonTokens::of(self) {
            let (hash, is_same) = match token {
                JsonToken::Open { is_object } => {
                    open.push(OpenValue { is_object, ..OpenValue::default() });
                    continue;
                }
                JsonToken::Key(key) => {
                    let (hash, is_same) = text_form(key);
                    if let Some(object) = open.last_mut() {
                        object.key = hash;
                    }
                    is_kept &= is_same;
                    continue;
                }
                JsonToken::Close => open.pop().unwrap_or_default().close(),
                JsonToken::Text(text) => text_form(text),
                JsonToken::Literal(literal) => literal_form(literal),
            };
            is_kept &= is_same;
            if let Some(outer) = open.last_mut() {
                outer.add(hash);
            }
        }
        JavaScriptForm { hash: open.pop().unwrap_or_default().close().0, is_kept }
    }
}

impl JsonStr {
    /// Returns true if `JSON.stringify` writes the text as it is written here.
    #[must_use]
    pub fn is_kept_by_javascript(&self) -> bool {
        !self.inside().contains('\\') || Self::new(&self.decode()) == *self
    }
}

fn text_form(token: &str) -> (u64, bool) {
    if !token.contains('\\') {
        return (hash_words(1, token.as_bytes()), true);
    }
    let text = JsonStr::from_checked(token);
    let plain = JsonStr::new(&text.decode());
    (hash_words(1, plain.token().as_bytes()), plain == text)
}

/// Numbers are alike if they agree in their first 15 significant digits: JavaScript may write other ones after them.
fn literal_form(literal: &str) -> (u64, bool) {
    if !literal.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return (hash_words(2, literal.as_bytes()), true);
    }
    let (mantissa, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
    let (sign, magnitude) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    let leading_zeros = digits().take_while(|digit| *digit == b'0').count();
    let count = digits().count();
    let significant: Vec<u8> = digits().skip(leading_zeros).take(KEPT_DIGITS).collect();
    let end = significant.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    if end == 0 {
        // JavaScript writes -0 as 0.
        return (hash_words(3, b"0"), literal == "0");
    }
    let place = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let point = exponent.parse::<i64>().unwrap_or(0).saturating_add(place(whole.len()) - place(leading_zeros));
    let hash = hash_on(hash_on(HASH_START, sign.as_bytes()), significant.get(..end).unwrap_or_default());
    let is_short = count <= KEPT_DIGITS && !literal.contains(['e', 'E']);
    let is_same = is_short && !fraction.ends_with('0') && !fraction.starts_with("0000") && literal != "-";
    (hash_words(hash, &point.to_le_bytes()), is_same)
}
