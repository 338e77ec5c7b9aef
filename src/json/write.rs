//! Writers that put the commas and nothing else.

use super::{Json, JsonRef, JsonStr, push_escaped, push_text};

/// Writes one object into a text.
pub struct ObjectWriter<'o> {
    out: &'o mut String,
}

impl<'o> ObjectWriter<'o> {
    /// Opens the object.
    pub fn new(out: &'o mut String) -> Self {
        out.push('{');
        Self { out }
    }

    /// Builds a value of its own.
    pub fn build(fill: impl FnOnce(&mut ObjectWriter<'_>)) -> Json {
        let mut text = String::new();
        let mut object = ObjectWriter::new(&mut text);
        fill(&mut object);
        object.end();
        Json::trusted(text)
    }

    /// Writes a key and hands out the text for its value, which the caller must write.
    pub fn key(&mut self, key: &str) -> &mut String {
        push_comma(self.out);
        self.out.push('"');
        push_escaped(self.out, key);
        self.out.push_str("\":");
        self.out
    }

    /// As [`key`](Self::key), for a key that is a token already.
    pub fn key_token(&mut self, token: &str) -> &mut String {
        push_comma(self.out);
        self.out.push_str(token);
        self.out.push(':');
        self.out
    }

    /// As [`key`](Self::key), for the inside of a token.
    pub(crate) fn key_inside(&mut self, inside: &str) -> &mut String {
        push_comma(self.out);
        self.out.push('"');
        self.out.push_str(inside);
        self.out.push_str("\":");
        self.out
    }

    /// Copies a member as it stands, key and all.
    pub fn copy(&mut self, key: JsonRef<'_>, value: JsonRef<'_>) {
        self.key_token(key.as_raw()).push_str(value.as_raw());
    }

    /// Copies the members of an object but that one.
    pub fn copy_all(&mut self, object: JsonRef<'_>, but: &str) {
        for (key, value) in object.entries().filter(|(key, _)| but.is_empty() || !key.is_text(but)) {
            self.copy(key, value);
        }
    }

    /// A text.
    pub fn text(&mut self, key: &str, text: &str) -> &mut Self {
        push_text(self.key(key), text);
        self
    }

    /// A text, or `null`.
    pub fn text_or_null(&mut self, key: &str, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(key, text),
            None => self.raw(key, "null"),
        }
    }

    /// A string that is a token already.
    pub fn token(&mut self, key: &str, token: &JsonStr) -> &mut Self {
        self.raw(key, token.token())
    }

    /// A whole number.
    pub fn number(&mut self, key: &str, number: u64) -> &mut Self {
        self.raw(key, &number.to_string())
    }

    /// A whole number, or `null`.
    pub fn number_or_null(&mut self, key: &str, number: Option<u64>) -> &mut Self {
        match number {
            Some(number) => self.number(key, number),
            None => self.raw(key, "null"),
        }
    }

    /// A boolean.
    pub fn bool(&mut self, key: &str, value: bool) -> &mut Self {
        self.raw(key, if value { "true" } else { "false" })
    }

    /// A value that is JSON already.
    pub fn json(&mut self, key: &str, value: JsonRef<'_>) -> &mut Self {
        self.raw(key, value.as_raw())
    }

    /// Text that the caller vouches for.
    pub fn raw(&mut self, key: &str, text: &str) -> &mut Self {
        self.key(key).push_str(text);
        self
    }

    /// An array, its items written one by one.
    pub fn array(&mut self, key: &str, fill: impl FnOnce(&mut ArrayWriter<'_>)) -> &mut Self {
        let mut array = ArrayWriter::new(self.key(key));
        fill(&mut array);
        array.end();
        self
    }

    /// An array of items that are written already.
    pub fn list(&mut self, key: &str, items: &[String]) -> &mut Self {
        self.raw(key, &list_of(items))
    }

    /// An object inside.
    pub fn object(&mut self, key: &str, fill: impl FnOnce(&mut ObjectWriter<'_>)) -> &mut Self {
        let mut object = ObjectWriter::new(self.key(key));
        fill(&mut object);
        object.end();
        self
    }

    /// Closes the object.
    pub fn end(self) {
        self.out.push('}');
    }
}

/// An array of items that are written already.
#[must_use]
pub fn list_of(items: &[String]) -> String {
    let mut out = String::new();
    let mut array = ArrayWriter::new(&mut out);
    for item in items {
        array.item().push_str(item);
    }
    array.end();
    out
}

/// Writes one array into a text.
pub struct ArrayWriter<'o> {
    out: &'o mut String,
}

impl<'o> ArrayWriter<'o> {
    /// Opens the array.
    pub fn new(out: &'o mut String) -> Self {
        out.push('[');
        Self { out }
    }

    /// Hands out the text for the next item, which the caller must write.
    pub fn item(&mut self) -> &mut String {
        push_comma(self.out);
        self.out
    }

    /// An object as the next item.
    pub fn object(&mut self, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        let mut object = ObjectWriter::new(self.item());
        fill(&mut object);
        object.end();
    }

    /// A text as the next item.
    pub fn text(&mut self, text: &str) {
        push_text(self.item(), text);
    }

    /// Closes the array.
    pub fn end(self) {
        self.out.push(']');
    }
}

/// A comma, except behind the bracket that has just been opened: no value ends in one.
fn push_comma(out: &mut String) {
    if !matches!(out.as_bytes().last(), Some(b'{' | b'[')) {
        out.push(',');
    }
}
