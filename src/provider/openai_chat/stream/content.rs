//! The content of a streamed Chat Completions answer: text, with Mistral's other chunks between.

use crate::json::{ArrayWriter, Json, JsonRef, JsonStr, ObjectWriter};
use crate::message::PartBody;
use crate::provider::openai_chat::blocks::thinking_chunks;
use crate::provider::stream::{AnswerBlock, BlockBody, StreamedFields, StreamedValue, StringBuffer, inside};

/// A text while it is streamed, with the chunks that interrupt it.
#[derive(Default)]
pub(crate) struct ChunkedText {
    pub(crate) text: StringBuffer,
    /// All chunks in order, text included; empty as long as there is only text.
    chunks: Vec<ContentChunk>,
}

/// An entry of a `content` list.
enum ContentChunk {
    /// A range of [`ChunkedText::text`], in bytes.
    Text { from: usize, to: usize },
    /// Mistral's reasoning: `{"type":"thinking","thinking":[…]}`.
    Thinking {
        text: ChunkedText,
        /// Its other members, such as `closed` and `signature`.
        extra: StreamedFields,
    },
    /// A chunk of any other type, as received.
    Other(String),
}

impl ChunkedText {
    pub(crate) fn append(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let from = self.text.inside().len();
        self.text.append(text);
        let end = from + text.len();
        match self.chunks.last_mut() {
            Some(ContentChunk::Text { to, .. }) => *to = end,
            Some(_) => self.chunks.push(ContentChunk::Text { from, to: end }),
            None => {}
        }
    }

    /// Adds a chunk that is neither text nor reasoning.
    pub(crate) fn push_other(&mut self, chunk: JsonRef<'_>) {
        self.push(ContentChunk::Other(chunk.as_raw().to_owned()));
    }

    /// Adds a delta of a reasoning chunk and returns the text of the chunk that it belongs to.
    pub(crate) fn apply_thinking(&mut self, delta: JsonRef<'_>) -> Option<&mut StringBuffer> {
        // Recorded: every delta may have `"closed":true`. Only a signature ends a chunk.
        let is_open = |chunk: &ContentChunk| matches!(chunk, ContentChunk::Thinking { extra, .. } if extra.get("signature").is_none_or(StreamedValue::is_vacant));
        if !self.chunks.last().is_some_and(is_open) {
            self.push(ContentChunk::Thinking { text: Self::default(), extra: StreamedFields::default() });
        }
        let Some(ContentChunk::Thinking { text, extra }) = self.chunks.last_mut() else { return None };
        for (key, value) in delta.entries().filter(|(key, _)| !key.is_text("type")) {
            if !key.is_text("thinking") {
                extra.merge(key, value, false);
                continue;
            }
            text.append(inside(value).unwrap_or_default());
            for item in value.items() {
                match item.get("text").and_then(inside) {
                    Some(more) => text.append(more),
                    None => text.push_other(item),
                }
            }
        }
        Some(&mut text.text)
    }

    /// Returns true if it can be written as a string: it has no chunk but text.
    pub(crate) fn is_plain(&self) -> bool {
        self.chunks.is_empty()
    }

    fn push(&mut self, chunk: ContentChunk) {
        let to = self.text.inside().len();
        if self.chunks.is_empty() && to > 0 {
            self.chunks.push(ContentChunk::Text { from: 0, to });
        }
        self.chunks.push(chunk);
    }

    /// Visits the chunks. The key of the first is `first`.
    pub(crate) fn visit(&self, first: u64, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        let all = self.text.inside();
        if self.chunks.is_empty() && !all.is_empty() {
            visit(AnswerBlock::new(first, BlockBody::Text(all)));
        }
        for (key, chunk) in (first..).zip(&self.chunks) {
            match chunk {
                ContentChunk::Text { from, to } => {
                    visit(AnswerBlock::new(key, BlockBody::Text(all.get(*from..*to).unwrap_or_default())));
                }
                ContentChunk::Thinking { text, .. } => {
                    visit(AnswerBlock::new(key, BlockBody::Reasoning(text.text.inside())));
                }
                ContentChunk::Other(raw) => {
                    visit(AnswerBlock::new(key, BlockBody::Other(&|| PartBody::Opaque(Json::trusted(raw.clone())))));
                }
            }
        }
    }

    /// Appends the list of chunks to `out`.
    pub(crate) fn write(&self, out: &mut String) {
        if self.chunks.is_empty() {
            return out.push_str(&thinking_chunks(&self.text.to_str()));
        }
        let mut list = ArrayWriter::new(out);
        for chunk in &self.chunks {
            self.write_chunk(list.item(), chunk);
        }
        list.end();
    }

    fn write_chunk(&self, out: &mut String, chunk: &ContentChunk) {
        if let ContentChunk::Other(raw) = chunk {
            return out.push_str(raw);
        }
        let mut object = ObjectWriter::new(out);
        match chunk {
            ContentChunk::Text { from, to } => {
                let text = JsonStr::from_inside(self.text.inside().get(*from..*to).unwrap_or_default());
                object.text("type", "text").token("text", &text);
            }
            ContentChunk::Thinking { text, extra } => {
                text.write(object.text("type", "thinking").key("thinking"));
                extra.write(&mut object);
            }
            ContentChunk::Other(_) => {}
        }
        object.end();
    }
}
