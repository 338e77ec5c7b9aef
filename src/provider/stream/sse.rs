//! Parses server-sent events from bytes that arrive in arbitrary chunks.
//!
//! Lines may end in LF, CR or CRLF, a chunk may end inside a character, and the last blank line may be missing. Each
//! byte is read once. The data of an event that lies within one chunk is not copied.

use std::borrow::Cow;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An event of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SseEvent<'e> {
    /// The value of its `event` field; empty if it has none.
    pub name: &'e str,
    /// The values of its `data` fields, joined by line feeds.
    pub data: &'e str,
}

/// The parser of one stream.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    /// The start of a line whose end has not arrived.
    partial_line: Vec<u8>,
    name: Vec<u8>,
    /// The data of an event that an earlier chunk started, or that has several `data` fields.
    data: Vec<u8>,
    has_data: bool,
    /// The first line was read. Only that line can have a byte order mark.
    started: bool,
    /// The last byte was a CR. If an LF follows, both are one line end.
    after_cr: bool,
}

impl SseParser {
    /// Parses the next chunk and passes each completed event to `sink`.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(SseEvent<'_>)) {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_cr = false;
        }
        // The event's only data so far, not copied from `bytes` yet.
        let mut borrowed: Option<&[u8]> = None;
        while let Some(at) = line_end(rest) {
            let (line, tail) = rest.split_at(at);
            let ended_by_cr = tail.first() == Some(&b'\r');
            rest = tail.get(1..).unwrap_or_default();
            if ended_by_cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            if self.partial_line.is_empty() {
                self.read_line(line, &mut borrowed, sink);
            } else {
                self.partial_line.extend_from_slice(line);
                self.read_partial_line(sink);
            }
        }
        self.partial_line.extend_from_slice(rest);
        if let Some(data) = borrowed {
            self.append_data(data);
        }
    }

    /// Ends the stream: an unfinished line and event count as complete.
    pub(crate) fn finish(&mut self, sink: &mut dyn FnMut(SseEvent<'_>)) {
        if !self.partial_line.is_empty() {
            self.read_partial_line(sink);
        }
        self.read_line(b"", &mut None, sink);
    }

    fn read_partial_line(&mut self, sink: &mut dyn FnMut(SseEvent<'_>)) {
        let mut line = std::mem::take(&mut self.partial_line);
        let mut borrowed = None;
        self.read_line(&line, &mut borrowed, sink);
        if let Some(data) = borrowed {
            self.append_data(data);
        }
        line.clear();
        self.partial_line = line;
    }

    fn read_line<'a>(
        &mut self,
        mut line: &'a [u8],
        borrowed: &mut Option<&'a [u8]>,
        sink: &mut dyn FnMut(SseEvent<'_>),
    ) {
        if !self.started {
            self.started = true;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(borrowed.take(), sink);
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (line.get(..at).unwrap_or_default(), line.get(at + 1..).unwrap_or_default()),
            None => (line, <&[u8]>::default()),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        // A comment is a field without a name. `id` and `retry` are for clients that reconnect.
        match field {
            b"data" if self.has_data || borrowed.is_some() => {
                if let Some(first) = borrowed.take() {
                    self.append_data(first);
                }
                self.append_data(value);
            }
            b"data" => *borrowed = Some(value),
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            _ => {}
        }
    }

    fn append_data(&mut self, line: &[u8]) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(line);
        self.has_data = true;
    }

    fn dispatch(&mut self, borrowed: Option<&[u8]>, sink: &mut dyn FnMut(SseEvent<'_>)) {
        let data = borrowed.or(self.has_data.then_some(self.data.as_slice()));
        if let Some(data) = data {
            sink(SseEvent { name: &decode_utf8(&self.name), data: &decode_utf8(data) });
        }
        self.name.clear();
        self.data.clear();
        self.has_data = false;
    }
}

/// Returns the position of the first line end. Checks sixteen bytes at a time, which compilers vectorize.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| (*byte == b'\n') | (*byte == b'\r');
    let has_end = |chunk: &[u8]| chunk.iter().fold(false, |any, byte| any | is_end(byte));
    let from = bytes.chunks_exact(16).take_while(|chunk| !has_end(chunk)).count() * 16;
    bytes.get(from..)?.iter().position(is_end).map(|at| from + at)
}

/// Decodes UTF-8 as the standard for server-sent events requires: invalid bytes become U+FFFD.
fn decode_utf8(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn events(pushes: &[&[u8]]) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut parser = SseParser::default();
        let mut sink = |event: SseEvent<'_>| found.push(pair(event.name, event.data));
        for bytes in pushes {
            parser.push(bytes, &mut sink);
        }
        parser.finish(&mut sink);
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
