//! The reasoning of a streamed Chat Completions answer, under the names that servers give it.

use crate::json::{ArrayWriter, JsonRef, ObjectWriter};
use crate::provider::openai_chat::decode::REASONING_MEMBERS;
use crate::provider::stream::{AnswerBlock, BlockBody, StreamEvent, StreamedFields, StreamedValue, inside};

/// The members that hold reasoning as text. OpenAI itself sends none.
const TEXT_MEMBERS: [&str; 4] = ["reasoning_content", "reasoning", "reasoning_text", "thinking"];
/// The member that holds reasoning as a list of blocks (OpenRouter).
pub(super) const DETAILS: &str = "reasoning_details";

/// The reasoning of an answer. Servers send the same text in several members; all are kept, one is emitted.
#[derive(Default)]
pub(super) struct StreamedReasoning {
    texts: StreamedFields,
    details: Vec<StreamedFields>,
    /// The member whose text is emitted as events.
    emitted_member: Option<&'static str>,
}

impl StreamedReasoning {
    /// Appends a member of a delta. Returns false if it is none that holds reasoning as text.
    pub(super) fn apply_text(&mut self, name: &str, key: JsonRef<'_>, value: JsonRef<'_>) -> bool {
        let is_text = TEXT_MEMBERS.contains(&name) && inside(value).is_some();
        if is_text {
            self.texts.merge(key, value, true);
        }
        is_text
    }

    /// Emits the text that was not emitted yet.
    pub(super) fn emit_text(&mut self, out: &mut Vec<StreamEvent>) {
        if self.emitted_member.is_none() {
            let has_text = |name: &&str| self.texts.text(name).is_some_and(|text| !text.is_empty());
            self.emitted_member = TEXT_MEMBERS.into_iter().find(has_text);
        }
        if let Some(text) = self.emitted_member.and_then(|member| self.texts.text_mut(member)) {
            text.emit(StreamEvent::ReasoningDelta, out);
        }
    }

    /// Applies an entry of `reasoning_details`. In a `whole` message every entry is a block; in a stream, consecutive
    /// entries of one type, index and id are fragments of one block:
    ///
    /// ```json
    /// {"type":"reasoning.text","index":0,"text":"First"}
    /// {"type":"reasoning.text","index":0,"text":", "}
    /// ```
    pub(super) fn apply_detail(&mut self, detail: JsonRef<'_>, whole: bool, out: &mut Vec<StreamEvent>) {
        // Without an index, an encrypted block (`data`) is complete.
        let is_fragment = !whole && (detail.find("index").is_some() || detail.find("data").is_none());
        match self.details.last_mut().filter(|last| is_fragment && continues_block(last, detail)) {
            Some(last) => {
                for (key, value) in detail.entries() {
                    let is_appended = matches!(inside(key), Some("text" | "summary" | "data"));
                    last.merge(key, value, is_appended);
                }
            }
            None if detail.is_object() => self.details.push(StreamedFields::read(detail)),
            None => {}
        }
        if self.emitted_member.is_none_or(|member| member == DETAILS) {
            let last = self.details.last_mut();
            let news =
                last.and_then(|last| ["text", "summary"].iter().find_map(|name| last.text_mut(name)?.take_unemitted()));
            if let Some(news) = news {
                self.emitted_member = Some(DETAILS);
                out.push(StreamEvent::ReasoningDelta(news));
            }
        }
    }

    /// Visits the texts that become parts of the message.
    pub(super) fn visit_texts(&self, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        for (key, (name, value)) in (0..).zip(self.texts.entries()) {
            if let StreamedValue::Text(text) = value
                && !text.is_empty()
                && REASONING_MEMBERS.contains(&name.as_str())
            {
                visit(AnswerBlock::new(key, BlockBody::Reasoning(text.inside())));
            }
        }
    }

    /// Writes the members that hold text, empty ones too: DeepSeek wants the member back that it sent. Returns true if
    /// one is not empty.
    pub(super) fn write_texts(&self, message: &mut ObjectWriter<'_>) -> bool {
        self.texts.write(message);
        self.texts.entries().iter().any(|(_, value)| !value.is_vacant())
    }

    /// Writes `reasoning_details`. Returns false if there are none.
    pub(super) fn write_details(&self, message: &mut ObjectWriter<'_>) -> bool {
        if self.details.is_empty() {
            return false;
        }
        let mut list = ArrayWriter::new(message.key(DETAILS));
        for detail in &self.details {
            let mut object = ObjectWriter::new(list.item());
            detail.write(&mut object);
            object.end();
        }
        list.end();
        true
    }
}

/// Returns true if a detail has the type, index and id of the last block, as far as both have them.
fn continues_block(last: &StreamedFields, detail: JsonRef<'_>) -> bool {
    let is_same = |name: &str| match (last.get(name), detail.find(name)) {
        (Some(StreamedValue::Raw(own)), Some(new)) => own == new.as_raw() || own == "null",
        (Some(StreamedValue::Text(own)), Some(new)) => inside(new) == Some(own.inside()),
        _ => true,
    };
    let has_index = last.get("index").is_some_and(|index| !index.is_vacant());
    has_index == detail.find("index").is_some() && ["type", "index", "id"].into_iter().all(is_same)
}
