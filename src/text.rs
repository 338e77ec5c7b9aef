//! Looking for a text in a text.
//!
//! What is looked for here is a few bytes long. The standard library's search is made for patterns of any length; with the tables that
//! print what was cut in the wrong place it is larger in the wasm than a dialect's decoder.

/// What stands before the first `part`, which is not empty, and what behind it.
#[must_use]
pub fn cut<'t>(text: &'t str, part: &str) -> Option<(&'t str, &'t str)> {
    let first = part.as_bytes().first()?;
    let mut from = 0;
    while let Some(next) = text.as_bytes().get(from..)?.iter().position(|byte| byte == first) {
        let at = from + next;
        if let Some(behind) = text.get(at..).and_then(|rest| rest.strip_prefix(part)) {
            return Some((text.get(..at)?, behind));
        }
        from = at + 1;
    }
    None
}

/// Whether there is such a part.
#[must_use]
pub fn has(text: &str, part: &str) -> bool {
    cut(text, part).is_some()
}

/// How many there are.
#[must_use]
pub fn count(text: &str, part: &str) -> usize {
    let (mut rest, mut count) = (text, 0);
    while let Some((_, behind)) = cut(rest, part) {
        (rest, count) = (behind, count + 1);
    }
    count
}

/// The text with `new` for each `part`.
#[must_use]
pub fn replaced(text: &str, part: &str, new: &str) -> String {
    let (mut rest, mut out) = (text, String::with_capacity(text.len()));
    while let Some((before, behind)) = cut(rest, part) {
        out.push_str(before);
        out.push_str(new);
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// The parts as one text, with `between` between them.
pub fn joined(parts: &mut dyn Iterator<Item = &str>, between: &str) -> String {
    let mut out = String::new();
    for (at, part) in parts.enumerate() {
        out.push_str(if at == 0 { "" } else { between });
        out.push_str(part);
    }
    out
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn parts_are_found_as_the_standard_library_finds_them() {
        for text in ["", "a", "ab", "aab", "abab", "aaa", "xéaby\u{fffd}", "\u{fffd}\u{fffd}b", "baaab"] {
            for part in ["a", "ab", "aa", "b", "é", "\u{fffd}", "aaab"] {
                assert_eq!(cut(text, part), text.split_once(part), "{part:?} in {text:?}");
                assert_eq!(has(text, part), text.contains(part));
                assert_eq!(count(text, part), text.matches(part).count());
                assert_eq!(replaced(text, part, "<>"), text.replace(part, "<>"));
            }
        }
    }
}
