//! What the core answers as a native program, for the test that compares it with the web build and the component.
//!
//! In, again and again: a byte for the dialect (its place in `Dialect::ALL`), one for the dialect to convert to, one
//! for the options (0 none, 1 omit, 2 a text), the body's length in four bytes, little-endian, and the body. Out, for
//! each: what `validate` found, the repaired body (empty where that failed), what `repair` found or its error, and the
//! same of `convert`, each behind its length.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use rethread::finding::Finding;
use rethread::json::{ArrayWriter, ObjectWriter};
use rethread::message::Dialect;
use rethread::provider::{Dangling, RepairOptions, repair, validate};
use rethread::render::convert;
use std::io::{Read, Write};

fn json(report: &[Finding]) -> String {
    let mut text = String::new();
    let mut array = ArrayWriter::new(&mut text);
    report.iter().for_each(|finding| array.object(|out| finding.write(out)));
    array.end();
    text
}

fn main() {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).unwrap();
    let mut out = std::io::stdout().lock();
    let mut say = |bytes: &[u8]| {
        out.write_all(&u32::try_from(bytes.len()).unwrap().to_le_bytes()).unwrap();
        out.write_all(bytes).unwrap();
    };
    let mut rest = input.as_slice();
    while let [dialect, target, options, a, b, c, d, tail @ ..] = rest {
        let (body, tail) = tail.split_at(u32::from_le_bytes([*a, *b, *c, *d]) as usize);
        let [dialect, target] = [*dialect, *target].map(|at| Dialect::ALL[usize::from(at)]);
        let options = match options {
            1 => RepairOptions { dangling: Dangling::Omit, dangling_text: None },
            2 => RepairOptions { dangling: Dangling::Synthesize, dangling_text: Some("\u{e9} cut".into()) },
            _ => RepairOptions::default(),
        };
        say(json(&validate(body, dialect)).as_bytes());
        for answer in [repair(body, dialect, &options), convert(body, dialect, target, &options)] {
            match answer {
                Ok((body, report)) => {
                    say(&body);
                    say(json(&report).as_bytes());
                }
                Err(error) => {
                    say(&[]);
                    let told = ObjectWriter::build(|out| {
                        out.text("code", error.code.as_str()).text("message", &error.message);
                    });
                    say(told.as_str().as_bytes());
                }
            }
        }
        rest = tail;
    }
}
