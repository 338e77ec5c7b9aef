//! Readers of values that the rules of all dialects share.

use super::splice::quoted;
use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};

/// The members of an object, read once. The last of equal names counts, as in `JSON.parse`.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    pub object: JsonRef<'a>,
    members: Vec<(JsonRef<'a>, JsonRef<'a>)>,
}

impl<'a> Fields<'a> {
    /// Reads the members of an object.
    pub fn of(object: JsonRef<'a>) -> Self {
        Self { object, members: object.entries().collect() }
    }

    /// Returns the value of a member.
    pub fn get(&self, name: &str) -> Option<JsonRef<'a>> {
        self.members.iter().rev().find(|(key, _)| key.is_text(name)).map(|(_, value)| *value)
    }

    /// Returns the value of a member, unless it is `null`.
    pub fn find(&self, name: &str) -> Option<JsonRef<'a>> {
        self.get(name).filter(|value| !value.is_null())
    }

    /// Returns the value of a member that is a string.
    pub fn text(&self, name: &str) -> Option<std::borrow::Cow<'a, str>> {
        self.get(name)?.as_text()
    }

    /// Returns the value of a member that is a string, otherwise an empty text.
    pub fn owned_text(&self, name: &str) -> String {
        self.text(name).unwrap_or_default().into_owned()
    }

    /// Returns the names and values in their order.
    pub fn members(&self) -> &[(JsonRef<'a>, JsonRef<'a>)] {
        &self.members
    }
}

/// Returns true if a wire format is known that has this name for the role of the model.
pub(crate) fn names_model(role: &str) -> bool {
    ["assistant", "model", "ai", "bot", "agent"].iter().any(|name| role.eq_ignore_ascii_case(name))
}

/// Returns the code of a finding about a role that the dialect does not have. A role that no dialect has belongs to a
/// foreign format.
pub(crate) fn role_code(role: &str) -> FindingCode {
    let known = ["", "system", "developer", "user", "tool", "function"];
    let is_known = names_model(role) || known.iter().any(|name| role.eq_ignore_ascii_case(name));
    if is_known { FindingCode::RoleOrder } else { FindingCode::UnknownShape }
}

/// Returns an id, and true if it is a string that is not empty. A number is an id that lacks its quotes.
pub(crate) fn id_of(value: Option<JsonRef<'_>>) -> (Option<String>, bool) {
    let Some(value) = value else { return (None, false) };
    match value.kind() {
        JsonKind::String => {
            let text = value.as_text().unwrap_or_default();
            if text.is_empty() {
                (None, false)
            } else if text.contains('\u{fffd}') {
                // Different lone surrogates decode to the same text, so the token is compared.
                (Some(value.as_raw().trim_matches('"').to_owned()), true)
            } else {
                (Some(text.into_owned()), true)
            }
        }
        JsonKind::Number => (Some(value.as_raw().to_owned()), false),
        _ => (None, false),
    }
}

/// Returns true if a text is 1 to `max` letters, digits, `_` or `-`.
pub(crate) fn name_valid(text: &str, max: usize) -> bool {
    !text.is_empty() && text.len() <= max && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Returns a valid name of at most `max` characters: other characters become `_`.
pub(crate) fn name_fit(text: &str, max: usize) -> String {
    let fit: String = text
        .chars()
        .take(max)
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .collect();
    if fit.is_empty() { "unknown".into() } else { fit }
}

/// Returns arguments as the JSON of an object: `"{\"a\":1}"` becomes `{"a":1}`, a missing value `{}`, and any other
/// value, such as 5, `{"value":5}`.
pub(crate) fn object_text(value: Option<JsonRef<'_>>) -> String {
    let Some(value) = value.filter(|value| !value.is_null()) else { return "{}".into() };
    let Some(text) = value.as_text() else { return format!("{{\"value\":{}}}", value.as_raw()) };
    if text.trim().is_empty() {
        return "{}".into();
    }
    match JsonRef::parse(&text) {
        Ok(inner) if inner.is_object() => inner.as_raw().to_owned(),
        Ok(inner) if inner.is_null() => "{}".into(),
        // A text with U+FFFD may have had lone surrogates, which only its token keeps.
        Ok(inner) if !text.contains('\u{fffd}') => format!("{{\"value\":{}}}", inner.as_raw()),
        _ => format!("{{\"value\":{}}}", value.as_raw()),
    }
}

/// Returns a string as it is, and any other value as a string that holds its JSON.
pub(crate) fn as_quoted(value: JsonRef<'_>) -> String {
    if value.kind() == JsonKind::String { value.as_raw().to_owned() } else { quoted(value.as_raw()) }
}
