//! Finds where an object ends in a text that grows, each byte read once.

/// How far a text was read, and what is open there.
#[derive(Debug, Default)]
pub(super) struct ObjectEnd {
    read: usize,
    depth: u32,
    in_string: bool,
    /// Backslashes of the text that stand side by side.
    slashes: u32,
    ended: bool,
    /// It begins with something else, or something follows its end.
    spoilt: bool,
}

impl ObjectEnd {
    /// Whether the text is one object, as far as its brackets tell. `inside` is the inside of a JSON string's token, and begins
    /// with what was given before.
    pub(super) fn is_at(&mut self, inside: &str) -> bool {
        let mut bytes = inside.as_bytes().get(self.read..).unwrap_or_default().iter();
        self.read = inside.len();
        while let Some(byte) = bytes.next() {
            let byte = match byte {
                b'\\' => match bytes.next() {
                    Some(b'n' | b'r' | b't') => b' ',
                    // A character by its number is in a string of the text, or spoils it.
                    Some(b'u') => b'u',
                    Some(escaped) => *escaped,
                    None => b'u',
                },
                byte => *byte,
            };
            self.take(byte);
        }
        self.ended && !self.spoilt
    }

    fn take(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                b'\\' => self.slashes += 1,
                b'"' if self.slashes.is_multiple_of(2) => self.in_string = false,
                _ => self.slashes = 0,
            }
            return;
        }
        self.slashes = 0;
        match byte {
            b' ' => {}
            _ if self.ended => self.spoilt = true,
            b'{' => self.depth = self.depth.saturating_add(1),
            _ if self.depth == 0 => self.spoilt = true,
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
        fn r63_agrees_with_reading_the_whole_text_at_each_piece(
            pieces in proptest::collection::vec("[{}\\[\\]\"\\\\a1:, \n]{0,3}", 0..14),
        ) {
            let (mut end, mut text) = (ObjectEnd::default(), String::new());
            for piece in pieces {
                text.push_str(&piece);
                let whole = text.trim_start().starts_with('{') && check(&text).is_ok();
                let token = JsonStr::new(&text);
                let found = end.is_at(token.inside());
                prop_assert!(found || !whole, "{text:?} is an object");
            }
        }
    }

    #[test]
    fn an_object_is_found_in_any_pieces() {
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
                assert_eq!(end.is_at(&token.inside()[..at]), at >= from, "{}", &token.inside()[..at]);
            }
        }
    }
}
