//! Splits a JSON array that arrives in arbitrary chunks into its items.

use std::borrow::Cow;

/// The splitter of one array of objects and arrays. It does not validate its input, and skips items of other types.
#[derive(Debug, Default)]
pub(crate) struct JsonArraySplitter {
    /// The item that has started.
    item: Vec<u8>,
    /// The number of open brackets, including the array's own.
    depth: u32,
    in_string: bool,
    escaped: bool,
    count: u32,
}

impl JsonArraySplitter {
    /// Reads the next chunk and passes each completed item to `sink`.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&str)) {
        for byte in bytes {
            if self.depth > 1 {
                self.item.push(*byte);
            }
            if self.in_string {
                match byte {
                    _ if std::mem::take(&mut self.escaped) => {}
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.depth = self.depth.saturating_add(1);
                    if self.depth == 2 {
                        self.item.push(*byte);
                    }
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 1 && !self.item.is_empty() {
                        self.count += 1;
                        let item = std::mem::take(&mut self.item);
                        sink(
                            &std::str::from_utf8(&item).map_or_else(|_| String::from_utf8_lossy(&item), Cow::Borrowed),
                        );
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns true if the array has ended without an item, or has not started.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0 && self.depth == 0
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn any_split_gives_the_same_items() {
        let text = "\u{feff} [{\"a\":\"]}\\\"{\"},\r\n{\"b\":[1,{\"é\":2}]} , 7, {} ]";
        let expected = ["{\"a\":\"]}\\\"{\"}", "{\"b\":[1,{\"é\":2}]}", "{}"];
        for size in 1..text.len() {
            let (mut items, mut found) = (JsonArraySplitter::default(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                items.push(piece, &mut |item| found.push(item.to_owned()));
            }
            assert_eq!(found, expected, "pieces of {size}");
            assert!(!items.is_empty());
        }
    }

    #[test]
    fn a_truncated_item_is_not_returned() {
        let (mut items, mut found) = (JsonArraySplitter::default(), Vec::new());
        items.push(b"[{\"a\":1},{\"b\":", &mut |item| found.push(item.to_owned()));
        assert_eq!(found, ["{\"a\":1}"]);
    }
}
