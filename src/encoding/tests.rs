#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::*;
use crate::json::{Json, JsonStr};
use crate::message::{Message, Role, WireTemplate};
use crate::session_head::{RunEntry, SessionHead};
use minicbor::Encode;
use proptest::prelude::*;

fn encoded(value: &impl Encode<RecordSource>) -> Vec<u8> {
    let mut out = Vec::new();
    minicbor::encode_with(value, &mut out, &mut RecordSource::default()).unwrap();
    out
}

fn decoded<T: for<'b> Decode<'b, RecordSource>>(bytes: &[u8]) -> Result<T, Error> {
    let record = Bytes::copy_from_slice(bytes);
    minicbor::decode_with(&record, &mut RecordSource::new(record.clone()))
}

/// A message of a later build: with fields of numbers that this one does not have.
fn with_field(map: &[u8], number: u32, value: &[u8]) -> Vec<u8> {
    let mut decoder = Decoder::new(map);
    let count = decoder.map().unwrap().unwrap();
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out);
    encoder.map(count + 1).unwrap().u32(number).unwrap();
    out.extend_from_slice(value);
    out.extend_from_slice(&map[decoder.position()..]);
    out
}

fn head() -> SessionHead {
    let mut head = SessionHead::new("s", 5);
    head.title = Some("T".into());
    head.runs = vec![RunEntry { id: "r".into(), number: 3, ..RunEntry::default() }];
    head
}

#[test]
fn texts_are_slices_of_the_record() {
    let record = Bytes::from(encoded(&Message::from_text(Role::User, &"long ".repeat(100))));
    let message: Message = minicbor::decode_with(&record, &mut RecordSource::new(record.clone())).unwrap();
    let crate::message::PartBody::Text(text) = &message.parts[0].body else { panic!("a text") };
    assert!(record.as_ptr_range().contains(&text.token().as_ptr()), "the text was copied");
}

#[test]
fn a_text_that_is_not_utf8_is_an_error() {
    assert!(decoded::<Json>(&[0x62, b'"', 0xff]).is_err());
    assert!(decoded::<JsonStr>(&[0x61, 0x80]).is_err());
}

#[test]
fn templates_nested_too_deeply_are_an_error() {
    // A template with one slot, `["k", [10, template]]`.
    let nested = |depth: usize| {
        let mut bytes = [0x81, 0x82, 0x61, b'k', 0x82, 0x0a].repeat(depth);
        bytes.push(0x80);
        bytes
    };
    assert!(decoded::<WireTemplate>(&nested(10)).is_ok());
    assert!(decoded::<WireTemplate>(&nested(100_000)).is_err());
}

#[test]
fn r67_a_head_keeps_the_fields_of_a_newer_build() {
    let plain = encoded(&head());
    let newer = with_field(&plain, 90, &[0x82, 0x01, 0x61, b'x']);
    let mut read: SessionHead = decoded(&newer).unwrap();
    assert_eq!(read.title.as_deref(), Some("T"));
    read.title = Some("U".into());
    let again: SessionHead = decoded(&encoded(&read)).unwrap();
    assert_eq!((again.unknown.count(), &again), (1, &read));

    let mut run: RunEntry = decoded(&with_field(&encoded(&head().runs[0]), 91, &[0x05])).unwrap();
    run.epoch += 1;
    let outer = SessionHead { runs: vec![run.clone()], ..head() };
    assert_eq!(decoded::<SessionHead>(&encoded(&outer)).unwrap().runs, [run]);
}

/// Any CBOR value, small.
fn any_value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<u64>().prop_map(|number| minicbor::to_vec(number).unwrap()),
        any::<i64>().prop_map(|number| minicbor::to_vec(number).unwrap()),
        any::<String>().prop_map(|text| minicbor::to_vec(text).unwrap()),
        any::<Vec<Option<(bool, String)>>>().prop_map(|list| minicbor::to_vec(list).unwrap()),
        Just(vec![0xa1, 0x01, 0xa1, 0x61, b'k', 0xf6]),
    ]
}

proptest! {
    #[test]
    fn r67_unknown_fields_are_skipped(number in 40_u32..9_000, value in any_value(), text in any::<String>()) {
        let message = Message::from_text(Role::User, &text);
        let read: Message = decoded(&with_field(&encoded(&message), number, &value)).unwrap();
        prop_assert_eq!(read, message);
    }

    #[test]
    fn r67_unknown_fields_of_a_head_are_written_back(fields in proptest::collection::btree_map(60_u32..99, any_value(), 0..4)) {
        let newer = fields.iter().fold(encoded(&head()), |map, (number, value)| with_field(&map, *number, value));
        let read: SessionHead = decoded(&newer).unwrap();
        let again: SessionHead = decoded(&encoded(&read)).unwrap();
        prop_assert_eq!(again.unknown.count(), fields.len() as u64);
        prop_assert_eq!(again, read);
    }

    #[test]
    fn any_bytes_decode_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decoded::<Message>(&bytes);
        let _ = decoded::<SessionHead>(&bytes);
        let _ = decoded::<WireTemplate>(&bytes);
    }

    #[test]
    fn a_truncated_value_is_an_error(text in any::<String>(), at in any::<prop::sample::Index>()) {
        let bytes = encoded(&Message::from_text(Role::User, &text));
        prop_assert!(decoded::<Message>(&bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn a_flipped_bit_never_panics(text in any::<String>(), at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let mut bytes = encoded(&Message::from_text(Role::User, &text));
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let _ = decoded::<Message>(&bytes);
    }
}

/// The example in docs/storage.md.
#[test]
fn r67_a_message_is_encoded_as_documented() {
    let message = Message {
        id: "m1".into(),
        seq: 4,
        turn: 1,
        created_at: 1_700_000_000_000,
        dialect: Some(crate::message::Dialect::OpenAiChat),
        ..Message::from_text(Role::User, "Hi")
    };
    let hex: String = encoded(&message).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "a800626d3101040201030204 81a10082006422486922 051b0000018bcfe56800 0800 0c00".replace(' ', ""));
}

#[test]
fn a_declared_length_beyond_the_record_is_not_preallocated() {
    // A log record whose list of entries claims 2^60 items, and has none.
    let mut bytes = vec![0xa1, 0x04, 0x9b];
    bytes.extend_from_slice(&(1_u64 << 60).to_be_bytes());
    assert!(decoded::<crate::history::LogRecord>(&bytes).is_err());
}

fn read_text(stored: &[u8]) -> Result<(ByteString, usize), Error> {
    let record = Bytes::copy_from_slice(stored);
    let mut from = Decoder::new(&record);
    let text = RecordSource::new(record.clone()).read_text(&mut from)?;
    let range = record.as_ptr_range();
    assert!(text.is_empty() || range.contains(&text.as_ptr()), "a text is a slice of its record");
    Ok((text, from.position()))
}

#[test]
fn a_text_of_any_length_is_read_as_a_slice() {
    for length in [0, 1, 23, 24, 255, 256, 65_535, 65_536] {
        let text = "x".repeat(length);
        let stored = minicbor::to_vec(&text).unwrap();
        assert_eq!(read_text(&stored).unwrap(), (text.into(), stored.len()));
    }
    assert_eq!(read_text(&[0x7b, 0, 0, 0, 0, 0, 0, 0, 1, b'x']).unwrap().0, "x");
}

#[test]
fn r62_what_is_no_text_is_an_error() {
    let too_long = [0x7b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, b'x'];
    for stored in [
        &[][..],
        &[0x61],
        &[0x78],
        &[0x79, 0],
        &[0x62, b'x'],
        &[0x61, 0xff],
        &[0x7f, 0x61, b'x', 0xff],
        &[0x41, b'x'],
        &too_long,
    ] {
        assert!(read_text(stored).is_err(), "{stored:?}");
    }
}
