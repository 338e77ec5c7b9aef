//! Streams, in any split.

use super::drawn;
use rethread::message::Dialect;
use rethread::provider::{AnswerStatus, Assembled, StreamAssembler, StreamEvent, read_response};

/// Any split of a stream is the stream, and a call of a response that was cut may not run.
pub fn stream(data: &[u8]) {
    let [head, low, high, bytes @ ..] = data else { return };
    let dialect = drawn(*head);
    let mut whole = StreamAssembler::new(dialect);
    let mut told = Vec::new();
    whole.push(bytes, &mut told);
    let whole = whole.finish();
    held(&whole);

    let mut split = StreamAssembler::new(dialect);
    let mut told_split = Vec::new();
    let mut rest = bytes;
    let mut size = u32::from(u16::from_le_bytes([*low, *high]));
    while !rest.is_empty() {
        // Some pieces are empty.
        size = size.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let (piece, tail) = rest.split_at(((size >> 16) as usize % 23).min(rest.len()));
        split.push(piece, &mut told_split);
        held(&split.partial());
        rest = tail;
    }
    assert_eq!(told, told_split, "the split changed the events");
    assert_eq!(whole, split.finish(), "the split changed the answer");
    added_up(dialect, &told, &whole);
    held(&read_response(dialect, bytes));
}

fn held(answer: &Assembled) {
    if let Some(wire) = &answer.wire {
        assert!(rethread::json::check(wire.as_str()).is_ok(), "no JSON: {}", wire.as_str());
    }
    assert!(answer.status == AnswerStatus::Complete || answer.calls.iter().all(|call| !call.executable), "{answer:?}");
    assert_eq!(answer.status == AnswerStatus::Failed, answer.error.is_some(), "{answer:?}");
}

/// What was told is in the answer: every call, and no more text than there is (blocks may come in turns, so its order
/// may be another). No pair of surrogates is parted.
fn added_up(dialect: Dialect, told: &[StreamEvent], answer: &Assembled) {
    let mut text = String::new();
    for event in told {
        match event {
            StreamEvent::TextDelta(piece) => {
                let parted = text.ends_with("\\ud83d") && piece.inside().starts_with("\\ude00");
                assert!(!parted, "a pair was parted");
                text += piece.inside();
            }
            StreamEvent::CallReady { index, call } => {
                assert!(!call.executable, "only the end says that a call may run");
                assert!(answer.calls.len() > *index as usize, "a call is gone: {answer:?}");
            }
            _ => {}
        }
    }
    let answered = answer.text.inside();
    // In Responses the last word of an item is its `done`, and it may take back what deltas said.
    assert!(
        dialect == Dialect::OpenAiResponses || answered.len() >= text.len(),
        "told {text:?}, answered {answered:?}"
    );
}
