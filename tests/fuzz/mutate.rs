//! Changes to a body that leave it JSON: a value gives way to another, comes twice, or goes. Bytes alone would mostly
//! make what is no JSON, and say little of the rules.

use rethread::json::{JsonRef, JsonKind};

/// A value's place in the text, and whether it is an item of an array, where it can come twice or go.
#[derive(Clone, Copy)]
struct Span {
    from: usize,
    to: usize,
    item: bool,
}

const MOST: usize = 400;
const STRANGE: [&str; 16] = [
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "12345678901234567890",
    "\"\"",
    "\"\\ud83d\"",
    "\"call_1\"",
    "\"tool\"",
    "\"assistant\"",
    "\"user\"",
    "[]",
    "{}",
    "[{}]",
    "{\"type\":\"text\",\"text\":\"x\"}",
];

/// The values of a text, those inside included.
fn spans(text: &str, root: JsonRef<'_>) -> Vec<Span> {
    let place = |value: JsonRef<'_>, item| {
        let from = value.as_raw().as_ptr() as usize - text.as_ptr() as usize;
        Span { from, to: from + value.as_raw().len(), item }
    };
    let mut found = vec![(place(root, false), root)];
    let mut at = 0;
    while at < found.len() && found.len() < MOST {
        let value = found[at].1;
        match value.kind() {
            JsonKind::Array => found.extend(value.items().map(|item| (place(item, true), item))),
            JsonKind::Object => found.extend(value.entries().map(|(_, member)| (place(member, false), member))),
            _ => {}
        }
        at += 1;
    }
    found.into_iter().map(|(span, _)| span).collect()
}

fn changed(text: &str, seed: u32) -> Option<String> {
    let spans = spans(text, JsonRef::parse(text).ok()?);
    let mut state = seed | 1;
    let mut roll = |below: usize| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as usize % below
    };
    let one = spans[roll(spans.len())];
    let other = spans[roll(spans.len())];
    let (before, value, after) = (&text[..one.from], &text[one.from..one.to], &text[one.to..]);
    Some(match roll(5) {
        0 => format!("{before}{}{after}", STRANGE[roll(STRANGE.len())]),
        1 => format!("{before}{}{after}", &text[other.from..other.to]),
        2 if one.item => format!("{before}{value},{value}{after}"),
        // An item goes, with the comma on one of its sides.
        3 if one.item => match (before.trim_end().strip_suffix(','), after.trim_start().strip_prefix(',')) {
            (Some(before), _) => format!("{before}{after}"),
            (None, Some(after)) => format!("{before}{after}"),
            (None, None) => format!("{before}{after}"),
        },
        4 if one.item && other.item => format!("{before}{value},{}{after}", &text[other.from..other.to]),
        _ => format!("{before}[{value}]{after}"),
    })
}

/// A mutator for bodies behind `head` bytes: JSON to JSON mostly, and libFuzzer's own ways for the rest.
pub fn json(data: &mut [u8], size: usize, max_size: usize, seed: u32, head: usize) -> usize {
    let made = data
        .get(head..size)
        .filter(|_| seed % 4 != 0)
        .and_then(|body| std::str::from_utf8(body).ok())
        .and_then(|text| changed(text, seed))
        .filter(|made| head + made.len() <= max_size);
    let Some(made) = made else { return libfuzzer_sys::fuzzer_mutate(data, size, max_size) };
    if head > 0 && seed % 16 == 1 {
        data[0] = (seed >> 8) as u8;
    }
    data[head..head + made.len()].copy_from_slice(made.as_bytes());
    head + made.len()
}
