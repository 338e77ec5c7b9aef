//! Writers of objects and arrays that append to a text and insert the commas.

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

    /// Continues an object whose text is not closed.
    pub fn resume(out: &'o mut String) -> Self {
        Self { out }
    }

    /// Builds an object as a value.
    pub fn build(fill: impl FnOnce(&mut ObjectWriter<'_>)) -> Json {
        let mut text = String::new();
        let mut object = ObjectWriter::new(&mut text);
        fill(&mut object);
        object.end();
        Json::trusted(text)
    }

    /// Writes a key and returns the text to which the caller must append the value.
    pub fn key(&mut self, key: &str) -> &mut String {
        push_comma(self.out);
        self.out.push('"');
        push_escaped(self.out, key);
        self.out.push_str("\":");
        self.out
    }

    /// Like [`key`](Self::key), for a token.
    pub fn key_token(&mut self, token: &str) -> &mut String {
        push_comma(self.out);
        self.out.push_str(token);
        self.out.push(':');
        self.out
    }

    /// Like [`key`](Self::key), for the inside of a token.
    pub(crate) fn key_inside(&mut self, inside: &str) -> &mut String {
        push_comma(self.out);
        self.out.push('"');
        self.out.push_str(inside);
        self.out.push_str("\":");
        self.out
    }

    /// Copies a member unchanged.
    pub fn copy(&mut self, key: JsonRef<'_>, value: JsonRef<'_>) {
        self.key_token(key.as_raw()).push_str(value.as_raw());
    }

    /// Copies an object, with this JSON text as the value of its members of a name.
    pub fn copy_with(&mut self, object: JsonRef<'_>, name: &str, text: &str) {
        for (key, value) in object.entries() {
            if key.is_text(name) {
                self.key_token(key.as_raw()).push_str(text);
            } else {
                self.copy(key, value);
            }
        }
    }

    /// Copies the members of an object except those of the key `but`; all of them if that is empty.
    pub fn copy_all(&mut self, object: JsonRef<'_>, but: &str) {
        for (key, value) in object.entries().filter(|(key, _)| but.is_empty() || !key.is_text(but)) {
            self.copy(key, value);
        }
    }

    /// Writes a text.
    pub fn text(&mut self, key: &str, text: &str) -> &mut Self {
        push_text(self.key(key), text);
        self
    }

    /// Writes a text, or `null`.
    pub fn text_or_null(&mut self, key: &str, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(key, text),
            None => self.raw(key, "null"),
        }
    }

    /// Writes a string that is a token already.
    pub fn token(&mut self, key: &str, token: &JsonStr) -> &mut Self {
        self.raw(key, token.token())
    }

    /// Writes a whole number.
    pub fn number(&mut self, key: &str, number: u64) -> &mut Self {
        self.raw(key, &number.to_string())
    }

    /// Writes a whole number, or `null`.
    pub fn number_or_null(&mut self, key: &str, number: Option<u64>) -> &mut Self {
        match number {
            Some(number) => self.number(key, number),
            None => self.raw(key, "null"),
        }
    }

    /// Writes a boolean.
    pub fn bool(&mut self, key: &str, value: bool) -> &mut Self {
        self.raw(key, if value { "true" } else { "false" })
    }

    /// Writes a JSON value.
    pub fn json(&mut self, key: &str, value: JsonRef<'_>) -> &mut Self {
        self.raw(key, value.as_raw())
    }

    /// Writes text that must be a JSON value; it is not checked.
    pub fn raw(&mut self, key: &str, text: &str) -> &mut Self {
        self.key(key).push_str(text);
        self
    }

    /// Writes an array, whose items `fill` writes.
    pub fn array(&mut self, key: &str, fill: impl FnOnce(&mut ArrayWriter<'_>)) -> &mut Self {
        let mut array = ArrayWriter::new(self.key(key));
        fill(&mut array);
        array.end();
        self
    }

    /// Writes an array of encoded items.
    pub fn list(&mut self, key: &str, items: &[String]) -> &mut Self {
        self.raw(key, &list_of(items))
    }

    /// Writes an object, whose members `fill` writes.
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

/// Encodes an array of encoded items.
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

    /// Returns the text to which the caller must append the next item.
    pub fn item(&mut self) -> &mut String {
        push_comma(self.out);
        self.out
    }

    /// Writes an object as the next item.
    pub fn object(&mut self, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        let mut object = ObjectWriter::new(self.item());
        fill(&mut object);
        object.end();
    }

    /// Writes a text as the next item.
    pub fn text(&mut self, text: &str) {
        push_text(self.item(), text);
    }

    /// Closes the array.
    pub fn end(self) {
        self.out.push(']');
    }
}

/// Appends a comma, except right after an opening bracket. No value ends in one.
fn push_comma(out: &mut String) {
    if !matches!(out.as_bytes().last(), Some(b'{' | b'[')) {
        out.push(',');
    }
}
