//! The tokens of a JSON value, in the order of the text.

use super::scan::{skip_space, skip_string};
use super::view::JsonRef;

/// A token. Text is as it is written, strings with their quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonToken<'a> {
    /// The start of an array or an object.
    Open { is_object: bool },
    /// The end of the innermost array or object.
    Close,
    /// The key of the member that follows.
    Key(&'a str),
    /// A string that is no key.
    Text(&'a str),
    /// A number, `true`, `false` or `null`.
    Literal(&'a str),
}

/// Reads the tokens of a value, which was checked before. Does not recurse.
pub(super) struct JsonTokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonTokens<'a> {
    pub fn of(value: JsonRef<'a>) -> Self {
        Self { text: value.as_raw(), at: 0 }
    }
}

impl<'a> Iterator for JsonTokens<'a> {
    type Item = JsonToken<'a>;

    fn next(&mut self) -> Option<JsonToken<'a>> {
        let bytes = self.text.as_bytes();
        let mut start = skip_space(bytes, self.at);
        while bytes.get(start) == Some(&b',') {
            start = skip_space(bytes, start + 1);
        }
        self.at = start;
        self.at += 1;
        match bytes.get(start)? {
            byte @ (b'{' | b'[') => Some(JsonToken::Open { is_object: *byte == b'{' }),
            b'}' | b']' => Some(JsonToken::Close),
            b'"' => {
                self.at = skip_string(bytes, start);
                let token = self.text.get(start..self.at)?;
                let colon = skip_space(bytes, self.at);
                if bytes.get(colon) == Some(&b':') {
                    self.at = colon + 1;
                    return Some(JsonToken::Key(token));
                }
                Some(JsonToken::Text(token))
            }
            _ => {
                while !matches!(bytes.get(self.at), None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')) {
                    self.at += 1;
                }
                self.text.get(start..self.at).map(JsonToken::Literal)
            }
        }
    }
}
