//! What fuzzing found worth keeping, judged again: the corpus of every target, and every input that once broke a
//! promise.
//!
//! A corpus is a file of base64, an input a line; `npm run fuzz` makes it. A crash is a file of its own, with a name
//! that says what it was.

#[path = "../fuzz/judge/mod.rs"]
mod judge;

use std::path::PathBuf;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz").join(name)
}

fn base64(line: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("no base64: {line}"),
    };
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for c in line.bytes().filter(|c| *c != b'=') {
        bits = bits << 6 | u32::from(digit(c));
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// The inputs of a target, each with a name to find it by.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let corpus = std::fs::read_to_string(folder("corpus").join(format!("{target}.txt"))).unwrap();
    let mut all: Vec<_> =
        corpus.lines().enumerate().map(|(at, line)| (format!("line {} of the corpus", at + 1), base64(line))).collect();
    assert!(all.len() >= 5, "the corpus of {target} is missing");
    if let Ok(crashes) = std::fs::read_dir(folder("crashes").join(target)) {
        let mut files: Vec<_> = crashes.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        all.extend(files.into_iter().map(|file| (file.display().to_string(), std::fs::read(&file).unwrap())));
    }
    all
}

#[test]
fn r43_r44_the_kept_fuzz_inputs_pass() {
    for (target, judge) in judge::TARGETS {
        let inputs = inputs(target);
        println!("{target}: {} inputs", inputs.len());
        for (name, input) in inputs {
            if std::panic::catch_unwind(|| judge(&input)).is_err() {
                panic!("{target}, {name}: {}", String::from_utf8_lossy(&input));
            }
        }
    }
}

#[test]
fn every_fuzz_target_has_a_judge() {
    let manifest = std::fs::read_to_string(folder("Cargo.toml")).unwrap();
    let bins: Vec<_> = manifest.split("[[bin]]\n").skip(1).filter_map(|bin| bin.split('"').nth(1)).collect();
    let judged: Vec<_> = judge::TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(bins, judged);
}

#[test]
fn base64_is_decoded() {
    assert_eq!(base64("AP+hYg=="), [0, 0xff, 0xa1, b'b']);
}
