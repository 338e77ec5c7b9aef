//! Server-sent events, cut out of bytes that arrive in any split.
//!
//! Lines may end in LF, CR or CRLF, a character may be cut anywhere, the last blank line may be missing.
//! Each byte is looked at once. What ends within the push it came in is handed on where it lies.

use std::borrow::Cow;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The framing of one stream.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    /// The beginning of a line whose end has not come.
    carry: Vec<u8>,
    /// The event's name, where it has one.
    name: Vec<u8>,
    /// Data lines of an event that an earlier push began, or that has several.
    data: Vec<u8>,
    has_data: bool,
    /// The first line has been read: a byte order mark can no longer come.
    begun: bool,
    /// The last byte was a CR: an LF that comes next belongs to it.
    after_cr: bool,
}

impl SseParser {
    /// Hands each event that is now whole to `sink`, as name and data.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&str, &str)) {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_cr = false;
        }
        // The only data line so far, still in the caller's bytes.
        let mut lent: Option<&[u8]> = None;
        while let Some(at) = line_end(rest) {
            let (line, tail) = rest.split_at(at);
            let ended_by_cr = tail.first() == Some(&b'\r');
            rest = tail.get(1..).unwrap_or_default();
            if ended_by_cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            if self.carry.is_empty() {
                self.line(line, &mut lent, sink);
            } else {
                self.carry.extend_from_slice(line);
                self.carried_line(sink);
            }
        }
        self.carry.extend_from_slice(rest);
        if let Some(line) = lent {
            self.keep(line);
        }
    }

    /// The stream has ended: what it left open is handed on too.
    pub(crate) fn finish(&mut self, sink: &mut dyn FnMut(&str, &str)) {
        if !self.carry.is_empty() {
            self.carried_line(sink);
        }
        self.line(b"", &mut None, sink);
    }

    fn carried_line(&mut self, sink: &mut dyn FnMut(&str, &str)) {
        let mut carry = std::mem::take(&mut self.carry);
        let mut lent = None;
        self.line(&carry, &mut lent, sink);
        if let Some(line) = lent {
            self.keep(line);
        }
        carry.clear();
        self.carry = carry;
    }

    fn line<'a>(&mut self, mut line: &'a [u8], lent: &mut Option<&'a [u8]>, sink: &mut dyn FnMut(&str, &str)) {
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(lent.take(), sink);
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (line.get(..at).unwrap_or_default(), line.get(at + 1..).unwrap_or_default()),
            None => (line, <&[u8]>::default()),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        // A comment is a field without a name; `id` and `retry` are for clients that connect again.
        match field {
            b"data" if self.has_data || lent.is_some() => {
                if let Some(first) = lent.take() {
                    self.keep(first);
                }
                self.keep(value);
            }
            b"data" => *lent = Some(value),
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            _ => {}
        }
    }

    fn keep(&mut self, line: &[u8]) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(line);
        self.has_data = true;
    }

    fn dispatch(&mut self, lent: Option<&[u8]>, sink: &mut dyn FnMut(&str, &str)) {
        let data = lent.or(self.has_data.then_some(self.data.as_slice()));
        if let Some(data) = data {
            sink(&text(&self.name), &text(data));
        }
        self.name.clear();
        self.data.clear();
        self.has_data = false;
    }
}

/// Where the line ends. Sixteen bytes at a time, which compilers turn into few instructions.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let ends = |byte: &u8| (*byte == b'\n') | (*byte == b'\r');
    let clean =
        bytes.chunks_exact(16).take_while(|chunk| !chunk.iter().fold(false, |any, byte| any | ends(byte))).count();
    let from = clean * 16;
    bytes.get(from..)?.iter().position(ends).map(|at| from + at)
}

/// As the standard reads it: what is no UTF-8 becomes U+FFFD.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn events(pushes: &[&[u8]]) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut frames = SseParser::default();
        let mut sink = |name: &str, data: &str| found.push((name.to_owned(), data.to_owned()));
        for bytes in pushes {
            frames.push(bytes, &mut sink);
        }
        frames.finish(&mut sink);
        found
    }

    fn pair(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn reads_fields_and_line_ends() {
        let bytes = "\u{feff}: hi\r\nid: 1\rretry:5\nevent: a\r\ndata: x\r\ndata:y\ndata\n\ndata:  é\n\n\nevent: lost\n\ndata: end";
        let expected = vec![pair("a", "x\ny\n"), pair("", " é"), pair("", "end")];
        assert_eq!(events(&[bytes.as_bytes()]), expected);
        let single: Vec<&[u8]> = bytes.as_bytes().chunks(1).collect();
        assert_eq!(events(&single), expected);
        for at in 0..bytes.len() {
            let (left, right) = bytes.as_bytes().split_at(at);
            assert_eq!(events(&[left, right]), expected, "split at {at}");
            assert_eq!(events(&[left, b"", right]), expected, "split at {at} around nothing");
        }
    }

    #[test]
    fn a_lone_cr_ends_a_line() {
        assert_eq!(
            events(&[b"data: a\r\rdata: b\r", b"\r", b"\ndata: c\n\r\n"]),
            [pair("", "a"), pair("", "b"), pair("", "c")]
        );
    }
}
