//! Small readers that every dialect's rules share.

use super::splice::quoted;
use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};

/// An object's members, read once; of doubled ones the last counts, as for `JSON.parse`.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    pub object: JsonRef<'a>,
    members: Vec<(JsonRef<'a>, JsonRef<'a>)>,
}

impl<'a> Fields<'a> {
    pub fn of(object: JsonRef<'a>) -> Self {
        Self { object, members: object.entries().collect() }
    }

    pub fn get(&self, name: &str) -> Option<JsonRef<'a>> {
        self.members.iter().rev().find(|(key, _)| key.is_text(name)).map(|(_, value)| *value)
    }

    /// With `null` read as absent.
    pub fn find(&self, name: &str) -> Option<JsonRef<'a>> {
        self.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Option<std::borrow::Cow<'a, str>> {
        self.get(name)?.as_text()
    }

    /// As [`text`](Self::text), with what is no text read as an empty one.
    pub fn owned_text(&self, name: &str) -> String {
        self.text(name).unwrap_or_default().into_owned()
    }

    pub fn members(&self) -> &[(JsonRef<'a>, JsonRef<'a>)] {
        &self.members
    }
}

/// Whether other wires name the model's role so.
pub(crate) fn names_model(role: &str) -> bool {
    ["assistant", "model", "ai", "bot", "agent"].iter().any(|own| role.eq_ignore_ascii_case(own))
}

/// The code of a role that the dialect does not have: one that says nothing to any other is another shape.
pub(crate) fn role_code(role: &str) -> FindingCode {
    let known = ["", "system", "developer", "user", "tool", "function"];
    let is_known = names_model(role) || known.iter().any(|own| role.eq_ignore_ascii_case(own));
    if is_known { FindingCode::RoleOrder } else { FindingCode::UnknownShape }
}

/// An id, and whether it is a string that is not empty. A number counts as an id that needs its quotes.
pub(crate) fn id_of(value: Option<JsonRef<'_>>) -> (Option<String>, bool) {
    let Some(value) = value else { return (None, false) };
    match value.kind() {
        JsonKind::String => {
            let text = value.as_text().unwrap_or_default();
            if text.is_empty() {
                (None, false)
            } else if text.contains('\u{fffd}') {
                // Lone surrogates read alike; their tokens do not.
                (Some(value.as_raw().trim_matches('"').to_owned()), true)
            } else {
                (Some(text.into_owned()), true)
            }
        }
        JsonKind::Number => (Some(value.as_raw().to_owned()), false),
        _ => (None, false),
    }
}

/// Whether it is 1 to `max` letters, digits, `_` or `-`.
pub(crate) fn name_valid(text: &str, max: usize) -> bool {
    !text.is_empty() && text.len() <= max && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// A text with `_` for what a name may not hold, cut to `max`.
pub(crate) fn name_fit(text: &str, max: usize) -> String {
    let fit: String = text
        .chars()
        .take(max)
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .collect();
    if fit.is_empty() { "unknown".into() } else { fit }
}

/// A call's arguments where an object is due: an object in a string is taken out of it, nothing becomes `{}`, and any
/// other value stands as `value`.
pub(crate) fn object_text(value: Option<JsonRef<'_>>) -> String {
    let Some(value) = value.filter(|value| !value.is_null()) else { return "{}".into() };
    let Some(text) = value.as_text() else { return format!("{{\"value\":{}}}", value.as_raw()) };
    if text.trim().is_empty() {
        return "{}".into();
    }
    match JsonRef::parse(&text) {
        Ok(inner) if inner.is_object() => inner.as_raw().to_owned(),
        Ok(inner) if inner.is_null() => "{}".into(),
        // A text that decodes to another value may hold lone surrogates as U+FFFD only in its decoded form; the token keeps them.
        Ok(inner) if !text.contains('\u{fffd}') => format!("{{\"value\":{}}}", inner.as_raw()),
        _ => format!("{{\"value\":{}}}", value.as_raw()),
    }
}

/// A value that is no text, as one: its JSON text in quotes.
pub(crate) fn as_quoted(value: JsonRef<'_>) -> String {
    if value.kind() == JsonKind::String { value.as_raw().to_owned() } else { quoted(value.as_raw()) }
}
