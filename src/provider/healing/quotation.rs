//! The sentence of an error answer, as the provider wrote it.

use super::plain_text::PlainText;
use crate::json::{JsonKind, JsonRef};

/// The longest quotation, in characters.
const MAX_QUOTATION: usize = 240;
/// What precedes the known words in their sentence is quoted up to this length, in bytes: a place such as
/// `messages.1.content.0: `.
const MAX_BEFORE: usize = 48;
/// Words are cut after a piece that is longer: signatures, keys and encrypted content are. Names and the steps of paths
/// are not.
const MAX_PIECE: usize = 24;
const SHORT_PIECE: usize = 8;
/// Gateways nest errors in strings of their own JSON, not deeper than this.
const MAX_DEPTH: usize = 5;

/// Returns the sentence with these parts, which occur in this order.
pub(super) fn quotation(answer: &str, parts: &[&str]) -> Option<String> {
    let mut texts = Vec::new();
    collect_strings(answer, 0, &mut texts);
    // Parts may be in several strings.
    texts.push(answer.to_owned());
    texts.iter().find_map(|text| sentence_in(text, parts))
}

/// Collects the strings of a JSON text, and of JSON texts in its strings. A text that is not JSON is one.
fn collect_strings(text: &str, depth: usize, texts: &mut Vec<String>) {
    let value = JsonRef::parse(text).ok().filter(|value| matches!(value.kind(), JsonKind::Object | JsonKind::Array));
    let Some(value) = value.filter(|_| depth < MAX_DEPTH) else {
        texts.push(text.to_owned());
        return;
    };
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if let Some(text) = value.as_text() {
            collect_strings(&text, depth + 1, texts);
        }
        open.extend(value.entries().map(|(_, member)| member));
        open.extend(value.items());
    }
}

/// Returns the sentence of a text that contains these parts. Their last occurrence counts before the end of the first:
/// the closest ones.
fn sentence_in(text: &str, parts: &[&str]) -> Option<String> {
    let plain = PlainText::of(text);
    let lower = plain.text.to_ascii_lowercase();
    let mut end = 0;
    for part in parts {
        let part = part.to_ascii_lowercase();
        end += lower.get(end..)?.find(&part)? + part.len();
    }
    let mut start = end;
    for part in parts.iter().rev() {
        start = lower.get(..start)?.rfind(&part.to_ascii_lowercase())?;
    }
    let start = sentence_start(text, *plain.offsets.get(start)?);
    let last = *plain.offsets.get(end.checked_sub(1)?)?;
    Some(shown(text.get(start..sentence_end(text, last))?))
}

/// Returns the offset of the sentence that the word at `at` is in, or of the word if the sentence starts far before it.
fn sentence_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let after = |found: Option<usize>, length: usize| found.map_or(0, |found| found + length);
    let word = before.rfind(char::is_whitespace).map_or(0, |found| found + 1);
    // An address may have a key in its query.
    let address = before.rfind("://").map(|address| {
        let rest = before.get(address..).unwrap_or_default();
        address + rest.find(char::is_whitespace).map_or(rest.len(), |space| space + 1)
    });
    let starts =
        [after(before.rfind(". "), 2), after(before.rfind(['\n', '\r', '{', '=']), 1), address.unwrap_or_default()];
    let start = starts.into_iter().max().unwrap_or_default();
    if at - start <= MAX_BEFORE { start } else { word.max(start) }
}

/// Returns the offset after the sentence that the character at `at` is in.
fn sentence_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let mut chars = rest.char_indices().peekable();
    while let Some((offset, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        match c {
            '.' if next.is_none_or(char::is_whitespace) => return at + offset + 1,
            // The end of a string in text that is not JSON as a whole.
            '"' | '\'' if matches!(next, Some(',' | '}' | ']')) => return at + offset,
            '\n' | '\r' => return at + offset,
            _ => {}
        }
    }
    text.len()
}

/// Returns a sentence as it is shown: without escapes, line breaks and long words, and not too long itself.
fn shown(sentence: &str) -> String {
    let unescaped = sentence.replace('\\', "");
    let words: Vec<String> = unescaped.split_whitespace().map(shown_word).collect();
    let text: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
    if text.chars().count() <= MAX_QUOTATION {
        return text;
    }
    text.chars().take(MAX_QUOTATION).chain(['…']).collect()
}

fn shown_word(word: &str) -> String {
    let is_between = |c: char| matches!(c, '.' | ':' | '[' | ']' | '/' | '\'' | '"' | '`');
    let long = word.split(is_between).find(|piece| piece.chars().count() > MAX_PIECE);
    let Some((before, long)) = long.and_then(|piece| Some((word.split_once(piece)?.0, piece))) else {
        return word.to_owned();
    };
    before.chars().chain(long.chars().take(SHORT_PIECE)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    const PARTS: &[&str] = &["invalid input[", "].id: ", "expected an id that begins with "];

    #[test]
    fn r74_the_quotation_is_the_provider_s_own_sentence() {
        let sentence = "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.";
        let inner = format!(r#"{{"error":{{"message":"{sentence} See the documentation.","param":"input[1].id"}}}}"#);
        let mut nested = String::new();
        crate::json::push_text(&mut nested, &inner);
        for answer in [
            inner.clone(),
            format!(r#"{{"error":{{"message":{nested}}}}}"#),
            format!("upstream https://gateway.example/v1?key=secret answered 400: {sentence}\nrequest id 7"),
        ] {
            let found = quotation(&answer, PARTS).unwrap();
            assert!(found.ends_with(sentence), "{answer}: {found}");
            assert!(
                !found.contains("secret") && !found.contains("param") && !found.contains("documentation"),
                "{found}"
            );
        }
        assert_eq!(quotation("nothing", PARTS), None);
    }

    #[test]
    fn r74_a_quotation_is_short_and_has_no_long_words() {
        let long =
            format!("The encrypted content {} could not be verified {}.", "gAAA".repeat(99), "and so on ".repeat(99));
        let found = quotation(&long, &["the encrypted content ", " could not be verified"]).unwrap();
        assert!(found.starts_with("The encrypted content gAAAgAAA… could not be verified and"), "{found}");
        assert_eq!(found.chars().count(), MAX_QUOTATION + 1);
    }

    #[test]
    fn r68_a_key_that_a_server_repeats_is_not_quoted() {
        for key in [
            "sk-ant-api03-0123456789abcdefghij",
            "0123456789abcdef0123456789abcdef",
            "AIzaSyA0123456789abcdefghijklmnopqrstuv",
        ] {
            for word in [key.to_owned(), format!("'{key}'"), format!("key:{key},")] {
                let sentence =
                    format!("No tool output found for function call {word} of messages.10.content.0.tool_use.input");
                let found = quotation(&sentence, &["no tool output found for function call "]).unwrap();
                assert!(!found.contains(key) && found.contains(&key[..SHORT_PIECE]), "{found}");
                assert!(found.ends_with("messages.10.content.0.tool_use.input"), "{found}");
            }
        }
    }
}
