//! Google Gemini generateContent.

mod codec;
mod config;
mod decode;
mod encode;
pub(crate) mod rules;
mod stream;

use crate::text::cut;

pub(crate) use codec::Gemini;
pub(crate) use decode::shown_by;

/// The first version that wants signatures, and takes images in responses.
const THIRD: u16 = 300;
/// The first version that refuses what older ones took: words behind a response at a body's end, the role "function", a
/// response without the id of its call.
const STRICT: u16 = 306;

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
