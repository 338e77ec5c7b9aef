//! Borrowed views over checked JSON text.

use super::scan::{SyntaxError, check, skip_space, skip_string, skip_value, trimmed, without_byte_order_mark};
use super::string::{JsonStr, unescape};
use super::value::Json;
use std::borrow::Cow;

/// The types of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JsonKind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// A view of a JSON value inside checked text, without surrounding white space. The default view is empty and reads as
/// `null`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct JsonRef<'a>(&'a str);

impl<'a> JsonRef<'a> {
    /// Returns true if both views are of the same place in one text, not only of equal values.
    #[must_use]
    pub fn is_same(self, other: JsonRef<'_>) -> bool {
        std::ptr::eq(self.0, other.0)
    }

    /// Checks `text` and returns a view of its value.
    ///
    /// # Errors
    /// If `text` is not one JSON value.
    pub fn parse(text: &'a str) -> Result<Self, SyntaxError> {
        let text = without_byte_order_mark(text);
        check(text)?;
        Ok(Self(trimmed(text)))
    }

    /// Views text that was checked before.
    pub(super) fn from_checked(text: &'a str) -> Self {
        Self(text)
    }

    /// Returns the text as it was written.
    #[must_use]
    pub fn as_raw(self) -> &'a str {
        self.0
    }

    /// Copies the value.
    #[must_use]
    pub fn to_owned(self) -> Json {
        Json::from_checked(self.0)
    }

    /// Returns the type of the value.
    #[must_use]
    pub fn kind(self) -> JsonKind {
        match self.0.as_bytes().first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'n') | None => JsonKind::Null,
            Some(_) => JsonKind::Number,
        }
    }

    /// Returns true for `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Returns true for an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.kind() == JsonKind::Object
    }

    /// Returns the value of a boolean.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Returns a number that is whole and not negative, however it is written: `12000`, `12e3`, `12000.0`. It is read
    /// without the standard library's parser of floats, which would add more to the wasm than this module has.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        if self.kind() != JsonKind::Number {
            return None;
        }
        self.0.parse().ok().or_else(|| whole(self.0))
    }

    /// Iterates over the members of an object in their order, duplicate keys included. Other values have none.
    #[must_use]
    pub fn entries(self) -> ObjectEntries<'a> {
        ObjectEntries { text: if self.is_object() { self.0 } else { "" }, at: 1 }
    }

    /// Iterates over the items of an array. Other values have none.
    #[must_use]
    pub fn items(self) -> ArrayItems<'a> {
        ArrayItems { text: if self.kind() == JsonKind::Array { self.0 } else { "" }, at: 1 }
    }

    /// Iterates over the members at any depth whose value is a string, as key and value.
    #[must_use]
    pub fn text_members(self) -> TextMembers<'a> {
        TextMembers { text: self.0, at: 0 }
    }

    /// Returns the member of that name. If the key is duplicated, the last one counts, as in `JSON.parse`.
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

    /// Like [`get`](Self::get), but returns nothing for a member that is `null`.
    #[must_use]
    pub fn find(self, name: &str) -> Option<JsonRef<'a>> {
        self.get(name).filter(|value| !value.is_null())
    }

    /// Returns the decoded text of the member of that name, if it is a string.
    #[must_use]
    pub fn text(self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name)?.as_text()
    }

    /// Like [`text`](Self::text), but returns an empty text if there is none.
    #[must_use]
    pub fn string(self, name: &str) -> String {
        self.text(name).unwrap_or_default().into_owned()
    }

    /// Returns true if the member of that name is the string `text`.
    #[must_use]
    pub fn has_text(self, name: &str, text: &str) -> bool {
        self.get(name).is_some_and(|value| value.is_text(text))
    }

    /// Returns the token, if this is a string.
    #[must_use]
    pub fn as_json_str(self) -> Option<JsonStr> {
        (self.kind() == JsonKind::String).then(|| JsonStr::from_checked(self.0))
    }

    /// Returns the decoded text, if this is a string.
    #[must_use]
    pub fn as_text(self) -> Option<Cow<'a, str>> {
        if self.kind() != JsonKind::String {
            return None;
        }
        Some(unescape(self.0.get(1..self.0.len().saturating_sub(1))?))
    }

    /// Returns true if this is a string whose decoded text is `text`.
    #[must_use]
    pub fn is_text(self, text: &str) -> bool {
        // Names are compared more often than anything else is done, so their bytes are, and rarely have escapes. An
        // escape is longer than its character, and at most six times as long.
        let (token, text_bytes) = (self.0.as_bytes(), text.as_bytes());
        let inside_length = token.len().saturating_sub(2);
        if self.kind() != JsonKind::String || inside_length < text_bytes.len() {
            return false;
        }
        if inside_length == text_bytes.len() {
            return token.get(1..=inside_length).is_some_and(|inside| inside == text_bytes);
        }
        let first = |bytes: &[u8], at: usize| bytes.get(at).copied().unwrap_or_default();
        (first(token, 1) == first(text_bytes, 0) || first(token, 1) == b'\\')
            && inside_length <= text.len() * 6
            && self.as_text().is_some_and(|decoded| decoded == text)
    }

    /// Returns the token of the member of that name, if it is a string.
    #[must_use]
    pub fn json_str(self, name: &str) -> Option<JsonStr> {
        self.get(name)?.as_json_str()
    }
}

impl Json {
    /// Returns a view to read the value by.
    #[must_use]
    pub fn view(&self) -> JsonRef<'_> {
        JsonRef(self.as_str())
    }
}

impl std::fmt::Debug for JsonRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// Iterates over an object's members.
#[derive(Clone)]
pub struct ObjectEntries<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for ObjectEntries<'a> {
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
pub struct ArrayItems<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for ArrayItems<'a> {
    type Item = JsonRef<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let start = next_start(bytes, self.at)?;
        let end = skip_value(bytes, start);
        self.at = end;
        Some(JsonRef(self.text.get(start..end)?))
    }
}

/// Returns the offset of the next member or item, or nothing at the closing bracket.
fn next_start(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = skip_space(bytes, at);
    if bytes.get(at) == Some(&b',') {
        at = skip_space(bytes, at + 1);
    }
    (!matches!(bytes.get(at), None | Some(b'}' | b']'))).then_some(at)
}

/// Reads a whole number with a point or an exponent, such as `1.0` and `12e3`, below 2^53. From there on, a float
/// stands for several whole numbers.
fn whole(text: &str) -> Option<u64> {
    // The number up to its last digit that is not zero, the zeros after that digit, and the power of ten from point and
    // exponent.
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
