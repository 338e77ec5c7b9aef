//! Removes credentials from the error texts of providers, which may quote the request.

use crate::json::JsonStr;
use crate::provider::{Assembled, KEY_PREFIXES, ProviderRequest, StreamEvent, WireError, percent_encoded, withhold};

/// The text that replaces a credential.
const REDACTED: &str = "[redacted]";

/// The length of the shortest value that is removed. Shorter values may occur in other words.
const MIN_LENGTH: usize = 8;

/// Removes credentials from texts: the values in `params` exactly, and what looks like a key of a known provider. The
/// forms are a second line of defense, for hosts that do not remove the credentials that they send, as `drive` does.
#[derive(Debug, Default)]
pub(super) struct CredentialFilter {
    /// Credentials of the request, longest first, since one may contain another.
    values: Vec<String>,
}

impl CredentialFilter {
    pub(super) fn new(provider: &ProviderRequest) -> Self {
        let mut values = Vec::new();
        for value in withhold(provider.dialect, &provider.params).values {
            let token = value.split_once(' ').map(|(_, token)| token.trim().to_owned());
            for text in token.into_iter().chain([value]) {
                values.extend([percent_encoded(&text), JsonStr::new(&text).inside().to_owned(), text]);
            }
        }
        values.retain(|value| value.len() >= MIN_LENGTH);
        values.sort_by_cached_key(String::len);
        values.reverse();
        values.dedup();
        Self { values }
    }

    /// Returns the text without credentials.
    pub(super) fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in &self.values {
            if text.contains(value) {
                text = text.replace(value, REDACTED);
            }
            // A text that quotes a body ends where it was cut, perhaps within a value.
            let begun = (MIN_LENGTH..value.len()).rev().find_map(|end| text.strip_suffix(value.get(..end)?));
            if let Some(before) = begun {
                text = format!("{before}{REDACTED}");
            }
        }
        without_known_keys(&text)
    }

    /// Removes credentials from the error of an answer.
    pub(super) fn redact_answer(&self, mut assembled: Assembled) -> Assembled {
        if let Some(error) = &mut assembled.error {
            self.redact_error(error);
            assembled.finish_reason = assembled.finish_reason.as_deref().map(|reason| self.redact(reason));
        }
        assembled
    }

    /// Removes credentials from an error event.
    pub(super) fn redact_event(&self, mut event: StreamEvent) -> StreamEvent {
        if let StreamEvent::Error(error) = &mut event {
            self.redact_error(error);
        }
        event
    }

    fn redact_error(&self, error: &mut WireError) {
        error.message = self.redact(&error.message);
        error.code = error.code.as_deref().map(|code| self.redact(code));
    }
}

/// Removes every word with the prefix of a known provider's keys, also after a line break, `=`, `"` or `/`.
fn without_known_keys(text: &str) -> String {
    let is_key_char = |c: char| c.is_ascii_alphanumeric() || "-_.*".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_apart = true;
    while let Some(first) = rest.chars().next() {
        let begins =
            is_apart && (KEY_PREFIXES.iter().any(|prefix| rest.starts_with(prefix)) || out.ends_with("Bearer "));
        let key = if begins {
            rest.find(|c| !is_key_char(c)).map_or(rest, |end| rest.get(..end).unwrap_or(rest))
        } else {
            ""
        };
        let key = key.trim_end_matches('.');
        let is_key = key.len() > MIN_LENGTH;
        let (head, tail) =
            rest.split_at_checked(if is_key { key.len() } else { first.len_utf8() }).unwrap_or((rest, ""));
        out.push_str(if is_key { REDACTED } else { head });
        is_apart = !head.ends_with(|c: char| c.is_ascii_alphanumeric());
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn r68_request_credentials_and_keys_of_known_forms_are_removed_everywhere() {
        let text = CredentialFilter { values: vec!["hunter2hunter2".into()] };
        for (before, after) in [("", ""), ("\n", "."), ("\t", "\t"), ("=", "&"), (",", ","), ("\"", "\""), ("/", "/")] {
            for key in ["hunter2hunter2", "sk-abcdefghij", "AIzaabcdefghij", "gsk_abcdefghij", "xai-ab*****ij"] {
                assert_eq!(text.redact(&format!("{before}{key}{after}")), format!("{before}{REDACTED}{after}"));
            }
        }
        assert_eq!(text.redact("Bearer abcdefghij12 is no"), format!("Bearer {REDACTED} is no"));
        for stays in ["task-force-of-many", "sk-", "a risk-averse one", "Bearer of news", "sk-short", ""] {
            assert_eq!(text.redact(stays), stays);
        }
        assert_eq!(text.redact(&"sk-".repeat(100_000)), REDACTED);
        assert_eq!(text.redact("cut at hunter2hunt"), format!("cut at {REDACTED}"));
    }

    #[test]
    fn r68_request_credentials_are_removed_in_urls_and_json_escapes() {
        let provider = ProviderRequest {
            dialect: crate::message::Dialect::Anthropic,
            url: "https://h".into(),
            params: crate::json::Json::parse(r#"{"headers":{"a":"Bearer a/b\"c+d=e","b":"short"}}"#).unwrap(),
            stream: false,
            headers: Vec::new(),
            settings: crate::provider::Settings::default(),
        };
        let text = CredentialFilter::new(&provider);
        for form in [r#"a/b"c+d=e"#, "a%2Fb%22c%2Bd%3De", r#"a/b\"c+d=e"#, r#"Bearer a/b"c+d=e"#] {
            assert_eq!(text.redact(&format!("<{form}>")), format!("<{REDACTED}>"));
        }
        assert_eq!(text.redact("short"), "short");
    }
}
