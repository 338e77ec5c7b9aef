//! Detects the end of a JSON object in a text that arrives in fragments. Each byte is read once.

/// The state of a bracket scanner over a growing text.
#[derive(Debug, Default)]
pub(super) struct ObjectEnd {
    /// The number of bytes that were scanned.
    scanned: usize,
    depth: u32,
    in_string: bool,
    /// Consecutive backslashes before the next byte: an odd number escapes a quote.
    backslashes: u32,
    ended: bool,
    /// The text does not begin with an object, or something other than white space follows it.
    invalid: bool,
}

impl ObjectEnd {
    /// Returns true if the text is one object by its brackets; it may still be invalid JSON. `inside` is the content of
    /// a JSON string token (escaped, without quotes) and must begin with the text of the last call.
    pub(super) fn is_reached(&mut self, inside: &str) -> bool {
        let mut bytes = inside.as_bytes().get(self.scanned..).unwrap_or_default().iter();
        self.scanned = inside.len();
        while let Some(byte) = bytes.next() {
            let byte = match byte {
                b'\\' => match bytes.next() {
                    Some(b'n' | b'r' | b't') => b' ',
                    // `\u…` is valid within a string only. Outside of one, any letter invalidates the text.
                    Some(b'u') => b'u',
                    Some(escaped) => *escaped,
                    None => b'u',
                },
                byte => *byte,
            };
            self.take(byte);
        }
        self.ended && !self.invalid
    }

    fn take(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                b'\\' => self.backslashes += 1,
                b'"' if self.backslashes.is_multiple_of(2) => self.in_string = false,
                _ => self.backslashes = 0,
            }
            return;
        }
        self.backslashes = 0;
        match byte {
            b' ' => {}
            _ if self.ended => self.invalid = true,
            b'{' => self.depth = self.depth.saturating_add(1),
            _ if self.depth == 0 => self.invalid = true,
            b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.depth -= 1;
                self.ended = self.depth == 0;
            }
            b'"' => self.in_string = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use crate::json::{JsonStr, check};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn r63_agrees_with_parsing_the_whole_text_after_each_fragment(
            pieces in proptest::collection::vec("[{}\\[\\]\"\\\\a1:, \n]{0,3}", 0..14),
        ) {
            let (mut end, mut text) = (ObjectEnd::default(), String::new());
            for piece in pieces {
                text.push_str(&piece);
                let whole = text.trim_start().starts_with('{') && check(&text).is_ok();
                let token = JsonStr::new(&text);
                let found = end.is_reached(token.inside());
                prop_assert!(found || !whole, "{text:?} is an object");
            }
        }
    }

    #[test]
    fn the_end_of_an_object_is_found_in_any_split() {
        let text = r#" {"a":"\\\"}{","b":[{"c":{}}]} "#;
        let token = JsonStr::new(text);
        let from = token.inside().rfind('}').unwrap() + 1;
        for size in 1..5 {
            let mut end = ObjectEnd::default();
            let mut at = 0;
            while at < token.inside().len() {
                at = (at + size).min(token.inside().len());
                while token.inside()[..at].ends_with('\\') && at < token.inside().len() {
                    at += 1;
                }
                assert_eq!(end.is_reached(&token.inside()[..at]), at >= from, "{}", &token.inside()[..at]);
            }
        }
    }
}
