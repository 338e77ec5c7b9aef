//! The parts of one list of an output item, such as a message's `content` or a reasoning item's `summary`, while they
//! are streamed.

use crate::json::{JsonRef, JsonStr, ObjectWriter};
use crate::provider::stream::{StreamEvent, StreamedFields, StreamedValue, StringBuffer};
use std::collections::BTreeMap;

/// The event that reports new text of a list; none for items of an unknown type, whose text is no part of the answer.
pub(super) type DeltaEvent = Option<fn(JsonStr) -> StreamEvent>;

/// Parts by the index in the events. Some servers count from 1.
#[derive(Default)]
pub(super) struct ItemParts(BTreeMap<u64, Box<ItemPart>>);

/// One part: a text or a refusal.
pub(super) struct ItemPart {
    fields: StreamedFields,
}

/// New text of a part.
#[derive(Clone, Copy)]
pub(super) struct TextUpdate<'a> {
    /// The index of the part.
    pub index: u64,
    /// The `type` of the part if no event announced it.
    pub default_type: &'static str,
    pub text: &'a str,
    /// True if `text` is appended; otherwise it is the whole text.
    pub is_delta: bool,
    /// True if the text is a refusal.
    pub refusal: bool,
}

impl ItemPart {
    fn new(kind: &str, refusal: bool) -> Self {
        let mut fields = StreamedFields::default();
        fields.put("type", StreamedValue::Raw(format!("\"{kind}\"")));
        fields.put(if refusal { "refusal" } else { "text" }, StreamedValue::Text(StringBuffer::default()));
        Self { fields }
    }

    fn read(part: JsonRef<'_>) -> Self {
        Self { fields: StreamedFields::read(part) }
    }

    fn text_name(&self) -> &'static str {
        if self.is_refusal() { "refusal" } else { "text" }
    }

    /// Returns the text so far, as the content of a JSON string token.
    pub fn text(&self) -> &str {
        self.fields.text(self.text_name()).map(StringBuffer::inside).unwrap_or_default()
    }

    fn text_mut(&mut self) -> Option<&mut StringBuffer> {
        self.fields.text_mut(self.text_name())
    }

    pub fn is_refusal(&self) -> bool {
        self.fields.text("refusal").is_some()
    }

    fn set_text(&mut self, text: StringBuffer) {
        self.fields.put(self.text_name(), StreamedValue::Text(text));
    }

    /// Emits the text that was not emitted yet. A refusal is not emitted.
    fn emit(&mut self, delta: DeltaEvent, out: &mut Vec<StreamEvent>) {
        if self.is_refusal() {
            return;
        }
        let news = self.text_mut().and_then(StringBuffer::take_unemitted);
        if let (Some(delta), Some(news)) = (delta, news) {
            out.push(delta(news));
        }
    }

    /// Returns the text that was emitted.
    fn emitted(&self) -> &str {
        self.fields.text(self.text_name()).map(StringBuffer::emitted).unwrap_or_default()
    }

    /// Takes the text of an earlier part.
    fn take_text(&mut self, old: Self) {
        if self.fields.entries().is_empty() || self.is_refusal() != old.is_refusal() {
            *self = old;
        } else {
            let text = StringBuffer::new(old.text());
            self.set_text(text);
        }
    }
}

impl ItemParts {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &ItemPart> {
        self.0.values().map(|part| &**part)
    }

    /// Returns the part of that index, opening one of type `kind` if there is none.
    fn part(&mut self, index: u64, kind: &str, refusal: bool) -> &mut ItemPart {
        self.0.entry(index).or_insert_with(|| Box::new(ItemPart::new(kind, refusal)))
    }

    /// Appends to or replaces a part's text.
    pub fn update_text(&mut self, update: TextUpdate<'_>, delta: DeltaEvent, out: &mut Vec<StreamEvent>) {
        let part = self.part(update.index, update.default_type, update.refusal);
        match part.text_mut() {
            Some(own) if update.is_delta => own.append(update.text),
            Some(own) => own.set_final(update.text),
            None => {}
        }
        part.emit(delta, out);
    }

    /// Adds an annotation to a part's text. If there is no part of that index, opens one of type `kind`.
    pub fn annotate(&mut self, index: u64, kind: &str, annotation: JsonRef<'_>) {
        self.part(index, kind, false).fields.push_item("annotations", annotation);
    }

    /// Replaces a part by the one of an event. If that one has no text, the text so far is kept.
    pub fn read(&mut self, index: u64, part: JsonRef<'_>, delta: DeltaEvent, out: &mut Vec<StreamEvent>) {
        let mut new = ItemPart::read(part);
        if let Some(own) = self.0.get_mut(&index).and_then(|part| part.text_mut()).map(std::mem::take) {
            if new.text().is_empty() && !own.is_empty() {
                new.set_text(own);
            } else if let Some(text) = new.text_mut() {
                let whole = std::mem::replace(text, own);
                text.set_final(whole.inside());
            }
        }
        new.emit(delta, out);
        self.0.insert(index, Box::new(new));
    }

    /// Replaces all parts by the list of a complete item. Returns true if text so far was kept because the list lacks
    /// it, as gateways cut large items: for a part without text, for a list without any text, and, if the item
    /// `was_complete` before, for the parts that a shorter list lacks.
    pub fn replace_all(
        &mut self,
        list: JsonRef<'_>,
        was_complete: bool,
        delta: DeltaEvent,
        out: &mut Vec<StreamEvent>,
    ) -> bool {
        let mut new: Vec<ItemPart> = list.items().map(ItemPart::read).collect();
        let old = self.take_with_positions();
        let emitted: String =
            old.iter().filter(|(_, part)| !part.is_refusal()).map(|(_, part)| part.emitted()).collect();
        let has_no_text = new.iter().all(|part| part.text().is_empty());
        let mut kept = false;
        for (position, old) in old.into_iter().filter(|(_, old)| !old.text().is_empty()) {
            match new.get_mut(position) {
                Some(part) if part.text().is_empty() => {
                    part.take_text(old);
                    kept = true;
                }
                None if has_no_text || was_complete => {
                    new.push(old);
                    kept = true;
                }
                Some(_) | None => {}
            }
        }
        mark_emitted(&mut new, &emitted);
        new.iter_mut().for_each(|part| part.emit(delta, out));
        self.0.extend((0..).zip(new.into_iter().map(Box::new)));
        kept
    }

    /// Takes all parts, each with its position in the list of the complete item. That is its index, unless no part has
    /// the index 0: then the server may count from 1, and the parts are counted instead.
    fn take_with_positions(&mut self) -> Vec<(usize, ItemPart)> {
        let parts = std::mem::take(&mut self.0);
        let counts_from_zero = parts.contains_key(&0);
        let position =
            |index: u64, count: usize| if counts_from_zero { usize::try_from(index).unwrap_or(count) } else { count };
        parts.into_iter().enumerate().map(|(count, (index, part))| (position(index, count), *part)).collect()
    }

    /// Writes the parts that have text.
    pub fn write(&self, object: &mut ObjectWriter<'_>, name: &str) {
        object.array(name, |list| {
            for part in self.iter().filter(|part| !part.text().is_empty()) {
                list.object(|object| part.fields.write(object));
            }
        });
    }
}

/// Marks the text that was emitted before the parts were replaced. If the new text does not begin with it, all of it
/// counts as emitted: text that was emitted cannot be corrected.
fn mark_emitted(parts: &mut [ItemPart], emitted: &str) {
    let text: String = parts.iter().filter(|part| !part.is_refusal()).map(ItemPart::text).collect();
    let mut left = if text.starts_with(emitted) { emitted.len() } else { text.len() };
    for text in parts.iter_mut().filter(|part| !part.is_refusal()).filter_map(ItemPart::text_mut) {
        let own = left.min(text.inside().len());
        text.mark_emitted(own);
        left -= own;
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use crate::json::Json;

    fn texts_after_completion(indices: &[u64], complete: &str) -> Vec<String> {
        let mut parts = ItemParts::default();
        for index in indices {
            let text = format!("text {index}");
            let update =
                TextUpdate { index: *index, default_type: "output_text", text: &text, is_delta: true, refusal: false };
            parts.update_text(update, None, &mut Vec::new());
        }
        let list = Json::parse(complete).unwrap();
        parts.replace_all(list.view(), false, None, &mut Vec::new());
        parts.iter().map(|part| part.text().to_owned()).collect()
    }

    const LACKS_THE_LAST_TEXT: &str =
        r#"[{"type":"output_text","text":"a"},{"type":"output_text","text":""},{"type":"output_text","text":""}]"#;

    #[test]
    fn parts_are_paired_by_index() {
        assert_eq!(texts_after_completion(&[0, 2], LACKS_THE_LAST_TEXT), ["a", "", "text 2"]);
    }

    #[test]
    fn parts_are_paired_by_position_if_a_server_counts_from_one() {
        assert_eq!(texts_after_completion(&[1, 2], LACKS_THE_LAST_TEXT), ["a", "text 2", ""]);
    }
}
