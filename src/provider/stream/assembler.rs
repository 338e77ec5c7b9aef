//! The stream assembler: what every dialect's assembler shares.
//!
//! A dialect implements [`AnswerReader`]; a whole response goes through the same code as a streamed one,
//! so that both come to the same message.

use super::assembled::{Assembled, StreamEvent, WireError};
use super::json_array::JsonArraySplitter;
use super::response_meta::{ResponseMeta, malformed};
use super::sse::SseParser;
use crate::json::{JsonRef, Kind, check, trimmed};
use crate::message::Dialect;
use crate::text::has;

/// One dialect's side of the work.
pub(crate) trait AnswerReader: Send {
    /// Takes one event of a stream; `name` is empty where the framing gave none. Where all that it did was to
    /// lengthen one string, it gives the inside of that string's fragment.
    fn event<'a>(&mut self, name: &str, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str>;
    /// Takes an event that differs from the one before in that fragment alone.
    fn again(&mut self, fragment: &str, out: &mut Vec<StreamEvent>);
    /// Takes a whole response.
    fn whole(&mut self, body: JsonRef<'_>);
    /// Whether a list is a stream of events, and not a failure in the wrapping of some gateways.
    fn takes_lists(&self) -> bool {
        false
    }
    /// What the answer has beside its words.
    fn meta(&mut self) -> &mut ResponseMeta;
    /// What there is. `stopped`: it counts as cut off, whatever has come.
    fn assemble(&self, stopped: bool) -> Assembled;
    /// The container in which the provider ran code, if it says so.
    fn container(&self) -> Option<&str> {
        None
    }
}

/// Assembles one streamed response. Feed raw bytes in any split.
pub struct StreamAssembler {
    frames: SseParser,
    body: BodyFormat,
    reader: EventReader,
}

/// Reads events into an answer.
struct EventReader {
    answer: Box<dyn AnswerReader>,
    last: EventPattern,
    done: bool,
}

/// The event before, around the fragment that it brought. Most events of a stream are the same but for that: then
/// comparing is enough, and only the fragment is read.
#[derive(Default)]
struct EventPattern {
    known: bool,
    name: String,
    before: String,
    after: String,
}

/// What the bytes turn out to be.
enum BodyFormat {
    /// Only white space and a byte order mark so far. The first `blank` bytes of `buffer` are known to be that.
    Unknown { buffer: Vec<u8>, blank: usize },
    /// Server-sent events.
    Events,
    /// One JSON list of events (Gemini without `alt=sse`).
    List(JsonArraySplitter),
    /// A server that answers with plain JSON, or with an event a line, although a stream was asked for.
    Plain(Vec<u8>),
}

impl StreamAssembler {
    /// For one response of that dialect.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        let answer = crate::provider::codec(dialect).assembler();
        let reader = EventReader { answer, last: EventPattern::default(), done: false };
        Self { frames: SseParser::default(), body: BodyFormat::Unknown { buffer: Vec::new(), blank: 0 }, reader }
    }

    /// Takes the next bytes and appends what they completed to `events`. After the end it takes no more.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) {
        match &mut self.body {
            BodyFormat::Events => self.push_events(bytes, events),
            BodyFormat::Plain(body) => body.extend_from_slice(bytes),
            BodyFormat::List(items) => items.push(bytes, &mut |item| self.reader.take("", item, false, events)),
            BodyFormat::Unknown { buffer, blank } => {
                buffer.extend_from_slice(bytes);
                *blank = blank_prefix(buffer, *blank);
                let Some(first) = buffer.get(*blank).copied().filter(|_| !is_partial_mark(buffer)) else { return };
                let buffer = std::mem::take(buffer);
                match first {
                    b'[' if self.reader.answer.takes_lists() => {
                        self.body = BodyFormat::List(JsonArraySplitter::default())
                    }
                    b'{' | b'[' => return self.body = BodyFormat::Plain(buffer),
                    _ => self.body = BodyFormat::Events,
                }
                self.push(&buffer, events);
            }
        }
    }

    fn push_events(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) {
        let Self { frames, reader, .. } = self;
        frames.push(bytes, &mut |name, data| reader.take(name, data, false, events));
    }

    /// The bytes have ended: the response, as far as it came. Calls of a response that was cut are not executable.
    pub fn finish(&mut self) -> Assembled {
        match std::mem::replace(&mut self.body, BodyFormat::Events) {
            BodyFormat::Plain(body) => self.reader.take_plain(&body),
            BodyFormat::List(items) => self.reader.end_list(&items),
            BodyFormat::Unknown { .. } | BodyFormat::Events => {
                let Self { frames, reader, .. } = self;
                frames.finish(&mut |name, data| reader.take(name, data, true, &mut Vec::new()));
            }
        }
        self.reader.done = true;
        self.reader.answer.assemble(false)
    }

    /// The container in which the provider ran code, if it said so.
    #[must_use]
    pub fn container(&self) -> Option<String> {
        self.reader.answer.container().map(Into::into)
    }

    /// What has come so far, as a response that was cut here: for a run that is stopped.
    #[must_use]
    pub fn partial(&self) -> Assembled {
        self.reader.answer.assemble(true)
    }
}

/// Reads a whole response. Never fails as a function: what is no response has the status `failed` and says why.
#[must_use]
pub fn read_response(dialect: Dialect, body: &[u8]) -> Assembled {
    read_whole(dialect, body).0
}

/// Whether one event of a stream, or a whole body, reports a failure instead of content.
#[must_use]
pub fn is_error_response(dialect: Dialect, bytes: &[u8]) -> bool {
    read_whole(dialect, bytes).0.error.is_some()
}

/// A whole response, and the container of [`StreamAssembler::container`].
pub(crate) fn read_whole(dialect: Dialect, body: &[u8]) -> (Assembled, Option<String>) {
    let mut assembler = StreamAssembler::new(dialect);
    match first_byte(body) {
        Some(b'[') if assembler.reader.answer.takes_lists() => assembler.push(body, &mut Vec::new()),
        Some(first) if !matches!(first, b'{' | b'[') && looks_framed(body) => assembler.push(body, &mut Vec::new()),
        _ => assembler.body = BodyFormat::Plain(body.to_vec()),
    }
    (assembler.finish(), assembler.container())
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether the bytes are a proper prefix of a byte order mark.
fn is_partial_mark(bytes: &[u8]) -> bool {
    bytes.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(bytes)
}

/// Returns the length of the byte order mark and white space at the start of a body. The first `known` bytes were checked before.
fn blank_prefix(bytes: &[u8], known: usize) -> usize {
    let mark = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let from = known.max(mark);
    let blank = bytes.iter().skip(from).take_while(|byte| byte.is_ascii_whitespace()).count();
    from + blank
}

/// Returns the first byte after a byte order mark and white space, which tells JSON from a stream's framing.
fn first_byte(bytes: &[u8]) -> Option<u8> {
    bytes.get(blank_prefix(bytes, 0)).copied().filter(|_| !is_partial_mark(bytes))
}

/// Whether a body that is no JSON begins like server-sent events: servers stream unasked, too.
fn looks_framed(bytes: &[u8]) -> bool {
    let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let rest = bytes.get(start..).unwrap_or_default();
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|field| rest.starts_with(field))
}

impl EventReader {
    /// One event's data, in whatever state it comes.
    fn take(&mut self, name: &str, data: &str, last: bool, events: &mut Vec<StreamEvent>) {
        let data = trimmed(data);
        if self.done || data.is_empty() {
            return;
        }
        if let Some(fragment) = self.last.fragment(name, data) {
            self.answer.again(fragment, events);
            return;
        }
        self.last.known = false;
        if data == "[DONE]" {
            self.done = true;
            return;
        }
        if let Ok(value) = JsonRef::parse(data) {
            match value.kind() {
                Kind::Object => {
                    let fragment = self.answer.event(name, value, events);
                    self.last.learn(name, data, fragment);
                }
                Kind::Array => {
                    for item in value.items().filter(|item| item.is_object()) {
                        self.answer.event(name, item, events);
                    }
                }
                _ => {}
            }
        } else if has(data, "\n") {
            // A server that ends events with one line end where two are due.
            for line in data.lines() {
                self.take(name, line, last, events);
            }
        } else if !last {
            // Something was lost, and it may be a piece of a call. (Cut off by the end, it is a truncation and no more.)
            let error = not_json(data);
            self.answer.meta().report_error(error, events);
            self.done = true;
        }
    }

    /// The end of a list: one that held nothing is no response.
    fn end_list(&mut self, items: &JsonArraySplitter) {
        if items.is_empty() {
            self.answer.meta().set_error(not_json("[]"));
        }
    }

    /// A body without framing: one JSON value, or one a line.
    fn take_plain(&mut self, body: &[u8]) {
        let text = String::from_utf8_lossy(body);
        if let Ok(value) = JsonRef::parse(&text) {
            // Some gateways wrap a failure in an array.
            let object = if value.is_object() { Some(value) } else { value.items().find(|item| item.is_object()) };
            match object {
                Some(object) => self.answer.whole(object),
                None => self.answer.meta().set_error(not_json(&text)),
            }
            return;
        }
        let mut lines = text.trim_start_matches('\u{feff}').lines().filter(|line| !line.trim().is_empty()).peekable();
        // A line that is JSON by itself is what tells events from a body that is broken.
        if lines.peek().is_none_or(|line| JsonRef::parse(line).is_err()) {
            self.answer.meta().set_error(not_json(&text));
            return;
        }
        while let Some(line) = lines.next() {
            self.take("", line, lines.peek().is_none(), &mut Vec::new());
        }
    }
}

impl EventPattern {
    /// The fragment, if the event is the one before in all else.
    fn fragment<'a>(&self, name: &str, data: &'a str) -> Option<&'a str> {
        if !self.known || self.name != name {
            return None;
        }
        // The quotes on both sides belong to the pattern.
        let fragment = data.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        let token = data.get(self.before.len() - 1..self.before.len() + fragment.len() + 1)?;
        check(token).is_ok().then_some(fragment)
    }

    fn learn(&mut self, name: &str, data: &str, fragment: Option<&str>) {
        let Some(fragment) = fragment else { return };
        // The fragment lies in the data: where, its address says.
        let Some(from) = (fragment.as_ptr() as usize).checked_sub(data.as_ptr() as usize) else { return };
        let (before, rest) = (data.get(..from).unwrap_or_default(), data.get(from..).unwrap_or_default());
        let Some(after) = rest.strip_prefix(fragment) else { return };
        self.known = before.ends_with('"') && after.starts_with('"');
        for (own, new) in [(&mut self.name, name), (&mut self.before, before), (&mut self.after, after)] {
            own.clear();
            own.push_str(new);
        }
    }
}

fn not_json(text: &str) -> WireError {
    let text = text.trim();
    let start: String = text.chars().take(200).collect();
    let message = if start.is_empty() {
        "the response is empty".to_owned()
    } else {
        format!("the response holds what is no JSON object: {start}")
    };
    malformed(message)
}
