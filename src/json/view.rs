//! Borrowed views over checked JSON text.

use super::scan::{self, SyntaxError, skip_space, skip_string, skip_value};
use super::{Json, JsonStr};

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// A JSON value inside checked text, trimmed. The default is none: it reads as `null`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct JsonRef<'a>(&'a str);

impl<'a> JsonRef<'a> {
    /// Whether it is that very value of the text, not one that reads the same.
    #[must_use]
    pub fn is_same(self, other: JsonRef<'_>) -> bool {
        std::ptr::eq(self.0, other.0)
    }

    /// Checks the text.
    ///
    /// # Errors
    /// Where it stops being JSON.
    pub fn parse(text: &'a str) -> Result<Self, SyntaxError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        scan::check(text)?;
        Ok(Self(trimmed(text)))
    }

    pub(super) fn trusted(text: &'a str) -> Self {
        Self(text)
    }

    /// The text as it was written.
    #[must_use]
    pub fn as_raw(self) -> &'a str {
        self.0
    }

    /// An owned copy.
    #[must_use]
    pub fn to_owned(self) -> Json {
        Json(self.0.into())
    }

    /// What it is.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self.0.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    /// The boolean, if it is one.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The number, if it is a whole one that is not negative. Read by hand: a parser of floats costs more bytes than all
    /// that is read by this.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        if self.kind() != Kind::Number {
            return None;
        }
        self.0.parse().ok().or_else(|| whole(self.0))
    }

    /// The members of an object in their order, doubled keys included; nothing for any other value.
    #[must_use]
    pub fn entries(self) -> Entries<'a> {
        Entries { text: if self.is_object() { self.0 } else { "" }, at: 1 }
    }

    /// The items of an array; nothing for any other value.
    #[must_use]
    pub fn items(self) -> Items<'a> {
        Items { text: if self.kind() == Kind::Array { self.0 } else { "" }, at: 1 }
    }

    /// The members at any depth whose value is a string, with their keys, in one pass.
    #[must_use]
    pub fn text_members(self) -> TextMembers<'a> {
        TextMembers { text: self.0, at: 0 }
    }

    /// The member of that name; of doubled ones the last, as `JSON.parse` takes it.
    #[must_use]
    pub fn get(self, name: &str) -> Option<JsonRef<'a>> {
        let mut found = None;
        for (key, value) in self.entries() {
            if key.is_text(name) {
                found = Some(value);
            }
        }
        found
    }

    /// As [`get`](Self::get), with `null` read as absent.
    #[must_use]
    pub fn find(self, name: &str) -> Option<JsonRef<'a>> {
        self.get(name).filter(|value| !value.is_null())
    }

    /// The text of the member of that name, if that is a string.
    #[must_use]
    pub fn text(self, name: &str) -> Option<std::borrow::Cow<'a, str>> {
        self.get(name)?.as_text()
    }

    /// As [`text`](Self::text), empty where there is none.
    #[must_use]
    pub fn string(self, name: &str) -> String {
        self.text(name).unwrap_or_default().into_owned()
    }

    /// Whether the member of that name is the string `text`.
    #[must_use]
    pub fn says(self, name: &str, text: &str) -> bool {
        self.get(name).is_some_and(|value| value.is_text(text))
    }

    /// The token of the member of that name, if that is a string.
    #[must_use]
    pub fn json_str(self, name: &str) -> Option<JsonStr> {
        self.get(name)?.as_json_str()
    }
}

impl std::fmt::Debug for JsonRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// Iterates over an object's members.
#[derive(Clone)]
pub struct Entries<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (JsonRef<'a>, JsonRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let start = next_start(bytes, self.at)?;
        let end = skip_string(bytes, start);
        let key = JsonRef(self.text.get(start..end)?);
        let colon = skip_space(bytes, end);
        let start = skip_space(bytes, colon + 1);
        let end = skip_value(bytes, start);
        self.at = end;
        Some((key, JsonRef(self.text.get(start..end)?)))
    }
}

/// Iterates over members at any depth whose value is a string.
#[derive(Clone)]
pub struct TextMembers<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for TextMembers<'a> {
    type Item = (JsonRef<'a>, JsonRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        loop {
            let start = self.at + bytes.get(self.at..)?.iter().position(|byte| *byte == b'"')?;
            let end = skip_string(bytes, start);
            self.at = end;
            let colon = skip_space(bytes, end);
            // Only a key is followed by a colon.
            let value = skip_space(bytes, colon + 1);
            if bytes.get(colon) == Some(&b':') && bytes.get(value) == Some(&b'"') {
                let key = JsonRef(self.text.get(start..end)?);
                self.at = skip_string(bytes, value);
                return Some((key, JsonRef(self.text.get(value..self.at)?)));
            }
        }
    }
}

/// Iterates over an array's items.
#[derive(Clone)]
pub struct Items<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = JsonRef<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let start = next_start(bytes, self.at)?;
        let end = skip_value(bytes, start);
        self.at = end;
        Some(JsonRef(self.text.get(start..end)?))
    }
}

/// A text without the JSON white space around it.
#[must_use]
pub fn trimmed(text: &str) -> &str {
    let bytes = text.as_bytes();
    let end = bytes.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).map_or(0, |last| last + 1);
    text.get(skip_space(bytes, 0)..end).unwrap_or_default()
}

/// Where the next member or item begins; none at the closing bracket.
fn next_start(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = skip_space(bytes, at);
    if bytes.get(at) == Some(&b',') {
        at = skip_space(bytes, at + 1);
    }
    (!matches!(bytes.get(at), None | Some(b'}' | b']'))).then_some(at)
}

/// Reads `1.0`, `12e3` and the like: a whole number in another dress, below 2^53, beyond which a float names no single one.
fn whole(text: &str) -> Option<u64> {
    // The digits up to the last that is no zero, the zeros behind it, and the power of ten that the point and the exponent ask for.
    let (mut number, mut zeros, mut scale) = (0_u64, 0_u32, 0_i64);
    let (mut step, mut exponent) = (0, None);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'.' => step = 1,
            b'e' | b'E' => {
                exponent = text.get(at + 1..);
                break;
            }
            b'0'..=b'9' => scale -= step,
            _ => {}
        }
        match byte {
            b'0' => zeros += 1,
            b'1'..=b'9' => {
                let places = if number == 0 { 0 } else { zeros + 1 };
                number = number.checked_mul(10_u64.checked_pow(places)?)?.checked_add(u64::from(byte - b'0'))?;
                zeros = 0;
            }
            _ => {}
        }
    }
    if number == 0 {
        return Some(0);
    }
    let exponent = exponent.map_or(Some(0), |exponent| exponent.parse().ok())?;
    let scale = scale.checked_add(i64::from(zeros))?.checked_add(exponent)?;
    let unit = 10_u64.checked_pow(u32::try_from(scale).ok()?)?;
    number.checked_mul(unit).filter(|number| *number < 1 << 53 && !text.starts_with('-'))
}
