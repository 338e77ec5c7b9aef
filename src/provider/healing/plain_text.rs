//! A text in the form in which errors are compared.

/// A text without backslashes, quotation marks and backticks, and with one space for white space.
pub(super) struct PlainText {
    pub text: String,
    /// For each byte of the text, the offset of its character in the source.
    pub offsets: Vec<usize>,
}

impl PlainText {
    pub fn of(source: &str) -> Self {
        let mut plain = Self { text: String::with_capacity(source.len()), offsets: Vec::with_capacity(source.len()) };
        let mut rest = source;
        while let Some(c) = rest.chars().next() {
            let at = source.len() - rest.len();
            let (c, length) = if c == '\\' { unescaped(rest) } else { (Some(c), c.len_utf8()) };
            match c {
                None | Some('\\' | '"' | '\'' | '`') => {}
                Some(c) if c.is_whitespace() => {
                    if !plain.text.ends_with(' ') {
                        plain.push(at, ' ');
                    }
                }
                Some(c) => plain.push(at, c),
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        plain
    }

    fn push(&mut self, at: usize, c: char) {
        self.text.push(c);
        self.offsets.resize(self.text.len(), at);
    }
}

/// Returns the character that an escape stands for, and the escape's length; of any other backslash none, since nested
/// strings have more of them. Google's servers write quotation marks as `\u0027`.
fn unescaped(escape: &str) -> (Option<char>, usize) {
    if escape.starts_with("\\n") || escape.starts_with("\\r") || escape.starts_with("\\t") {
        return (Some(' '), 2);
    }
    let code = escape.strip_prefix("\\u").and_then(|digits| digits.get(..4));
    let code = code.filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let c = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
    c.map_or((None, 1), |c| (Some(c), 6))
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn r74_escapes_of_any_depth_are_read_as_the_characters() {
        for (source, text) in [
            (r"Invalid \\u0027input[1].id\\u0027:\\n  x", "Invalid input[1].id: x"),
            (r#"a \"b\" \\\"c\\\" `d` \u003e e"#, "a b c d > e"),
            (r"\u12 \ud800 \u+027 \", "u12 ud800 u+027 "),
            ("é\\n\tü", "é ü"),
        ] {
            let plain = PlainText::of(source);
            assert_eq!(plain.text, text);
            assert_eq!(plain.offsets.len(), text.len());
        }
        assert_eq!(PlainText::of(r"a\u0027\u003eb").offsets, [0, 7, 13]);
    }
}
