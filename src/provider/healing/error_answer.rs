//! The body of an answer that refuses a request.

use super::plain_text::PlainText;
use super::quotation::quotation;

/// The longest error answer that is read, in bytes. Errors of providers are shorter than this.
pub const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The text of an error, in a form that can be compared: gateways wrap a provider's error in strings of their own JSON,
/// so backslashes, quotation marks and backticks are left out, and white space is one space.
pub(crate) struct ErrorAnswer {
    /// As it was sent.
    source: String,
    text: String,
    /// The text in lower case. ASCII letters alone are changed, so offsets are the same.
    lower: String,
}

impl ErrorAnswer {
    /// Reads the body of an answer. Returns `None` if it is too long.
    pub fn read(body: &[u8]) -> Option<Self> {
        if body.len() > MAX_ERROR_BYTES {
            return None;
        }
        let source = String::from_utf8_lossy(body).into_owned();
        let text = PlainText::of(&source).text;
        let lower = text.to_ascii_lowercase();
        Some(Self { source, text, lower })
    }

    /// Returns the provider's sentence that contains these parts, as it wrote it.
    pub fn quotation(&self, parts: &[&str]) -> Option<String> {
        quotation(&self.source, parts)
    }

    /// Returns the offset after the last of these parts, which must occur in this order.
    pub fn find(&self, parts: &[&str]) -> Option<usize> {
        let mut at = 0;
        for part in parts {
            let found = self.lower.get(at..)?.find(&part.to_ascii_lowercase())?;
            at += found + part.len();
        }
        Some(at)
    }

    /// Returns true if the text contains a word, such as a code.
    pub fn has_word(&self, word: &str) -> bool {
        self.lower.split(|c: char| !is_word(c)).any(|found| found == word)
    }

    /// Returns the word after these parts: an id such as `call_1`.
    pub fn word_after(&self, parts: &[&str]) -> Option<&str> {
        let rest = self.text.get(self.find(parts)?..)?.trim_start_matches([' ', ':']);
        rest.split(|c: char| !is_word(c)).next().filter(|word| !word.is_empty())
    }

    /// Returns the words of the list after these parts: the ids in `['a', 'b']`. The parts end in its bracket.
    pub fn words_after(&self, parts: &[&str]) -> Vec<&str> {
        let rest = self.find(parts).and_then(|at| self.text.get(at..)).unwrap_or_default();
        let list = rest.split(']').next().unwrap_or_default();
        list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
    }

    /// Returns the path that begins with `root`, in its segments: `messages.1.content.0` or `input[3].id`.
    pub fn path(&self, root: &str) -> Vec<&str> {
        let start = |at: &usize| {
            let before = self.text.get(..*at).and_then(|text| text.chars().next_back());
            let after = self.text.get(at + root.len()..).and_then(|text| text.chars().next());
            before.is_none_or(|c| !is_word(c) && c != '.') && after.is_some_and(|c| matches!(c, '.' | '['))
        };
        let Some(at) = self.text.match_indices(root).map(|(at, _)| at).find(start) else { return Vec::new() };
        let rest = self.text.get(at..).unwrap_or_default();
        let end = rest.find(|c: char| !is_word(c) && !matches!(c, '.' | '[' | ']')).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default().split(['.', '[', ']']).filter(|segment| !segment.is_empty()).collect()
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn r74_an_error_is_found_in_the_strings_of_a_gateway() {
        let body = r#"{"error":{"message":"{\"error\":{\"message\":\"No tool output found\\nfor function call 'call_1'.\"}}"}}"#;
        let answer = ErrorAnswer::read(body.as_bytes()).unwrap();
        assert_eq!(answer.word_after(&["no tool output found for", "call "]), Some("call_1"));
        assert_eq!(answer.word_after(&["no such sentence"]), None);
        assert!(ErrorAnswer::read(&vec![b' '; MAX_ERROR_BYTES + 1]).is_none());
    }

    #[test]
    fn r74_the_place_of_an_error_is_a_path() {
        let path = |text: &str, root: &str| -> Vec<String> {
            ErrorAnswer::read(text.as_bytes()).unwrap().path(root).into_iter().map(str::to_owned).collect()
        };
        assert_eq!(path("messages.1.content.0: Invalid", "messages"), ["messages", "1", "content", "0"]);
        assert_eq!(path("Invalid 'input[12].id': 'call_1'.", "input"), ["input", "12", "id"]);
        assert_eq!(path("the messages of my.messages.1", "messages"), Vec::<String>::new());
    }
}
