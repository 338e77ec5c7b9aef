//! EncodingCache encodings of one dialect.

use crate::finding::Report;
use crate::id::hash_words;

/// The range of a text that encodes one stored message, as zero or more wire messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodedSpan {
    pub start: usize,
    pub end: usize,
    /// The number of wire messages.
    pub count: u32,
    /// The hash of its bytes.
    pub hash: u64,
    /// True if the dialect's rules accept it; otherwise the body is repaired.
    pub sound: bool,
    /// The number of cache marks in it, or more.
    pub marks: usize,
}

impl EncodedSpan {
    /// Of the text from `start` on.
    pub fn of(text: &str, start: usize, count: u32, sound: bool) -> Self {
        let own = text.get(start..).unwrap_or_default();
        Self { start, end: text.len(), count, hash: hash_words(1, own.as_bytes()), sound, marks: marks_in(own) }
    }
}

/// Returns the number of cache marks in a text, or more: a string may contain the words, too.
pub fn marks_in(text: &str) -> usize {
    text.matches("\"cache_control\"").count()
}

/// The encodings of stored messages, by their index in history.
#[derive(Clone, Debug, Default)]
pub struct EncodingCache {
    settings: u64,
    text: String,
    /// Bytes of `text` that no span names any more.
    dead: usize,
    spans: Vec<Option<CachedMessage>>,
    /// The spans of the last body: hash and count.
    last: Vec<(u64, u32)>,
}

#[derive(Clone, Debug)]
struct CachedMessage {
    signature: u64,
    span: EncodedSpan,
    /// The findings of encoding it, which each body's report repeats.
    report: Report,
}

impl EncodingCache {
    /// Prepares for a body. Different settings or a shorter history clear the cache.
    pub fn prepare(&mut self, settings: u64, messages: usize) {
        if settings != self.settings || messages < self.spans.len() || self.dead > self.text.len() / 2 {
            self.text.clear();
            self.spans.clear();
            self.dead = 0;
            self.settings = settings;
        }
        self.spans.resize_with(messages, || None);
    }

    /// Returns the text that the spans refer to.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The span of the message at `index`, encoded now if it is not kept as `signature` wants it.
    pub fn span(
        &mut self,
        index: usize,
        signature: u64,
        report: &mut Report,
        encode: &mut dyn FnMut(&mut String, &mut Report) -> (u32, bool),
    ) -> EncodedSpan {
        let Some(place) = self.spans.get_mut(index) else { return EncodedSpan::default() };
        if let Some(entry) = place.as_ref().filter(|entry| entry.signature == signature) {
            report.extend_from_slice(&entry.report);
            return entry.span;
        }
        if let Some(old) = place.take() {
            self.dead += old.span.end - old.span.start;
        }
        let start = self.text.len();
        let mut found = Report::new();
        let (count, sound) = encode(&mut self.text, &mut found);
        let span = EncodedSpan::of(&self.text, start, count, sound);
        if span.end > start {
            // Its comma stands behind it, so that neighbours go into a body as one piece.
            self.text.push(',');
        }
        report.extend_from_slice(&found);
        *place = Some(CachedMessage { signature, span, report: found });
        span
    }

    /// How many leading wire messages are those of the last body; keeps this one for the next time. The first of them is at
    /// `at` in the body, and from `changed` on this was mended: of what is not as it is kept nothing is promised, now or then.
    pub fn stable_prefix(&mut self, spans: &[(bool, EncodedSpan)], mut at: usize, changed: usize) -> u32 {
        let mut now: Vec<(u64, u32)> = Vec::with_capacity(self.last.len() + 2);
        for (_, span) in spans.iter().filter(|(_, span)| span.count > 0) {
            at += span.end - span.start + 1;
            if at > changed {
                break;
            }
            now.push((span.hash, span.count));
        }
        let mut same = 0;
        for (own, last) in now.iter().zip(&self.last) {
            if own != last {
                break;
            }
            same += own.1;
        }
        self.last = now;
        same
    }
}
