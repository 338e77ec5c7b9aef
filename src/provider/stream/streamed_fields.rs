//! An object that arrives in fragments.

use super::StringBuffer;
use super::json_text::inside;
use crate::json::{JsonKind, JsonRef, ObjectWriter, list_of};
use std::collections::BTreeMap;

/// The members of an object that deltas extend, in their order of arrival.
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
    /// JSON text as received.
    Raw(String),
    /// A string.
    Text(StringBuffer),
    /// The JSON texts of the items of an array that a delta has extended.
    List(Vec<String>),
}

impl StreamedValue {
    fn read(value: JsonRef<'_>) -> Self {
        match inside(value) {
            Some(text) => Self::Text(StringBuffer::new(text)),
            None => Self::Raw(value.as_raw().to_owned()),
        }
    }

    /// Returns the items if the value is an array.
    fn items(&mut self) -> Option<&mut Vec<String>> {
        if let Self::Raw(raw) = self {
            let array = JsonRef::parse(raw).ok().filter(|value| value.kind() == JsonKind::Array)?;
            *self = Self::List(array.items().map(|item| item.as_raw().to_owned()).collect());
        }
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// Appends the value's JSON text.
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

    /// Returns true if the value is `null`, an empty string or an empty array.
    pub(crate) fn is_vacant(&self) -> bool {
        match self {
            Self::Raw(raw) => raw == "null" || raw.strip_prefix('[').is_some_and(|rest| rest.trim_start() == "]"),
            Self::Text(text) => text.is_empty(),
            Self::List(items) => items.is_empty(),
        }
    }
}

impl StreamedFields {
    /// Reads the members of an object; of duplicate ones the last counts.
    pub(crate) fn read(object: JsonRef<'_>) -> Self {
        let mut fields = Self::default();
        for (key, value) in object.entries() {
            fields.set(key, value);
        }
        fields
    }

    /// Returns a member's value. Keys are the content of their string tokens.
    pub(crate) fn get(&self, key: &str) -> Option<&StreamedValue> {
        self.entries.get(self.position(key)?).map(|(_, value)| value)
    }

    fn position(&self, key: &str) -> Option<usize> {
        if self.entries.len() <= MAX_LINEAR_SEARCH {
            return self.entries.iter().position(|(name, _)| name == key);
        }
        self.positions.get(key).copied()
    }

    /// Returns a member that is a string.
    pub(crate) fn text(&self, key: &str) -> Option<&StringBuffer> {
        match self.get(key) {
            Some(StreamedValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the decoded text of a string member; empty if there is none.
    pub(crate) fn decoded(&self, key: &str) -> String {
        self.text(key).map(|text| text.to_str().decode().into_owned()).unwrap_or_default()
    }

    pub(crate) fn text_mut(&mut self, key: &str) -> Option<&mut StringBuffer> {
        match self.get_mut(key) {
            Some(StreamedValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn entries(&self) -> &[(String, StreamedValue)] {
        &self.entries
    }

    /// Writes the members that are not vacant. Returns true if there is one.
    pub(crate) fn write_occupied(&self, object: &mut ObjectWriter<'_>) -> bool {
        let mut any = false;
        for (key, value) in self.entries.iter().filter(|(_, value)| !value.is_vacant()) {
            value.write(object.key_inside(key));
            any = true;
        }
        any
    }

    /// Writes all members.
    pub(crate) fn write(&self, object: &mut ObjectWriter<'_>) {
        for (key, value) in &self.entries {
            value.write(object.key_inside(key));
        }
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut StreamedValue> {
        let position = self.position(key)?;
        self.entries.get_mut(position).map(|(_, value)| value)
    }

    /// Sets a member.
    pub(crate) fn set(&mut self, key: JsonRef<'_>, value: JsonRef<'_>) {
        self.put(inside(key).unwrap_or_default(), StreamedValue::read(value));
    }

    /// Sets a member. `key` is the content of its string token.
    pub(crate) fn put(&mut self, key: &str, value: StreamedValue) {
        match self.get_mut(key) {
            Some(current) => *current = value,
            None => self.add(key, value),
        }
    }

    fn add(&mut self, key: &str, value: StreamedValue) {
        self.entries.push((key.to_owned(), value));
        // The first name beyond the limit adds those before it, too.
        let from = if self.entries.len() == MAX_LINEAR_SEARCH + 1 { 0 } else { self.entries.len() - 1 };
        if self.entries.len() > MAX_LINEAR_SEARCH {
            for (position, (name, _)) in self.entries.iter().enumerate().skip(from) {
                self.positions.insert(name.clone(), position);
            }
        }
    }

    /// Applies a delta to a member: extends a string by a string if `extends_text`, and an array by an array; otherwise
    /// replaces the value, unless the new one is `null` or an empty string.
    pub(crate) fn merge(&mut self, key: JsonRef<'_>, value: JsonRef<'_>, extends_text: bool) {
        let Some(current) = self.get_mut(inside(key).unwrap_or_default()) else { return self.set(key, value) };
        match (current, inside(value)) {
            (StreamedValue::Text(text), Some(more)) if extends_text => text.append(more),
            (_, Some("")) => {}
            (_, None) if value.is_null() => {}
            (current, _) => match current.items() {
                Some(list) if value.kind() == JsonKind::Array => {
                    list.extend(value.items().map(|item| item.as_raw().to_owned()));
                }
                _ => *current = StreamedValue::read(value),
            },
        }
    }

    /// Appends an item to an array member.
    pub(crate) fn push_item(&mut self, key: &str, item: JsonRef<'_>) {
        match self.get_mut(key).and_then(StreamedValue::items) {
            Some(list) => list.push(item.as_raw().to_owned()),
            None => self.put(key, StreamedValue::List(vec![item.as_raw().to_owned()])),
        }
    }
}
