//! [`JsonStr`], a JSON string that is kept as its token, so that escapes stay as they were written.

use super::scan;
use super::value::Json;
use crate::encoding::TextSource;
use bytestring::ByteString;
use minicbor::encode::{Encoder, Write};
use minicbor::{Decode, Decoder, Encode};
use std::borrow::Cow;

/// A JSON string as its token: the literal with quotes, in the escapes that it was written in. A lone surrogate, which
/// a Rust string cannot contain, is kept as its escape `\uXXXX`.
#[derive(Clone)]
pub struct JsonStr(Token);

/// The text of a token.
#[derive(Clone)]
enum Token {
    /// A slice of a record or of a buffer of its own. A clone shares the text.
    Shared(ByteString),
    /// A text that is being streamed and can grow in place.
    Growing(String),
}

impl JsonStr {
    /// Escapes a text as `JSON.stringify` does.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut token = String::with_capacity(text.len() + 2);
        token.push('"');
        push_escaped(&mut token, text);
        token.push('"');
        Self::from_owned(token)
    }

    /// Wraps the inside of tokens that were checked before, such as the fragments of a streamed string.
    pub(crate) fn from_inside(inside: &str) -> Self {
        let mut token = String::with_capacity(inside.len() + 2);
        token.push('"');
        token.push_str(inside);
        token.push('"');
        Self::from_owned(token)
    }

    /// Joins texts. `between`, the inside of a token, separates them.
    pub(crate) fn joined(texts: &mut dyn Iterator<Item = &Self>, between: &str) -> Self {
        let mut token = String::from("\"");
        for (at, text) in texts.enumerate() {
            token.push_str(if at == 0 { "" } else { between });
            token.push_str(text.inside());
        }
        token.push('"');
        Self::from_owned(token)
    }

    /// Appends another string. The first call copies the text; later ones grow it in place.
    pub(crate) fn push(&mut self, more: &Self) {
        if let Token::Shared(token) = &self.0 {
            self.0 = Token::Growing(token.to_string());
        }
        if let Token::Growing(token) = &mut self.0 {
            token.pop();
            token.push_str(more.inside());
            token.push('"');
        }
    }

    /// Copies a token that was checked before.
    pub(super) fn from_checked(token: &str) -> Self {
        Self(Token::Shared(token.into()))
    }

    fn from_owned(token: String) -> Self {
        Self(Token::Shared(token.into()))
    }

    /// Returns the token with its quotes.
    #[must_use]
    pub fn token(&self) -> &str {
        match &self.0 {
            Token::Shared(token) => token,
            Token::Growing(token) => token,
        }
    }

    /// Returns the token without its quotes.
    #[must_use]
    pub fn inside(&self) -> &str {
        let token = self.token();
        token.get(1..token.len().saturating_sub(1)).unwrap_or("")
    }

    /// Returns the decoded text. A lone surrogate becomes U+FFFD.
    #[must_use]
    pub fn decode(&self) -> Cow<'_, str> {
        unescape(self.inside())
    }

    /// Returns true for the empty string.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.token().len() <= 2
    }

    /// Returns the string as a JSON value.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match &self.0 {
            Token::Shared(token) => Json::from_token(token.clone()),
            Token::Growing(token) => Json::trusted(token.clone()),
        }
    }
}

impl PartialEq for JsonStr {
    fn eq(&self, other: &Self) -> bool {
        self.token() == other.token()
    }
}

impl Eq for JsonStr {}

/// Stored as its token.
impl<Ctx> Encode<Ctx> for JsonStr {
    fn encode<W: Write>(&self, out: &mut Encoder<W>, _: &mut Ctx) -> Result<(), minicbor::encode::Error<W::Error>> {
        out.str(self.token())?.ok()
    }
}

impl<'b, Ctx: TextSource> Decode<'b, Ctx> for JsonStr {
    fn decode(from: &mut Decoder<'b>, context: &mut Ctx) -> Result<Self, minicbor::decode::Error> {
        Ok(Self(Token::Shared(context.read_text(from)?)))
    }
}

impl std::fmt::Debug for JsonStr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.token())
    }
}

impl From<&str> for JsonStr {
    fn from(text: &str) -> Self {
        Self::new(text)
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

pub(super) fn unescape(inside: &str) -> Cow<'_, str> {
    let Some(first) = scan::find_escape(inside.as_bytes()) else { return Cow::Borrowed(inside) };
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
        next = scan::find_escape(rest.as_bytes());
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Decodes `uXXXX` and, after a high surrogate, the low one that follows. Returns the character and the number of bytes
/// read.
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

/// Returns true if the inside of a token ends in the escape of a high surrogate, whose low one may follow in the next
/// fragment.
pub(crate) fn ends_in_high_surrogate(inside: &str) -> bool {
    let Some(tail) = inside.len().checked_sub(6).and_then(|at| inside.get(at..)) else { return false };
    let Some(hex) = tail.strip_prefix("\\u") else { return false };
    let backslashes = inside.get(..inside.len() - 6).unwrap_or("").bytes().rev().take_while(|b| *b == b'\\').count();
    backslashes % 2 == 0 && u32::from_str_radix(hex, 16).is_ok_and(|unit| (0xd800..0xdc00).contains(&unit))
}

impl JsonStr {
    /// Checks a token; none if it is not one JSON string.
    #[must_use]
    pub fn from_token(token: &str) -> Option<Self> {
        let bytes = token.as_bytes();
        let whole = bytes.first() == Some(&b'"') && scan::check_string(bytes, 0) == Ok(bytes.len());
        whole.then(|| Self::from_checked(token))
    }
}
