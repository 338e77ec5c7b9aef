//! Google Gemini generateContent.

mod codec;
mod config;
mod decode;
mod encode;
pub(crate) mod rules;
mod sdk;
mod stream;

use crate::json::{Json, JsonRef, ObjectWriter};
use crate::text::cut;

pub(crate) use codec::Gemini;
pub(crate) use decode::shown_by;

/// The first version that wants signatures, and takes images in responses.
const THIRD: u16 = 300;
/// The first version that refuses what older ones took: words behind a response at a body's end, a response without the id
/// of its call.
const STRICT: u16 = 306;

/// Members under their own names and their names in snake case: both are read.
const CALL: [&str; 2] = ["functionCall", "function_call"];
const RESPONSE: [&str; 2] = ["functionResponse", "function_response"];
const SIGNATURE: [&str; 2] = ["thoughtSignature", "thought_signature"];
const MEDIA: [&str; 4] = ["inlineData", "inline_data", "fileData", "file_data"];
/// Of these a part has one.
const DATA: [&[&str]; 5] = [
    &["text"],
    &CALL,
    &RESPONSE,
    &MEDIA,
    &["executableCode", "executable_code", "codeExecutionResult", "code_execution_result", "toolCall", "toolResponse"],
];

/// What belongs to which of them.
const HOMES: [(&[&str], &[&str]); 3] =
    [(&SIGNATURE, &CALL), (&["thought"], &["text"]), (&["videoMetadata", "video_metadata"], &MEDIA)];

/// The parts that one with several data comes to: a signature stays with the call, `thought` with the text, what is said of a
/// file with it. None where it has one.
fn split(part: JsonRef<'_>) -> Vec<Json> {
    let (mut data, mut rest) = (Vec::<(JsonRef<'_>, JsonRef<'_>)>::new(), Vec::new());
    for (key, value) in part.entries() {
        let known = DATA.iter().any(|names| is_one_of(key, names)) && (value.is_object() || key.is_text("text"));
        match data.iter_mut().find(|(own, _)| own.as_raw() == key.as_raw()) {
            Some(own) => own.1 = value,
            None if known && !value.is_null() => data.push((key, value)),
            None => rest.push((key, value)),
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
        for (key, value) in &rest {
            let mut home = 0;
            for (at, (own, _)) in data.iter().enumerate() {
                if HOMES.iter().any(|(extra, names)| is_one_of(*key, extra) && is_one_of(*own, names)) {
                    home = at;
                }
            }
            if home == at {
                part.copy(*key, *value);
            }
        }
        part.end();
        parts.push(Json::trusted(out));
    }
    parts
}

/// Whether an object is a part: it holds one of the data, and no type, as parts of other formats do.
fn is_part(value: JsonRef<'_>) -> bool {
    let mut members = value.entries();
    let mut data = members.clone().filter(|(_, value)| !value.is_null());
    data.any(|(key, _)| DATA.iter().any(|names| is_one_of(key, names))) && !members.any(|(key, _)| key.is_text("type"))
}

fn is_one_of(key: JsonRef<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| key.is_text(name))
}

/// The version that the name of a model, or the address of a request, says: 306 for `gemini-3.6-pro`. 0 where it says none.
fn version(name: &str) -> u16 {
    let Some((_, rest)) = cut(name, "gemini-") else { return 0 };
    if !rest.starts_with(|first: char| first.is_ascii_digit()) {
        return version(rest);
    }
    let (mut numbers, mut at) = ([0_u16; 2], 0);
    for byte in rest.bytes() {
        match (byte, numbers.get_mut(at)) {
            (b'0'..=b'9', Some(number)) => *number = number.saturating_mul(10).saturating_add(u16::from(byte - b'0')),
            (b'.', Some(_)) => at += 1,
            _ => break,
        }
    }
    let [major, minor] = numbers;
    major.saturating_mul(100).saturating_add(minor.min(99))
}
