//! The scanner: checks JSON text in one pass, with a flag per level instead of recursion.

/// Text that is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Byte offset of the first wrong byte.
    pub at: usize,
}

/// Checks that `text` is one JSON value, with optional white space around it (RFC 8259, like `JSON.parse`).
///
/// # Errors
/// The position of the first wrong byte.
pub fn check(text: &str) -> Result<(), SyntaxError> {
    let bytes = text.as_bytes();
    let end = check_value(bytes, skip_space(bytes, 0))?;
    let end = skip_space(bytes, end);
    if end == bytes.len() { Ok(()) } else { Err(SyntaxError { at: end }) }
}

/// Returns the first offset from `at` on that is not JSON white space.
#[must_use]
pub fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(is_space) {
        at += 1;
        // Elsewhere than in a hostile text there are few in a row.
        if at.is_multiple_of(8) {
            let groups = bytes.get(at..).unwrap_or_default().as_chunks().0.iter();
            at += groups.take_while(|group| is_all_space(**group)).count() * 8;
        }
    }
    at
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Returns true if all bytes are white space. Looks at all of them at a time, because long white space is scanned
/// several times.
fn is_all_space(group: [u8; 8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const LOWS: u64 = ONES * 0x7f;
    let (word, [first, ..]) = (u64::from_le_bytes(group), group);
    // Most white space repeats one byte.
    if word == ONES * u64::from(first) {
        return is_space(&first);
    }
    // The highest bit of each byte that is not this one (Anderson, "Bit Twiddling Hacks").
    let other_than = |byte: u8| {
        let difference = word ^ (ONES * u64::from(byte));
        (((difference & LOWS) + LOWS) | difference) & !LOWS
    };
    other_than(b' ') & other_than(b'\n') & other_than(b'\t') & other_than(b'\r') == 0
}

/// Returns `text` without the JSON white space around it.
#[must_use]
pub fn trimmed(text: &str) -> &str {
    let bytes = text.as_bytes();
    let groups = bytes.as_rchunks().1.iter().rev();
    let rest = bytes.len() - groups.take_while(|group| is_all_space(**group)).count() * 8;
    let last = bytes.get(..rest).unwrap_or_default().iter().rposition(|byte| !is_space(byte));
    text.get(skip_space(bytes, 0)..last.map_or(0, |last| last + 1)).unwrap_or_default()
}

/// Returns `text` without a byte order mark at its start.
pub(super) fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Checks the value that starts at `at`. Returns the offset after it.
fn check_value(bytes: &[u8], mut at: usize) -> Result<usize, SyntaxError> {
    let mut objects: Vec<bool> = Vec::new();
    loop {
        // A value must start at `at`.
        match bytes.get(at) {
            Some(b'{') => {
                at = skip_space(bytes, at + 1);
                if bytes.get(at) == Some(&b'}') {
                    at += 1;
                } else {
                    objects.push(true);
                    at = check_key(bytes, at)?;
                    continue;
                }
            }
            Some(b'[') => {
                at = skip_space(bytes, at + 1);
                if bytes.get(at) == Some(&b']') {
                    at += 1;
                } else {
                    objects.push(false);
                    continue;
                }
            }
            Some(b'"') => at = check_string(bytes, at)?,
            Some(b't') => at = check_word(bytes, at, b"true")?,
            Some(b'f') => at = check_word(bytes, at, b"false")?,
            Some(b'n') => at = check_word(bytes, at, b"null")?,
            Some(b'-' | b'0'..=b'9') => at = check_number(bytes, at)?,
            _ => return Err(SyntaxError { at }),
        }
        // A value has ended: close the arrays and objects that end here, or continue with the next value.
        loop {
            let Some(&in_object) = objects.last() else { return Ok(at) };
            at = skip_space(bytes, at);
            match (bytes.get(at), in_object) {
                (Some(b','), true) => {
                    at = check_key(bytes, skip_space(bytes, at + 1))?;
                    break;
                }
                (Some(b','), false) => {
                    at = skip_space(bytes, at + 1);
                    break;
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    objects.pop();
                    at += 1;
                }
                _ => return Err(SyntaxError { at }),
            }
        }
    }
}

fn check_key(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    if bytes.get(at) != Some(&b'"') {
        return Err(SyntaxError { at });
    }
    let at = skip_space(bytes, check_string(bytes, at)?);
    if bytes.get(at) != Some(&b':') {
        return Err(SyntaxError { at });
    }
    Ok(skip_space(bytes, at + 1))
}

fn check_word(bytes: &[u8], at: usize, word: &[u8]) -> Result<usize, SyntaxError> {
    if bytes.get(at..at + word.len()) == Some(word) { Ok(at + word.len()) } else { Err(SyntaxError { at }) }
}

/// Checks the string that starts at `start`. Returns the offset after it.
pub(super) fn check_string(bytes: &[u8], start: usize) -> Result<usize, SyntaxError> {
    let mut at = start + 1;
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') if bytes.get(at + 2..at + 6).is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit)) => at += 6,
                _ => return Err(SyntaxError { at }),
            },
            Some(0..=0x1f) | None => return Err(SyntaxError { at }),
            Some(_) => at = skip_plain(bytes, at + 1),
        }
    }
}

fn check_number(bytes: &[u8], mut at: usize) -> Result<usize, SyntaxError> {
    let digits = |mut at: usize| {
        let start = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        if at == start { Err(SyntaxError { at }) } else { Ok(at) }
    };
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { digits(at)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = digits(at)?;
    }
    Ok(at)
}

/// Returns the offset after the value that starts at `at`, in text that [`check`] has accepted.
pub(super) fn skip_value(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    loop {
        match bytes.get(at) {
            Some(b'"') => at = skip_string(bytes, at),
            Some(b'{' | b'[') => {
                depth += 1;
                at += 1;
                continue;
            }
            Some(b'}' | b']') => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            Some(b',' | b':') => {
                at += 1;
                continue;
            }
            Some(b' ' | b'\t' | b'\n' | b'\r') => {
                at = skip_space(bytes, at + 1);
                continue;
            }
            Some(_) => {
                while !matches!(bytes.get(at), None | Some(b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')) {
                    at += 1;
                }
            }
            None => return at,
        }
        if depth == 0 {
            return at;
        }
    }
}

/// Returns the offset after the string that starts at `start`, in text that [`check`] has accepted.
pub(super) fn skip_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        // Looked at first, because escapes often follow each other.
        match bytes.get(at) {
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at = skip_plain(bytes, at + 1),
            None => return at,
        }
    }
}

/// Returns the offset of the first backslash in the inside of a string.
pub(super) fn find_escape(inside: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at = skip_plain(inside, at);
        match inside.get(at) {
            Some(b'\\') => return Some(at),
            Some(_) => at += 1,
            None => return None,
        }
    }
}

/// Returns the offset of the next quote, backslash or control character, or one in the last eight bytes before it.
/// Looks at eight bytes at a time, because long strings are scanned several times.
fn skip_plain(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES << 7;
    // The highest bit of each byte that is below `most`, for bytes below 0x80 (Anderson, "Bit Twiddling Hacks").
    let below = |word: u64, most: u64| word.wrapping_sub(ONES * most) & !word & HIGHS;
    while let Some(group) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*group);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = quote | backslash | below(word, 0x20);
        if found != 0 {
            // Only the lowest mark is exact: a borrow can set one above it.
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at
}
