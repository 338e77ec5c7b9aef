//! Counts the tokens of a draft: with the application's counter, whose replies are cached, or by an estimate.

use super::cache::{ReducerCache, TokenCounts};
use super::reducer::Callback;
use super::shorten::shortened;
use crate::id::hash_words;
use crate::json::JsonStr;
use crate::message::PartBody;
use crate::replay::request_draft::{DraftCall, DraftMessage, DraftOrigin, DraftResult, RequestDraft};

/// The estimated tokens of an image or a file. No provider states them before a request.
const MEDIUM_TOKENS: u64 = 1_000;
/// The estimated tokens of a message or a result besides its text.
const FRAME_TOKENS: u64 = 4;

/// The source of token counts.
enum CountSource<'c> {
    /// Four bytes are a token.
    Estimate,
    /// The application's counter, with its replies so far.
    Callback(Option<&'c TokenCounts>),
}

/// Counts tokens, and collects the texts whose counts are not cached.
pub(super) struct TokenCounter<'c> {
    source: CountSource<'c>,
    /// The cache key and signature of each missing text.
    pub missing: Vec<(String, u64)>,
    /// The texts that the application must count.
    pub missing_texts: Vec<String>,
}

impl<'c> TokenCounter<'c> {
    /// Creates a counter. It estimates if the application has no function for it.
    pub fn new(callback: Option<&Callback>, cache: &'c ReducerCache) -> Self {
        let source =
            callback.map_or(CountSource::Estimate, |callback| CountSource::Callback(cache.counts(callback.id)));
        Self { source, missing: Vec::new(), missing_texts: Vec::new() }
    }

    fn tokens(&mut self, bytes: usize, key: &str, signature: u64, text: impl FnOnce() -> String) -> u64 {
        let estimate = (bytes as u64).div_ceil(4);
        let CountSource::Callback(cached) = self.source else { return estimate + FRAME_TOKENS };
        if let Some(tokens) = cached.and_then(|counts| counts.get(key, signature)) {
            return tokens;
        }
        self.missing.push((key.to_owned(), signature));
        self.missing_texts.push(text());
        estimate
    }

    /// Returns the tokens of a message and its calls, without their results.
    pub fn count_message(&mut self, item: &DraftMessage<'_>) -> u64 {
        let message = item.message;
        let mut media = 0;
        let mut bytes = 0;
        for part in &message.parts {
            match &part.body {
                PartBody::Text(text) | PartBody::Refusal(text) | PartBody::Reasoning(text) => {
                    bytes += text.inside().len();
                }
                PartBody::Image(_) | PartBody::File(_) => media += MEDIUM_TOKENS,
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
        // A message that a reducer created has no id: its text is the key.
        let is_created = matches!(item.origin, DraftOrigin::Created | DraftOrigin::Replacement);
        let text_key = is_created.then(|| format!("#{}", message_text(item)));
        let key = text_key.as_deref().unwrap_or(&message.id);
        media + self.tokens(bytes, key, signature, || message_text(item))
    }

    /// Returns the tokens of a call's result, or of its first `bytes` bytes.
    pub fn count_result(&mut self, call: &DraftCall<'_>, bytes: Option<u32>) -> u64 {
        let (id, redacted) = (&call.invocation.id, u64::from(call.invocation.redacted));
        match (call.result, bytes) {
            (None, _) => 0,
            (Some(DraftResult::Closing(text) | DraftResult::Placeholder(text)), _) => {
                self.tokens(text.len(), id, hash_words(2, text.as_bytes()), || text.to_owned())
            }
            (Some(DraftResult::Stored(result)), None) => {
                let content = result.content.as_str();
                let signature = hash_words(redacted, &[call.invocation.status as u8]) ^ content.len() as u64;
                self.tokens(content.len(), id, signature, || result_text(call).decode().into_owned())
            }
            (Some(DraftResult::Stored(result)), Some(bytes)) | (Some(DraftResult::Cut { result, bytes }), _) => {
                let length = usize::try_from(bytes).unwrap_or(usize::MAX);
                let signature =
                    hash_words(redacted, &[call.invocation.status as u8]) ^ result.content.as_str().len() as u64;
                self.tokens(length, &format!("{id}~{bytes}"), signature, || shortened(&[result_text(call)], bytes))
            }
        }
    }
}

/// Returns the estimated tokens of a draft.
#[must_use]
pub fn estimated_tokens(draft: &RequestDraft<'_>) -> u64 {
    let cache = ReducerCache::default();
    let mut counter = TokenCounter::new(None, &cache);
    let mut total = 0_u64;
    for item in &draft.messages {
        total = total.saturating_add(counter.count_message(item));
        for call in &item.calls {
            total = total.saturating_add(counter.count_result(call, None));
        }
    }
    total
}

/// Returns the text of a result: its string, or the JSON of any other value.
fn result_text(call: &DraftCall<'_>) -> JsonStr {
    match call.result {
        Some(DraftResult::Stored(result) | DraftResult::Cut { result, .. }) => {
            result.content.view().as_json_str().unwrap_or_else(|| JsonStr::new(result.content.as_str()))
        }
        _ => JsonStr::new(""),
    }
}

/// Returns the text of a message, with the names and arguments of its calls, one a line.
fn message_text(item: &DraftMessage<'_>) -> String {
    let mut out = String::new();
    let mut push_line = |text: &str| {
        if !out.is_empty() && !text.is_empty() {
            out.push('\n');
        }
        out.push_str(text);
    };
    for part in &item.message.parts {
        match &part.body {
            PartBody::Text(text) | PartBody::Refusal(text) | PartBody::Reasoning(text) => push_line(&text.decode()),
            PartBody::Opaque(value) => push_line(value.as_str()),
            PartBody::Image(_) | PartBody::File(_) | PartBody::Data { .. } | PartBody::ToolCall { .. } => {}
        }
    }
    for call in &item.calls {
        push_line(&call.invocation.name);
        push_line(&call.invocation.arguments.text());
    }
    out
}
