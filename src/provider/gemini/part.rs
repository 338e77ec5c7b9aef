//! The members of a part. Gemini reads each under two names: `functionCall` and `function_call`.

use crate::json::{Json, JsonRef, ObjectWriter};

pub(super) const CALL_NAMES: [&str; 2] = ["functionCall", "function_call"];
pub(super) const RESPONSE_NAMES: [&str; 2] = ["functionResponse", "function_response"];
pub(super) const SIGNATURE_NAMES: [&str; 2] = ["thoughtSignature", "thought_signature"];
const MEDIA_NAMES: [&str; 4] = ["inlineData", "inline_data", "fileData", "file_data"];

/// The members that are a part's data, by kind. A part has exactly one of them (`oneof data`).
pub(super) const DATA_NAMES: [&[&str]; 5] = [
    &["text"],
    &CALL_NAMES,
    &RESPONSE_NAMES,
    &MEDIA_NAMES,
    &["executableCode", "executable_code", "codeExecutionResult", "code_execution_result", "toolCall", "toolResponse"],
];

/// Members that belong to the data of one kind: the names of the member, and the names of the data.
const COMPANION_NAMES: [(&[&str], &[&str]); 3] =
    [(&SIGNATURE_NAMES, &CALL_NAMES), (&["thought"], &["text"]), (&["videoMetadata", "video_metadata"], &MEDIA_NAMES)];

/// Splits a part with several data members into one part each. Other members go to the data that they belong to, or to
/// the first. Returns no parts if the part has at most one data member.
///
/// ```json
/// {"text":"Hm","functionCall":{"name":"f"},"thoughtSignature":"QQ=="}
/// ```
///
/// becomes `{"text":"Hm"}` and `{"functionCall":{"name":"f"},"thoughtSignature":"QQ=="}`.
pub(super) fn split_part(part: JsonRef<'_>) -> Vec<Json> {
    let (mut data, mut others) = (Vec::<(JsonRef<'_>, JsonRef<'_>)>::new(), Vec::new());
    for (key, value) in part.entries() {
        let is_data = is_data_name(key) && (value.is_object() || key.is_text("text"));
        match data.iter_mut().find(|(data_key, _)| data_key.as_raw() == key.as_raw()) {
            // Of duplicate members the last one counts.
            Some(member) => member.1 = value,
            None if is_data && !value.is_null() => data.push((key, value)),
            None => others.push((key, value)),
        }
    }
    let mut parts = Vec::new();
    if data.len() < 2 {
        return parts;
    }
    data.retain(|(_, value)| !value.is_text(""));
    for (at, (key, value)) in data.iter().enumerate() {
        let mut out = String::new();
        let mut part = ObjectWriter::new(&mut out);
        part.copy(*key, *value);
        for (key, value) in &others {
            let owner = data.iter().rposition(|(data_key, _)| belongs_to(*key, *data_key)).unwrap_or(0);
            if owner == at {
                part.copy(*key, *value);
            }
        }
        part.end();
        parts.push(Json::trusted(out));
    }
    parts
}

/// Returns true if an object is a part: it has data, and no `type`, which parts of other formats have.
pub(super) fn is_part(value: JsonRef<'_>) -> bool {
    let mut members = value.entries();
    let has_data = members.clone().any(|(key, value)| !value.is_null() && is_data_name(key));
    has_data && !members.any(|(key, _)| key.is_text("type"))
}

/// A part with a call or a response.
#[derive(Clone, Copy)]
pub(super) struct NamedPart<'a> {
    pub part: JsonRef<'a>,
    /// The part's `functionCall` or `functionResponse`: an object with a name and, in most requests, without an id.
    pub named: JsonRef<'a>,
}

impl<'a> NamedPart<'a> {
    /// Returns the part with its call, if it has one.
    pub fn with_call(part: JsonRef<'a>) -> Option<Self> {
        Some(Self { part, named: object_member(part, CALL_NAMES)? })
    }

    /// Returns the part with its response, if it has one.
    pub fn with_response(part: JsonRef<'a>) -> Option<Self> {
        Some(Self { part, named: object_member(part, RESPONSE_NAMES)? })
    }
}

/// Returns the member of a part that is an object under either name; if both are, the one in camel case.
pub(super) fn object_member<'a>(part: JsonRef<'a>, names: [&str; 2]) -> Option<JsonRef<'a>> {
    names.iter().find_map(|name| part.get(name).filter(|value| value.is_object()))
}

fn is_data_name(key: JsonRef<'_>) -> bool {
    DATA_NAMES.iter().any(|names| is_one_of(key, names))
}

/// Returns true if the member `key` belongs to the data member `data_key`.
fn belongs_to(key: JsonRef<'_>, data_key: JsonRef<'_>) -> bool {
    COMPANION_NAMES.iter().any(|(names, data_names)| is_one_of(key, names) && is_one_of(data_key, data_names))
}

fn is_one_of(key: JsonRef<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| key.is_text(name))
}
