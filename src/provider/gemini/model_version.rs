//! Versions of Gemini models. Their names tell which rules apply: newer models reject requests that older ones accept.

use crate::provider::request::{ProviderRequest, Settings};

/// The first version that requires thought signatures, and that accepts images in function responses.
pub(in crate::provider) const GEMINI_3: u16 = 300;

/// The first version that rejects text after a function response at the end of a request, and a response without its
/// call's id.
pub(super) const GEMINI_3_6: u16 = 306;

/// Returns the version in a model's name or in the URL of a request, as 100 × major + minor: 306 for `gemini-3.6-pro`.
/// Returns 0 if there is none.
pub(in crate::provider) fn model_version(name: &str) -> u16 {
    let Some((_, rest)) = name.split_once("gemini-") else { return 0 };
    if !rest.starts_with(|first: char| first.is_ascii_digit()) {
        return model_version(rest);
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

/// Reads the model's version from `params.model`, or else from the URL (`…/models/gemini-3.6-pro:generateContent`).
pub(in crate::provider) fn version_settings(request: &ProviderRequest) -> Settings {
    let version = match model_version(&request.params.view().text("model").unwrap_or_default()) {
        0 => model_version(&request.url),
        version => version,
    };
    Settings { version, ..request.settings }
}
