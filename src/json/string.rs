//! A JSON string kept as its token, so that every escape returns as it was written.

use super::{Json, JsonRef, scan};
use crate::stored::stored;
use std::borrow::Cow;

/// A JSON string literal, quotes included, in the escapes it was written in. A lone surrogate, which
/// no Rust string can hold, lives here as its `\uXXXX`.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonStr(String);
stored!(struct JsonStr(String));

impl JsonStr {
    /// Escapes a text as `JSON.stringify` does.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut token = String::with_capacity(text.len() + 2);
        token.push('"');
        push_escaped(&mut token, text);
        token.push('"');
        Self(token)
    }

    /// From the inside of one or several tokens, each checked before (a streamed string's fragments).
    pub(crate) fn from_inside(inside: &str) -> Self {
        let mut token = String::with_capacity(inside.len() + 2);
        token.push('"');
        token.push_str(inside);
        token.push('"');
        Self(token)
    }

    /// All of the texts as one, with `between` (the inside of a token) between them.
    pub(crate) fn joined(texts: &mut dyn Iterator<Item = &Self>, between: &str) -> Self {
        let mut token = String::from("\"");
        for (at, text) in texts.enumerate() {
            token.push_str(if at == 0 { "" } else { between });
            token.push_str(text.inside());
        }
        token.push('"');
        Self(token)
    }

    /// Appends another string.
    pub(crate) fn push(&mut self, more: &Self) {
        self.0.pop();
        self.0.push_str(more.inside());
        self.0.push('"');
    }

    pub(super) fn trusted(token: &str) -> Self {
        Self(token.to_owned())
    }

    /// The token, quotes included: what goes on the wire.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.0
    }

    /// The token without its quotes.
    #[must_use]
    pub fn inside(&self) -> &str {
        self.0.get(1..self.0.len().saturating_sub(1)).unwrap_or("")
    }

    /// The text itself. A lone surrogate reads as U+FFFD here, and only here.
    #[must_use]
    pub fn decode(&self) -> Cow<'_, str> {
        unescape(self.inside())
    }

    /// Whether nothing is written in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len() <= 2
    }

    /// As a JSON value.
    #[must_use]
    pub fn to_json(&self) -> Json {
        Json::trusted(self.0.clone())
    }
}

impl std::fmt::Debug for JsonStr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for JsonStr {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl<'a> JsonRef<'a> {
    /// The token of a string.
    #[must_use]
    pub fn as_json_str(self) -> Option<JsonStr> {
        self.as_raw().starts_with('"').then(|| JsonStr::trusted(self.as_raw()))
    }

    /// The text of a string, decoded.
    #[must_use]
    pub fn as_text(self) -> Option<Cow<'a, str>> {
        let raw = self.as_raw();
        if !raw.starts_with('"') {
            return None;
        }
        Some(unescape(raw.get(1..raw.len().saturating_sub(1))?))
    }

    /// Whether this is the string `text`.
    #[must_use]
    pub fn is_text(self, text: &str) -> bool {
        self.as_text().is_some_and(|own| own == text)
    }
}

/// Appends a text as a JSON string.
pub fn push_text(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

/// Appends `text`, escaped as `JSON.stringify` escapes it, without quotes.
pub fn push_escaped(out: &mut String, text: &str) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(text.get(from..at).unwrap_or(""));
        if escape.is_empty() {
            out.push_str("\\u00");
            out.push(char::from(if byte < 0x10 { b'0' } else { b'1' }));
            out.push(char::from_digit(u32::from(byte & 0xf), 16).unwrap_or('0'));
        } else {
            out.push_str(escape);
        }
        from = at + 1;
    }
    out.push_str(text.get(from..).unwrap_or(""));
}

fn unescape(inside: &str) -> Cow<'_, str> {
    let Some(first) = inside.find('\\') else { return Cow::Borrowed(inside) };
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    let mut next = Some(first);
    while let Some(at) = next {
        out.push_str(rest.get(..at).unwrap_or(""));
        let tail = rest.get(at + 1..).unwrap_or("");
        let (character, used) = match tail.as_bytes().first() {
            Some(b'n') => ('\n', 1),
            Some(b'r') => ('\r', 1),
            Some(b't') => ('\t', 1),
            Some(b'b') => ('\u{8}', 1),
            Some(b'f') => ('\u{c}', 1),
            Some(b'u') => unescape_unit(tail),
            Some(other) => (char::from(*other), 1),
            None => ('\u{fffd}', 0),
        };
        out.push(character);
        rest = tail.get(used..).unwrap_or("");
        next = rest.find('\\');
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Reads `uXXXX`, and the low half that follows a high one.
fn unescape_unit(tail: &str) -> (char, usize) {
    let unit = |at: usize| tail.get(at..at + 4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let Some(high) = unit(1) else { return ('\u{fffd}', 1) };
    let low = || {
        tail.get(5..7)
            .filter(|escape| *escape == "\\u")
            .and_then(|_| unit(7))
            .filter(|low| (0xdc00..0xe000).contains(low))
    };
    if let Some(low) = (0xd800..0xdc00).contains(&high).then(low).flatten() {
        let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(code).unwrap_or('\u{fffd}'), 11);
    }
    (char::from_u32(high).unwrap_or('\u{fffd}'), 5)
}

/// Whether a token's inside ends in a high surrogate that still waits for its low half.
pub(crate) fn ends_in_high_surrogate(inside: &str) -> bool {
    let Some(tail) = inside.len().checked_sub(6).and_then(|at| inside.get(at..)) else { return false };
    let Some(hex) = tail.strip_prefix("\\u") else { return false };
    let backslashes = inside.get(..inside.len() - 6).unwrap_or("").bytes().rev().take_while(|b| *b == b'\\').count();
    backslashes % 2 == 0 && u32::from_str_radix(hex, 16).is_ok_and(|unit| (0xd800..0xdc00).contains(&unit))
}

// The scanner's string check is what makes a token trustworthy.
impl JsonStr {
    /// Checks a token that comes from outside.
    #[must_use]
    pub fn from_token(token: &str) -> Option<Self> {
        let bytes = token.as_bytes();
        let whole = bytes.first() == Some(&b'"') && scan::check_string(bytes, 0) == Ok(bytes.len());
        whole.then(|| Self(token.to_owned()))
    }
}
