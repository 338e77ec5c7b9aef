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
        let mut chars = source.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let is_space = match c {
                // An escaped line break, of any number of nested strings.
                '\\' => chars.next_if(|(_, next)| matches!(next, 'n' | 'r' | 't')).is_some(),
                '"' | '\'' | '`' => false,
                c if c.is_whitespace() => true,
                c => {
                    plain.push(at, c);
                    continue;
                }
            };
            if is_space && !plain.text.ends_with(' ') {
                plain.push(at, ' ');
            }
        }
        plain
    }

    fn push(&mut self, at: usize, c: char) {
        self.text.push(c);
        self.offsets.resize(self.text.len(), at);
    }
}
