//! The members of an object that arrives in fragments.

use super::StringBuffer;
use super::json_text::inside;
use crate::json::{JsonRef, Kind, ObjectWriter, list_of};
use std::collections::BTreeMap;

/// The members of an object whose values grow by deltas, in the order they came.
#[derive(Debug, Default)]
pub(crate) struct StreamedFields {
    entries: Vec<(String, StreamedValue)>,
    /// The position of each name; empty while `entries` has at most `MAX_LINEAR_SEARCH` of them.
    positions: BTreeMap<String, usize>,
}

/// Up to this many names, a linear search is faster than a map.
const MAX_LINEAR_SEARCH: usize = 16;

/// One member's value.
#[derive(Debug)]
pub(crate) enum StreamedValue {
    /// As it was written.
    Raw(String),
    /// A string.
    Text(StringBuffer),
    /// An array that a delta has touched.
    List(Vec<String>),
}

impl StreamedValue {
    fn read(value: JsonRef<'_>) -> Self {
        match inside(value) {
            Some(text) => Self::Text(StringBuffer::new(text)),
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

impl StreamedFields {
    pub(crate) fn read(object: JsonRef<'_>) -> Self {
        let mut fields = Self::default();
        for (key, value) in object.entries() {
            fields.set(key, value);
        }
        fields
    }

    pub(crate) fn get(&self, key: &str) -> Option<&StreamedValue> {
        self.entries.get(self.position(key)?).map(|(_, value)| value)
    }

    fn position(&self, key: &str) -> Option<usize> {
        if self.entries.len() <= MAX_LINEAR_SEARCH {
            return self.entries.iter().position(|(own, _)| own == key);
        }
        self.positions.get(key).copied()
    }

    pub(crate) fn text(&self, key: &str) -> Option<&StringBuffer> {
        match self.get(key) {
            Some(StreamedValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A string member's text, decoded.
    pub(crate) fn decoded(&self, key: &str) -> String {
        self.text(key).map(|text| text.to_str().decode().into_owned()).unwrap_or_default()
    }

    pub(crate) fn text_mut(&mut self, key: &str) -> Option<&mut StringBuffer> {
        match self.slot(key) {
            Some(StreamedValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn entries(&self) -> &[(String, StreamedValue)] {
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

    fn slot(&mut self, key: &str) -> Option<&mut StreamedValue> {
        let position = self.position(key)?;
        self.entries.get_mut(position).map(|(_, value)| value)
    }

    /// The last one wins.
    pub(crate) fn set(&mut self, key: JsonRef<'_>, value: JsonRef<'_>) {
        self.put(inside(key).unwrap_or_default(), StreamedValue::read(value));
    }

    /// As [`set`](Self::set), for a key without escapes.
    pub(crate) fn put(&mut self, key: &str, value: StreamedValue) {
        match self.slot(key) {
            Some(own) => *own = value,
            None => self.add(key, value),
        }
    }

    fn add(&mut self, key: &str, value: StreamedValue) {
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
            (StreamedValue::Text(own), Some(more)) if goes_on => own.append(more),
            (_, Some("")) => {}
            (_, None) if value.is_null() => {}
            (own, _) => match own.items() {
                Some(list) if value.kind() == Kind::Array => *list = items(value, std::mem::take(list)),
                _ => *own = StreamedValue::read(value),
            },
        }
    }

    /// One more item of an array member.
    pub(crate) fn push_item(&mut self, key: &str, item: JsonRef<'_>) {
        match self.slot(key).and_then(StreamedValue::items) {
            Some(list) => list.push(item.as_raw().to_owned()),
            None => self.put(key, StreamedValue::List(vec![item.as_raw().to_owned()])),
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
