//! The entries of one list of an item, a message's `content` or reasoning's `summary`, as they grow.

use crate::json::{JsonRef, JsonStr, ObjectWriter};
use crate::provider::assembled::StreamEvent;
use crate::provider::assembler::{Fields, Growing, Value};
use std::collections::BTreeMap;

/// What the words of a list are told as; those of an item that nobody knows are no part of the answer.
pub(super) type ToldAs = Option<fn(JsonStr) -> StreamEvent>;

/// The entries by the index that the events name, which some servers count from 1.
#[derive(Default)]
pub(super) struct Entries(BTreeMap<u64, Entry>);

/// One entry: a text, or a refusal.
pub(super) struct Entry {
    fields: Fields,
}

impl Entry {
    fn new(kind: &str, refusal: bool) -> Self {
        let mut fields = Fields::default();
        fields.put("type", Value::Raw(format!("\"{kind}\"")));
        fields.put(if refusal { "refusal" } else { "text" }, Value::Text(Growing::default()));
        Self { fields }
    }

    fn text_name(&self) -> &'static str {
        if self.is_refusal() { "refusal" } else { "text" }
    }

    pub fn text(&self) -> &str {
        self.fields.text(self.text_name()).map(Growing::inside).unwrap_or_default()
    }

    fn text_mut(&mut self) -> Option<&mut Growing> {
        self.fields.text_mut(self.text_name())
    }

    pub fn is_refusal(&self) -> bool {
        self.fields.text("refusal").is_some()
    }

    fn set_text(&mut self, text: Growing) {
        self.fields.put(self.text_name(), Value::Text(text));
    }

    fn tell(&mut self, told: ToldAs, out: &mut Vec<StreamEvent>) {
        if self.is_refusal() {
            return;
        }
        let news = self.text_mut().and_then(Growing::news);
        if let (Some(told), Some(news)) = (told, news) {
            out.push(told(news));
        }
    }
}

impl Entries {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.values()
    }

    fn entry(&mut self, index: u64, kind: &str, refusal: bool) -> &mut Entry {
        self.0.entry(index).or_insert_with(|| Entry::new(kind, refusal))
    }

    /// More of an entry's text, or all of it. The entry is opened, as one of type `kind`, where it is a new one.
    pub fn say(&mut self, index: u64, kind: &str, said: Said<'_>, told: ToldAs, out: &mut Vec<StreamEvent>) {
        let entry = self.entry(index, kind, said.refusal);
        match entry.text_mut() {
            Some(own) if said.more => own.append(said.text),
            Some(own) => own.settle(said.text),
            None => {}
        }
        entry.tell(told, out);
    }

    /// A note to an entry's text.
    pub fn annotate(&mut self, index: u64, kind: &str, note: JsonRef<'_>) {
        self.entry(index, kind, false).fields.push_item("annotations", note);
    }

    /// Takes an entry as it stands. One that says nothing takes nothing back.
    pub fn read(&mut self, index: u64, entry: JsonRef<'_>, told: ToldAs, out: &mut Vec<StreamEvent>) {
        let mut new = Entry { fields: Fields::read(entry) };
        if let Some(own) = self.0.get_mut(&index).and_then(Entry::text_mut).map(std::mem::take) {
            if new.text().is_empty() && !own.is_empty() {
                new.set_text(own);
            } else if let Some(text) = new.text_mut() {
                let whole = std::mem::replace(text, own);
                text.settle(whole.inside());
            }
        }
        new.tell(told, out);
        self.0.insert(index, new);
    }

    /// Takes the list of an item that is told as a whole: it stands for all entries, whatever indexes the events named. Gives
    /// whether something stays that it leaves out: gateways cut large items. A list without words takes nothing back, nor does
    /// an entry without, nor, `again`, a list that is shorter than the one that was told before.
    pub fn settle(&mut self, list: JsonRef<'_>, again: bool, told: ToldAs, out: &mut Vec<StreamEvent>) -> bool {
        let mut new: Vec<Entry> = list.items().map(|entry| Entry { fields: Fields::read(entry) }).collect();
        let old: Vec<Entry> = std::mem::take(&mut self.0).into_values().collect();
        let told_text: String = old.iter().filter(|entry| !entry.is_refusal()).map(Entry::told).collect();
        let silent = new.iter().all(|entry| entry.text().is_empty());
        let mut kept = false;
        for (place, old) in old.into_iter().enumerate().filter(|(_, old)| !old.text().is_empty()) {
            match new.get_mut(place) {
                Some(entry) if entry.text().is_empty() => {
                    entry.take_words(old);
                    kept = true;
                }
                None if silent || again => {
                    new.push(old);
                    kept = true;
                }
                Some(_) | None => {}
            }
        }
        mark_told(&mut new, &told_text);
        new.iter_mut().for_each(|entry| entry.tell(told, out));
        self.0 = (0..).zip(new).collect();
        kept
    }

    /// Writes the entries that say something.
    pub fn write(&self, object: &mut ObjectWriter<'_>, name: &str) {
        object.array(name, |list| {
            for entry in self.iter().filter(|entry| !entry.text().is_empty()) {
                list.object(|object| entry.fields.write(object));
            }
        });
    }
}

impl Entry {
    /// The part of its text that was told.
    fn told(&self) -> &str {
        self.fields.text(self.text_name()).map(Growing::told).unwrap_or_default()
    }

    /// Takes the words of an earlier entry.
    fn take_words(&mut self, old: Self) {
        if self.fields.entries().is_empty() || self.is_refusal() != old.is_refusal() {
            *self = old;
        } else {
            let text = Growing::of(old.text());
            self.set_text(text);
        }
    }
}

/// Marks what was told of a list's words; where they do not go on from that, nothing more is told.
fn mark_told(entries: &mut [Entry], told: &str) {
    let words: String = entries.iter().filter(|entry| !entry.is_refusal()).map(Entry::text).collect();
    let mut left = if words.starts_with(told) { told.len() } else { words.len() };
    for text in entries.iter_mut().filter(|entry| !entry.is_refusal()).filter_map(Entry::text_mut) {
        let own = left.min(text.inside().len());
        text.mark_told(own);
        left -= own;
    }
}

/// Words for an entry.
#[derive(Clone, Copy)]
pub(super) struct Said<'a> {
    pub text: &'a str,
    /// More of the text; otherwise all of it.
    pub more: bool,
    pub refusal: bool,
}
