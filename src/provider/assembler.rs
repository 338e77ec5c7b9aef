//! The stream assembler: what every dialect's assembler shares.
//!
//! A dialect implements [`Assembling`]; a whole response goes through the same code as a streamed one,
//! so that both come to the same message.

use super::assembled::{Assembled, StreamEvent, WireError};
use super::facts::{Facts, malformed};
use super::list::Items;
use super::sse::Frames;
use crate::json::{JsonRef, JsonStr, Kind, ObjectWriter, check, ends_in_high_surrogate, list_of, trimmed};
use crate::message::Dialect;
use crate::text::has;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One dialect's side of the work.
pub(crate) trait Assembling: Send {
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
    fn facts(&mut self) -> &mut Facts;
    /// What there is. `stopped`: it counts as cut off, whatever has come.
    fn assemble(&self, stopped: bool) -> Assembled;
    /// The container in which the provider ran code, if it says so.
    fn container(&self) -> Option<&str> {
        None
    }
}

/// Assembles one streamed response. Feed raw bytes in any split.
pub struct StreamAssembler {
    frames: Frames,
    body: Body,
    reader: Reader,
}

/// Reads events into an answer.
struct Reader {
    answer: Box<dyn Assembling>,
    last: Pattern,
    done: bool,
}

/// The event before, around the fragment that it brought. Most events of a stream are the same but for that: then
/// comparing is enough, and only the fragment is read.
#[derive(Default)]
struct Pattern {
    known: bool,
    name: String,
    before: String,
    after: String,
}

/// What the bytes turn out to be.
enum Body {
    /// Only white space and a byte order mark so far. The first `blank` bytes of `buffer` are known to be that.
    Unknown { buffer: Vec<u8>, blank: usize },
    /// Server-sent events.
    Events,
    /// One JSON list of events (Gemini without `alt=sse`).
    List(Items),
    /// A server that answers with plain JSON, or with an event a line, although a stream was asked for.
    Plain(Vec<u8>),
}

impl StreamAssembler {
    /// For one response of that dialect.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        let answer = super::codec(dialect).assembler();
        let reader = Reader { answer, last: Pattern::default(), done: false };
        Self { frames: Frames::default(), body: Body::Unknown { buffer: Vec::new(), blank: 0 }, reader }
    }

    /// Takes the next bytes and appends what they completed to `events`. After the end it takes no more.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<StreamEvent>) {
        match &mut self.body {
            Body::Events => self.push_events(bytes, events),
            Body::Plain(body) => body.extend_from_slice(bytes),
            Body::List(items) => items.push(bytes, &mut |item| self.reader.take("", item, false, events)),
            Body::Unknown { buffer, blank } => {
                buffer.extend_from_slice(bytes);
                *blank = blank_prefix(buffer, *blank);
                let Some(first) = buffer.get(*blank).copied().filter(|_| !is_partial_mark(buffer)) else { return };
                let buffer = std::mem::take(buffer);
                match first {
                    b'[' if self.reader.answer.takes_lists() => self.body = Body::List(Items::default()),
                    b'{' | b'[' => return self.body = Body::Plain(buffer),
                    _ => self.body = Body::Events,
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
        match std::mem::replace(&mut self.body, Body::Events) {
            Body::Plain(body) => self.reader.take_plain(&body),
            Body::List(items) => self.reader.end_list(&items),
            Body::Unknown { .. } | Body::Events => {
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
        _ => assembler.body = Body::Plain(body.to_vec()),
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

impl Reader {
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
            self.answer.facts().failed(error, events);
            self.done = true;
        }
    }

    /// The end of a list: one that held nothing is no response.
    fn end_list(&mut self, items: &Items) {
        if items.is_empty() {
            self.answer.facts().fail(not_json("[]"));
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
                None => self.answer.facts().fail(not_json(&text)),
            }
            return;
        }
        let mut lines = text.trim_start_matches('\u{feff}').lines().filter(|line| !line.trim().is_empty()).peekable();
        // A line that is JSON by itself is what tells events from a body that is broken.
        if lines.peek().is_none_or(|line| JsonRef::parse(line).is_err()) {
            self.answer.facts().fail(not_json(&text));
            return;
        }
        while let Some(line) = lines.next() {
            self.take("", line, lines.peek().is_none(), &mut Vec::new());
        }
    }
}

impl Pattern {
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

/// A failure in the words of an error object, of whatever shape; none where it says nothing.
pub(crate) fn error_words(error: JsonRef<'_>) -> Option<WireError> {
    match error.kind() {
        Kind::String => error
            .as_text()
            .filter(|text| !text.is_empty())
            .map(|text| WireError { code: None, message: text.into_owned() }),
        Kind::Object if error.entries().next().is_some() => {
            let word = |name| error.get(name).and_then(word);
            let message = word("message").or_else(|| word("detail")).unwrap_or_else(|| error.as_raw().to_owned());
            Some(WireError { code: word("code").or_else(|| word("type")).or_else(|| word("status")), message })
        }
        _ => None,
    }
}

/// A string's text or a number's digits.
fn word(value: JsonRef<'_>) -> Option<String> {
    match value.kind() {
        Kind::String => value.as_text().filter(|text| !text.is_empty()).map(Cow::into_owned),
        Kind::Number => Some(value.as_raw().to_owned()),
        _ => None,
    }
}

/// The inside of a string token, if the value is one.
pub(crate) fn inside(value: JsonRef<'_>) -> Option<&str> {
    value.as_raw().strip_prefix('"')?.strip_suffix('"')
}

/// A decoded string, if the value is one that says something.
pub(crate) fn said(value: Option<JsonRef<'_>>) -> Option<Cow<'_, str>> {
    value?.as_text().filter(|text| !text.is_empty())
}

/// A string that grows by fragments, kept as the inside of its token.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    inside: String,
    /// How much of it has been handed out.
    told: usize,
}

impl Growing {
    /// A text of which nothing was emitted yet. `inside` is the content of a JSON string token.
    pub(crate) fn new(inside: &str) -> Self {
        Self { inside: inside.to_owned(), told: 0 }
    }

    /// Returns the part of the text that was emitted.
    pub(crate) fn emitted(&self) -> &str {
        self.inside.get(..self.told).unwrap_or_default()
    }

    /// Marks the first `bytes` bytes as emitted.
    pub(crate) fn mark_emitted(&mut self, bytes: usize) {
        self.told = bytes;
    }

    pub(crate) fn append(&mut self, fragment: &str) {
        self.inside.push_str(fragment);
    }

    pub(crate) fn replace(&mut self, text: &str) {
        self.inside.clear();
        crate::json::push_escaped(&mut self.inside, text);
        self.told = 0;
    }

    /// What it comes to in the end: where that goes on from what was told, the rest is told.
    pub(crate) fn settle(&mut self, inside: &str) {
        self.told = if inside.starts_with(self.emitted()) { self.told } else { inside.len() };
        self.inside.clear();
        self.inside.push_str(inside);
    }

    pub(crate) fn inside(&self) -> &str {
        &self.inside
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    pub(crate) fn to_str(&self) -> JsonStr {
        JsonStr::from_inside(&self.inside)
    }

    /// Tells what has not been handed out yet.
    pub(crate) fn tell(&mut self, event: fn(JsonStr) -> StreamEvent, out: &mut Vec<StreamEvent>) {
        if let Some(news) = self.news() {
            out.push(event(news));
        }
    }

    /// As [`tell`](Self::tell), of the arguments of a call.
    pub(crate) fn tell_arguments(&mut self, index: u32, call_id: &str, out: &mut Vec<StreamEvent>) {
        if let Some(json) = self.news() {
            out.push(StreamEvent::ArgumentsDelta { index, call_id: call_id.to_owned(), json });
        }
    }

    /// What has not been handed out yet. The first half of a surrogate pair waits for the second.
    pub(crate) fn news(&mut self) -> Option<JsonStr> {
        let fresh = self.inside.get(self.told..)?;
        let fresh = if ends_in_high_surrogate(fresh) { fresh.get(..fresh.len() - 6)? } else { fresh };
        if fresh.is_empty() {
            return None;
        }
        self.told += fresh.len();
        Some(JsonStr::from_inside(fresh))
    }
}

/// The members of an object whose values grow by deltas, in the order they came.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    entries: Vec<(String, Value)>,
    /// The position of each name; empty while `entries` has at most `MAX_LINEAR_SEARCH` of them.
    positions: BTreeMap<String, usize>,
}

/// Up to this many names, a linear search is faster than a map.
const MAX_LINEAR_SEARCH: usize = 16;

/// One member's value.
#[derive(Debug)]
pub(crate) enum Value {
    /// As it was written.
    Raw(String),
    /// A string.
    Text(Growing),
    /// An array that a delta has touched.
    List(Vec<String>),
}

impl Value {
    fn read(value: JsonRef<'_>) -> Self {
        match inside(value) {
            Some(text) => Self::Text(Growing::new(text)),
            None => Self::Raw(value.as_raw().to_owned()),
        }
    }

    /// The items, if it is an array that may be added to.
    fn items(&mut self) -> Option<&mut Vec<String>> {
        if let Self::Raw(raw) = self {
            let array = JsonRef::parse(raw).ok().filter(|value| value.kind() == Kind::Array)?;
            *self = Self::List(items(array, Vec::new()));
        }
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Raw(raw) => out.push_str(raw),
            Self::Text(text) => {
                out.push('"');
                out.push_str(text.inside());
                out.push('"');
            }
            Self::List(items) => out.push_str(&list_of(items)),
        }
    }

    /// Whether it is `null`, an empty string or an empty array.
    pub(crate) fn says_nothing(&self) -> bool {
        match self {
            Self::Raw(raw) => raw == "null" || raw.strip_prefix('[').is_some_and(|rest| rest.trim_start() == "]"),
            Self::Text(text) => text.is_empty(),
            Self::List(items) => items.is_empty(),
        }
    }
}

impl Fields {
    pub(crate) fn read(object: JsonRef<'_>) -> Self {
        let mut fields = Self::default();
        for (key, value) in object.entries() {
            fields.set(key, value);
        }
        fields
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(self.position(key)?).map(|(_, value)| value)
    }

    fn position(&self, key: &str) -> Option<usize> {
        if self.entries.len() <= MAX_LINEAR_SEARCH {
            return self.entries.iter().position(|(own, _)| own == key);
        }
        self.positions.get(key).copied()
    }

    pub(crate) fn text(&self, key: &str) -> Option<&Growing> {
        match self.get(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A string member's text, decoded.
    pub(crate) fn decoded(&self, key: &str) -> String {
        self.text(key).map(|text| text.to_str().decode().into_owned()).unwrap_or_default()
    }

    pub(crate) fn text_mut(&mut self, key: &str) -> Option<&mut Growing> {
        match self.slot(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn entries(&self) -> &[(String, Value)] {
        &self.entries
    }

    /// Writes those that say something; gives whether there is one.
    pub(crate) fn write_said(&self, object: &mut ObjectWriter<'_>) -> bool {
        let mut any = false;
        for (key, value) in self.entries.iter().filter(|(_, value)| !value.says_nothing()) {
            value.write(object.key_inside(key));
            any = true;
        }
        any
    }

    /// Writes all of them.
    pub(crate) fn write(&self, object: &mut ObjectWriter<'_>) {
        for (key, value) in &self.entries {
            value.write(object.key_inside(key));
        }
    }

    fn slot(&mut self, key: &str) -> Option<&mut Value> {
        let position = self.position(key)?;
        self.entries.get_mut(position).map(|(_, value)| value)
    }

    /// The last one wins.
    pub(crate) fn set(&mut self, key: JsonRef<'_>, value: JsonRef<'_>) {
        self.put(inside(key).unwrap_or_default(), Value::read(value));
    }

    /// As [`set`](Self::set), for a key without escapes.
    pub(crate) fn put(&mut self, key: &str, value: Value) {
        match self.slot(key) {
            Some(own) => *own = value,
            None => self.add(key, value),
        }
    }

    fn add(&mut self, key: &str, value: Value) {
        self.entries.push((key.to_owned(), value));
        // The first name beyond the limit indexes those before it, too.
        let from = if self.entries.len() == MAX_LINEAR_SEARCH + 1 { 0 } else { self.entries.len() - 1 };
        if self.entries.len() > MAX_LINEAR_SEARCH {
            for (position, (name, _)) in self.entries.iter().enumerate().skip(from) {
                self.positions.insert(name.clone(), position);
            }
        }
    }

    /// A string goes on, an array too, where both sides are one; otherwise the last one that says something wins.
    pub(crate) fn merge(&mut self, key: JsonRef<'_>, value: JsonRef<'_>, goes_on: bool) {
        let Some(own) = self.slot(inside(key).unwrap_or_default()) else { return self.set(key, value) };
        match (own, inside(value)) {
            (Value::Text(own), Some(more)) if goes_on => own.append(more),
            (_, Some("")) => {}
            (_, None) if value.is_null() => {}
            (own, _) => match own.items() {
                Some(list) if value.kind() == Kind::Array => *list = items(value, std::mem::take(list)),
                _ => *own = Value::read(value),
            },
        }
    }

    /// One more item of an array member.
    pub(crate) fn push_item(&mut self, key: &str, item: JsonRef<'_>) {
        match self.slot(key).and_then(Value::items) {
            Some(list) => list.push(item.as_raw().to_owned()),
            None => self.put(key, Value::List(vec![item.as_raw().to_owned()])),
        }
    }
}

/// Those of an array behind those that are there.
fn items(array: JsonRef<'_>, mut there: Vec<String>) -> Vec<String> {
    for item in array.items() {
        there.push(item.as_raw().to_owned());
    }
    there
}
