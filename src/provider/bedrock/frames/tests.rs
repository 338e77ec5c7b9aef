//! Frames: any split, both checksums, lengths, and headers of every type.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::*;

fn header(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![name.len() as u8];
    out.extend_from_slice(name.as_bytes());
    out.push(TEXT_HEADER);
    out.extend_from_slice(&(value.len() as u16).to_be_bytes());
    out.extend_from_slice(value.as_bytes());
    out
}

fn frame_of(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = (LEAST + headers.len() + payload.len()) as u32;
    let mut out = total.to_be_bytes().to_vec();
    out.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    out.extend_from_slice(&CRC.checksum(&out).to_be_bytes());
    out.extend_from_slice(headers);
    out.extend_from_slice(payload);
    out.extend_from_slice(&CRC.checksum(&out).to_be_bytes());
    out
}

pub(crate) fn event(name: &str, payload: &str) -> Vec<u8> {
    let mut headers = header(":event-type", name);
    headers.extend(header(":content-type", "application/json"));
    headers.extend(header(":message-type", "event"));
    frame_of(&headers, payload.as_bytes())
}

fn read(chunks: &[&[u8]]) -> (Vec<(String, String)>, Option<String>) {
    let (mut frames, mut found, mut error) = (EventFrames::default(), Vec::new(), None);
    for chunk in chunks {
        let pushed = frames.push(chunk, &mut |frame| found.push((frame.name.to_owned(), frame.data.to_owned())));
        error = error.or(pushed.err().map(|error| error.message));
    }
    (found, error)
}

fn two_events() -> (Vec<u8>, Vec<(String, String)>) {
    let mut bytes = event("messageStart", r#"{"role":"assistant"}"#);
    bytes.extend(event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"é"}}"#));
    let expected = vec![
        ("messageStart".to_owned(), r#"{"role":"assistant"}"#.to_owned()),
        ("contentBlockDelta".to_owned(), r#"{"contentBlockIndex":0,"delta":{"text":"é"}}"#.to_owned()),
    ];
    (bytes, expected)
}

#[test]
fn r65_any_split_gives_the_same_frames() {
    let (bytes, expected) = two_events();
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        assert_eq!(read(&[left, right]), (expected.clone(), None), "split at {at}");
    }
    for size in 1..40 {
        let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
        assert_eq!(read(&chunks), (expected.clone(), None), "chunks of {size}");
    }
}

#[test]
fn r65_a_changed_byte_is_found_by_one_of_the_checksums() {
    let (bytes, _) = two_events();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let (_, error) = read(&[&damaged]);
        assert!(error.is_some_and(|error| error.contains("checksum")), "byte {at}");
    }
}

#[test]
fn r65_nothing_is_read_after_an_error() {
    let (mut bytes, _) = two_events();
    bytes[4] ^= 1;
    let (good, _) = two_events();
    let (found, error) = read(&[&bytes, &good]);
    assert!(found.is_empty() && error.is_some());
}

#[test]
fn r65_a_truncated_frame_is_not_returned() {
    let (bytes, expected) = two_events();
    for cut in 1..20 {
        assert_eq!(read(&[&bytes[..bytes.len() - cut]]), (expected[..1].to_vec(), None));
    }
}

#[test]
fn r63_a_length_that_is_too_large_is_an_error_before_its_bytes_arrive() {
    for (total, headers) in [(u32::MAX, 0_u32), (LONGEST as u32 + 1, 0), (1024, 1024), (15, 0), (1 << 20, 1 << 19)] {
        let mut prelude = total.to_be_bytes().to_vec();
        prelude.extend_from_slice(&headers.to_be_bytes());
        prelude.extend_from_slice(&CRC.checksum(&prelude).to_be_bytes());
        let (found, error) = read(&[&prelude]);
        assert!(found.is_empty() && error.is_some(), "{total} {headers}");
    }
}

#[test]
fn r65_exceptions_and_errors_are_named() {
    let mut headers = header(":exception-type", "throttlingException");
    headers.extend(header(":message-type", "exception"));
    let exception = frame_of(&headers, br#"{"message":"Too many requests"}"#);
    let mut headers = header(":error-code", "InternalError");
    headers.extend(header(":error-message", "An \"internal\" error"));
    headers.extend(header(":message-type", "error"));
    let error = frame_of(&headers, b"");
    let expected = vec![
        ("throttlingException".to_owned(), r#"{"message":"Too many requests"}"#.to_owned()),
        ("error".to_owned(), r#"{"error":{"code":"InternalError","message":"An \"internal\" error"}}"#.to_owned()),
    ];
    assert_eq!(read(&[&exception, &error]), (expected, None));
}

#[test]
fn r65_headers_of_every_type_are_passed_over() {
    let mut headers = Vec::new();
    for (kind, length) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)] {
        headers.extend([1, b'x', kind]);
        headers.extend(vec![0; length]);
    }
    headers.extend([1, b'x', 6, 0, 3, 1, 2, 3]);
    headers.extend(header(":event-type", "messageStop"));
    assert_eq!(read(&[&frame_of(&headers, b"{}")]).0, [("messageStop".to_owned(), "{}".to_owned())]);
    let (_, error) = read(&[&frame_of(&[1, b'x', 99], b"{}")]);
    assert!(error.is_some());
    let (_, error) = read(&[&frame_of(&[200, b'x'], b"{}")]);
    assert!(error.is_some());
}

/// The assembler knows exceptions by the end of their names.
#[test]
fn r65_an_exception_of_any_name_is_an_error() {
    let mut headers = header(":exception-type", "internalServerError");
    headers.extend(header(":message-type", "exception"));
    let exception = frame_of(&headers, br#"{"message":"It broke"}"#);
    let expected =
        vec![("error".to_owned(), r#"{"error":{"code":"internalServerError","message":"It broke"}}"#.to_owned())];
    assert_eq!(read(&[&exception]), (expected, None));
}
