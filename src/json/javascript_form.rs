//! What a value is after JavaScript has parsed it: digits of numbers, duplicate keys, white space, the spelling of
//! escapes and the place of keys that are array indexes are lost.

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
    /// True if `JSON.stringify` writes the parsed value as it is written here.
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
    /// The number of leading keys that are array indexes, each above the one before, and the last of them.
    indexes: (usize, Option<u32>),
}

impl OpenValue {
    /// Notes a key. Returns false if JavaScript moves it: it lists keys that are array indexes first, in ascending
    /// order.
    fn note_key(&mut self, key: &str, hash: u64) -> bool {
        self.key = hash;
        let Some(index) = array_index(key) else { return true };
        let (count, last) = self.indexes;
        self.indexes = (count + 1, Some(index));
        count == self.members.len() && last.is_none_or(|last| last < index)
    }

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
        // Of the text without white space.
        let mut length = 0;
        let mut open = vec![OpenValue::default()];
        for token in JsonTokens::of(self) {
            length += match token {
                JsonToken::Open { .. } => 1,
                JsonToken::Close => 1 + open.last().map_or(0, |closed| closed.members.len().saturating_sub(1)),
                JsonToken::Key(token) => token.len() + 1,
                JsonToken::Text(token) | JsonToken::Literal(token) => token.len(),
            };
            let (hash, is_same) = match token {
                JsonToken::Open { is_object } => {
                    open.push(OpenValue { is_object, ..OpenValue::default() });
                    continue;
                }
                JsonToken::Key(key) => {
                    let (hash, is_same) = text_form(key);
                    is_kept &= is_same && open.last_mut().is_none_or(|object| object.note_key(key, hash));
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
        is_kept &= length == self.as_raw().len();
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

/// Returns the array index that a key, as it is written, is to JavaScript: 0 to 4,294,967,294, without leading zeros.
fn array_index(key: &str) -> Option<u32> {
    let key = JsonStr::from_checked(key);
    let text = key.decode();
    let is_canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    text.parse().ok().filter(|index| is_canonical && *index != u32::MAX)
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
