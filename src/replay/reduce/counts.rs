//! Token counts: the application's, kept by what they are of, or an estimate.

use super::pending::{Callback, ReducerCache};
use super::tool_results::shortened;
use crate::id::{IdMap, Seed, hash_words};
use crate::json::JsonStr;
use crate::message::PartBody;
use crate::replay::draft::{DraftCall, DraftMessage, DraftOrigin, DraftResult};

/// What an image or a file costs, about: no dialect tells before it is asked.
const MEDIUM: u64 = 1_000;
/// What a message or a result costs beside its text, in the estimate.
const FRAME: u64 = 4;

/// One counter's answers, by message or invocation. What is counted may change (a result that came late, one that is cut):
/// its signature tells.
#[derive(Clone, Debug)]
pub(super) struct TokenCounts {
    at: IdMap<usize>,
    list: Vec<(u64, u64)>,
}

impl TokenCounts {
    pub fn new(seed: Seed) -> Self {
        Self { at: IdMap::with_seed(seed), list: Vec::new() }
    }

    pub fn insert(&mut self, key: String, signature: u64, tokens: u64) {
        let at = *self.at.get_or_insert(&key, self.list.len());
        match self.list.get_mut(at) {
            Some(place) => *place = (signature, tokens),
            None => self.list.push((signature, tokens)),
        }
    }

    fn get(&self, key: &str, signature: u64) -> Option<u64> {
        let (own, tokens) = self.list.get(*self.at.get(key)?)?;
        (*own == signature).then_some(*tokens)
    }
}

/// Counts a draft; remembers what it does not know.
pub(super) struct TokenCounter<'m> {
    /// None estimates.
    counter: Option<Option<&'m TokenCounts>>,
    pub wanted: Vec<(String, u64)>,
    pub texts: Vec<String>,
}

impl<'m> TokenCounter<'m> {
    pub fn new(counter: Option<&Callback>, memory: &'m ReducerCache) -> Self {
        let kept =
            |counter: &Callback| memory.counts.iter().find(|(id, _)| *id == counter.id).map(|(_, counts)| counts);
        Self { counter: counter.map(kept), wanted: Vec::new(), texts: Vec::new() }
    }

    fn tokens(&mut self, bytes: usize, key: &str, signature: u64, text: impl FnOnce() -> String) -> u64 {
        let estimate = (bytes as u64).div_ceil(4);
        let Some(kept) = self.counter else { return estimate + FRAME };
        if let Some(tokens) = kept.and_then(|kept| kept.get(key, signature)) {
            return tokens;
        }
        self.wanted.push((key.to_owned(), signature));
        self.texts.push(text());
        estimate
    }

    /// What a message costs with its calls, without their results.
    pub fn words(&mut self, item: &DraftMessage<'_>) -> u64 {
        let message = item.message;
        let mut media = 0;
        let mut bytes = 0;
        for part in &message.parts {
            match &part.body {
                PartBody::Text(text) | PartBody::Refusal(text) | PartBody::Reasoning(text) => {
                    bytes += text.inside().len();
                }
                PartBody::Image(_) | PartBody::File(_) => media += MEDIUM,
                PartBody::Opaque(value) => bytes += value.as_str().len(),
                PartBody::Data { .. } | PartBody::ToolCall { .. } => {}
            }
        }
        let mut signature = 1;
        for call in &item.calls {
            let arguments = call.invocation.arguments.text().len();
            bytes += call.invocation.name.len() + arguments;
            signature = hash_words(signature ^ u64::from(call.invocation.place), &arguments.to_le_bytes());
        }
        // What a reducer made has no id of its own.
        let made =
            matches!(item.origin, DraftOrigin::Made | DraftOrigin::Summary).then(|| format!("#{}", words_of(item)));
        let key = made.as_deref().unwrap_or(&message.id);
        media + self.tokens(bytes, key, signature, || words_of(item))
    }

    /// What a call's result costs, if only so many bytes of it are shown.
    pub fn result(&mut self, call: &DraftCall<'_>, bytes: Option<u32>) -> u64 {
        let (id, redacted) = (&call.invocation.id, u64::from(call.invocation.redacted));
        match (call.result, bytes) {
            (None, _) => 0,
            (Some(DraftResult::Closing(text) | DraftResult::Placeholder(text)), _) => {
                self.tokens(text.len(), id, hash_words(2, text.as_bytes()), || text.to_owned())
            }
            (Some(DraftResult::Stored(result)), None) => {
                let content = result.content.as_str();
                let signature = hash_words(redacted, &[call.invocation.status as u8]) ^ content.len() as u64;
                self.tokens(content.len(), id, signature, || text_of(call).decode().into_owned())
            }
            (Some(DraftResult::Stored(result)), Some(bytes)) | (Some(DraftResult::Cut { result, bytes }), _) => {
                let shown = usize::try_from(bytes).unwrap_or(usize::MAX);
                let signature =
                    hash_words(redacted, &[call.invocation.status as u8]) ^ result.content.as_str().len() as u64;
                self.tokens(shown, &format!("{id}~{bytes}"), signature, || shortened(&[text_of(call)], bytes))
            }
        }
    }
}

/// A result's text; of a value that is no text, its JSON.
fn text_of(call: &DraftCall<'_>) -> JsonStr {
    match call.result {
        Some(DraftResult::Stored(result) | DraftResult::Cut { result, .. }) => {
            result.content.view().as_json_str().unwrap_or_else(|| JsonStr::new(result.content.as_str()))
        }
        _ => JsonStr::new(""),
    }
}

/// The text of a message with its calls: names and arguments count, too.
fn words_of(item: &DraftMessage<'_>) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        if !out.is_empty() && !text.is_empty() {
            out.push('\n');
        }
        out.push_str(text);
    };
    for part in &item.message.parts {
        match &part.body {
            PartBody::Text(text) | PartBody::Refusal(text) | PartBody::Reasoning(text) => line(&text.decode()),
            PartBody::Opaque(value) => line(value.as_str()),
            PartBody::Image(_) | PartBody::File(_) | PartBody::Data { .. } | PartBody::ToolCall { .. } => {}
        }
    }
    for call in &item.calls {
        line(&call.invocation.name);
        line(&call.invocation.arguments.text());
    }
    out
}
