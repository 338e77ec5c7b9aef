//! Assembles responses: reads events from the bytes of a stream, and passes them to the dialect's [`AnswerReader`].
//!
//! A whole response goes through the same code as a streamed one, so that both result in the same message.

use super::answer_block::AnswerBlock;
use super::answer_reader::AnswerReader;
use super::assembled::{Assembled, StreamEvent, WireError};
use super::frame_reader::FrameReader;
use super::json_array::JsonArraySplitter;
use super::response_meta::{ResponseMeta, malformed};
use super::sse::{SseEvent, SseParser};
use crate::json::{JsonKind, JsonRef, check, trimmed};

/// Assembles one response from its bytes, in arbitrary chunks.
pub struct StreamAssembler {
    sse: SseParser,
    /// The reader of frames, in a dialect that has them.
    frames: Option<Box<dyn FrameReader>>,
    body: BodyFormat,
    reader: EventReader,
}

/// Passes events to the dialect's reader.
struct EventReader {
    answer: Box<dyn AnswerReader>,
    last_event: EventPattern,
    done: bool,
}

/// The JSON of the last event, around the fragment in it. Most events of a stream differ only in their fragment: then
/// comparing the rest is enough, and the JSON is not parsed.
#[derive(Default)]
struct EventPattern {
    is_set: bool,
    name: String,
    before: String,
    after: String,
}

/// The format of the bytes.
enum BodyFormat {
    /// Only white space and a byte order mark so far. Of `buffer`, the first `blank` bytes are known to be that.
    Unknown { buffer: Vec<u8>, blank: usize },
    /// Server-sent events.
    Events,
    /// Frames of the dialect.
    Frames,
    /// A JSON array of events (Gemini without `alt=sse`).
    Array(JsonArraySplitter),
    /// Plain JSON, or one event a line, from a server that does not stream as requested.
    Plain(Vec<u8>),
}

impl StreamAssembler {
    /// Creates an assembler for one response, which a dialect's reader reads.
    pub(crate) fn of(answer: Box<dyn AnswerReader>) -> Self {
        let frames = answer.frames();
        let reader = EventReader { answer, last_event: EventPattern::default(), done: false };
        Self { sse: SseParser::default(), frames, body: BodyFormat::Unknown { buffer: Vec::new(), blank: 0 }, reader }
    }

    /// Reads the next chunk and appends the events that it completes. Ignores chunks after the end of the response.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) {
        match &mut self.body {
            BodyFormat::Events => self.push_events(bytes, events),
            BodyFormat::Frames => self.push_frames(bytes, events),
            BodyFormat::Plain(body) => body.extend_from_slice(bytes),
            BodyFormat::Array(items) => {
                items.push(bytes, &mut |data| self.reader.read(SseEvent { name: "", data }, false, events))
            }
            BodyFormat::Unknown { buffer, blank } => {
                buffer.extend_from_slice(bytes);
                *blank = blank_prefix(buffer, *blank);
                let Some(first) = buffer.get(*blank).copied().filter(|_| !is_partial_mark(buffer)) else { return };
                let buffer = std::mem::take(buffer);
                match first {
                    b'[' if self.reader.answer.accepts_array() => {
                        self.body = BodyFormat::Array(JsonArraySplitter::default())
                    }
                    b'{' | b'[' => return self.body = BodyFormat::Plain(buffer),
                    first if begins_frames(self.frames.as_deref(), first) => self.body = BodyFormat::Frames,
                    _ => self.body = BodyFormat::Events,
                }
                self.push(&buffer, events);
            }
        }
    }

    fn push_events(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) {
        let Self { sse, reader, .. } = self;
        sse.push(bytes, &mut |event| reader.read(event, false, events));
    }

    fn push_frames(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) {
        let Self { frames: Some(frames), reader, .. } = self else { return };
        if let Err(error) = frames.push(bytes, &mut |event| reader.read(event, false, events))
            && !reader.done
        {
            reader.answer.meta_mut().report_error(error, events);
            reader.done = true;
        }
    }

    /// Ends the response and returns what was received. Calls of a truncated response are not executable.
    pub fn finish(&mut self) -> Assembled {
        self.finish_into(&mut Vec::new())
    }

    /// As [`finish`](Self::finish); appends the events that the end completes.
    pub(crate) fn finish_into(&mut self, events: &mut Vec<StreamEvent>) -> Assembled {
        match std::mem::replace(&mut self.body, BodyFormat::Events) {
            BodyFormat::Plain(body) => self.reader.read_plain(&body),
            BodyFormat::Array(items) => self.reader.end_array(&items),
            // The start of a frame whose end is missing is a truncation.
            BodyFormat::Frames => {}
            BodyFormat::Unknown { .. } | BodyFormat::Events => {
                let Self { sse, reader, .. } = self;
                sse.finish(&mut |event| reader.read(event, true, events));
            }
        }
        self.reader.done = true;
        self.reader.answer.assemble(false)
    }

    /// Prepares for the rest of the response, from another connection. Events that were received before are ignored.
    pub(crate) fn resume(&mut self) {
        self.sse = SseParser::default();
        self.body = BodyFormat::Unknown { buffer: Vec::new(), blank: 0 };
        self.reader.last_event = EventPattern::default();
        self.reader.done = false;
        let meta = self.reader.answer.meta_mut();
        // What broke is the stream, and not the answer.
        meta.error = None;
        // An answer that was not ready may be ready now.
        meta.finish_reason = None;
        meta.resumed_after = meta.last_event;
    }

    /// Reads the whole response, of which a part was received as a stream, and appends the events of what is new.
    pub(crate) fn read_rest(&mut self, body: &[u8], events: &mut Vec<StreamEvent>) -> Assembled {
        self.resume();
        let text = String::from_utf8_lossy(body);
        match JsonRef::parse(&text) {
            Ok(value) if value.is_object() => self.reader.answer.read_rest(value, events),
            _ => self.reader.answer.meta_mut().set_error(not_json(&text)),
        }
        self.reader.answer.assemble(false)
    }

    /// Returns the id of the container in which the provider ran code, if it reported one (Anthropic).
    #[must_use]
    pub fn container(&self) -> Option<String> {
        self.reader.answer.container().map(Into::into)
    }

    /// Visits the blocks received so far.
    pub fn visit_blocks(&self, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        self.reader.answer.visit_blocks(visit);
    }

    /// Returns true if something of the answer was received, be it no block.
    pub(crate) fn has_content(&self) -> bool {
        self.reader.answer.has_content()
    }

    /// Returns the metadata received so far.
    pub(crate) fn meta(&self) -> &ResponseMeta {
        self.reader.answer.meta()
    }

    /// Returns what was received so far as a truncated response, for a run that is stopped.
    #[must_use]
    pub fn partial(&self) -> Assembled {
        self.reader.answer.assemble(true)
    }
}

/// Reads a whole response and its [`container`](StreamAssembler::container). Bytes that are not a response result in
/// the status `failed` and an error.
pub(crate) fn read_whole(answer: Box<dyn AnswerReader>, body: &[u8]) -> (Assembled, Option<String>) {
    let mut assembler = StreamAssembler::of(answer);
    match first_byte(body) {
        Some(b'[') if assembler.reader.answer.accepts_array() => assembler.push(body, &mut Vec::new()),
        Some(first) if begins_frames(assembler.frames.as_deref(), first) => assembler.push(body, &mut Vec::new()),
        Some(first) if !matches!(first, b'{' | b'[') && is_event_stream(body) => assembler.push(body, &mut Vec::new()),
        _ => assembler.body = BodyFormat::Plain(body.to_vec()),
    }
    (assembler.finish(), assembler.container())
}

/// Returns true if the dialect has frames and the byte begins one.
fn begins_frames(frames: Option<&dyn FrameReader>, first: u8) -> bool {
    frames.is_some_and(|frames| frames.begins(first))
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns true if the bytes are the start of a byte order mark, but not all of it.
fn is_partial_mark(bytes: &[u8]) -> bool {
    bytes.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(bytes)
}

/// Returns the length of the byte order mark and white space at the start of a body. The first `known` bytes were
/// checked before.
fn blank_prefix(bytes: &[u8], known: usize) -> usize {
    let mark = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let from = known.max(mark);
    let blank = bytes.iter().skip(from).take_while(|byte| byte.is_ascii_whitespace()).count();
    from + blank
}

/// Returns the first byte after a byte order mark and white space, which distinguishes JSON from server-sent events.
fn first_byte(bytes: &[u8]) -> Option<u8> {
    bytes.get(blank_prefix(bytes, 0)).copied().filter(|_| !is_partial_mark(bytes))
}

/// Returns true if a body starts like server-sent events. Some servers stream although no stream was requested.
fn is_event_stream(bytes: &[u8]) -> bool {
    let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let rest = bytes.get(start..).unwrap_or_default();
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|field| rest.starts_with(field))
}

impl EventReader {
    /// Reads one event. `is_last`: the stream ended with it, so that it may be incomplete.
    fn read(&mut self, event: SseEvent<'_>, is_last: bool, events: &mut Vec<StreamEvent>) {
        let (name, data) = (event.name, trimmed(event.data));
        if self.done || data.is_empty() {
            return;
        }
        if let Some(fragment) = self.last_event.fragment_of(SseEvent { name, data }) {
            self.answer.read_fragment(fragment, events);
            return;
        }
        self.last_event.is_set = false;
        if data == "[DONE]" {
            self.done = true;
            return;
        }
        if let Ok(value) = JsonRef::parse(data) {
            match value.kind() {
                JsonKind::Object => {
                    if let Some(fragment) = self.answer.read_event(name, value, events) {
                        self.last_event.set(SseEvent { name, data }, fragment);
                    }
                }
                JsonKind::Array => {
                    for item in value.items().filter(|item| item.is_object()) {
                        self.answer.read_event(name, item, events);
                    }
                }
                _ => {}
            }
        } else if data.contains('\n') {
            // Some servers end an event with one line end instead of two.
            for line in data.lines() {
                self.read(SseEvent { name, data: line }, is_last, events);
            }
        } else if !is_last {
            // Data was lost, and may belong to a call. An incomplete last event is only a truncation.
            let error = not_json(data);
            self.answer.meta_mut().report_error(error, events);
            self.done = true;
        }
    }

    /// Ends an array of events. One without events is not a response.
    fn end_array(&mut self, items: &JsonArraySplitter) {
        if items.is_empty() {
            self.answer.meta_mut().set_error(not_json("[]"));
        }
    }

    /// Reads a body that is one JSON value, or one a line.
    fn read_plain(&mut self, body: &[u8]) {
        let text = String::from_utf8_lossy(body);
        if let Ok(value) = JsonRef::parse(&text) {
            // Some gateways wrap an error in an array.
            let object = if value.is_object() { Some(value) } else { value.items().find(|item| item.is_object()) };
            match object {
                Some(object) => self.answer.read_body(object),
                None => self.answer.meta_mut().set_error(not_json(&text)),
            }
            return;
        }
        let mut lines = text.trim_start_matches('\u{feff}').lines().filter(|line| !line.trim().is_empty()).peekable();
        // If the first line is JSON, each line is an event. Otherwise the body is damaged.
        if lines.peek().is_none_or(|line| JsonRef::parse(line).is_err()) {
            self.answer.meta_mut().set_error(not_json(&text));
            return;
        }
        while let Some(line) = lines.next() {
            self.read(SseEvent { name: "", data: line }, lines.peek().is_none(), &mut Vec::new());
        }
    }
}

impl EventPattern {
    /// Returns the fragment of an event that differs from the pattern in nothing else.
    fn fragment_of<'a>(&self, event: SseEvent<'a>) -> Option<&'a str> {
        if !self.is_set || self.name != event.name {
            return None;
        }
        // The quotes on both sides of the fragment belong to the pattern.
        let data = event.data;
        let fragment = data.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        let token = data.get(self.before.len() - 1..self.before.len() + fragment.len() + 1)?;
        check(token).is_ok().then_some(fragment)
    }

    /// Sets the pattern to an event around `fragment`, which is a slice of its data.
    fn set(&mut self, event: SseEvent<'_>, fragment: &str) {
        let data = event.data;
        let Some(from) = (fragment.as_ptr() as usize).checked_sub(data.as_ptr() as usize) else { return };
        let (before, rest) = (data.get(..from).unwrap_or_default(), data.get(from..).unwrap_or_default());
        let Some(after) = rest.strip_prefix(fragment) else { return };
        self.is_set = before.ends_with('"') && after.starts_with('"');
        for (member, text) in [(&mut self.name, event.name), (&mut self.before, before), (&mut self.after, after)] {
            member.clear();
            member.push_str(text);
        }
    }
}

/// Returns the error for text that is not a JSON object; its message quotes the start of the text.
fn not_json(text: &str) -> WireError {
    let start: String = text.trim().chars().take(200).collect();
    let message = if start.is_empty() {
        "the response is empty".to_owned()
    } else {
        format!("the response contains text that is not a JSON object: {start}")
    };
    malformed(message)
}
