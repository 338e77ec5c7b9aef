//! Streams and whole responses: recorded ones in every split, the quirks one by one, and bytes nobody sent.

mod anthropic;
mod gemini;
mod mistral;
mod openai_chat;
mod openai_responses;
mod recorded;
mod reference;

use proptest::prelude::*;
use rethread::message::Dialect;
use rethread::provider::{AnswerStatus, Assembled, StreamAssembler, StreamEvent, read_response};
use std::collections::BTreeMap;

/// Gives each line the framing of an event.
fn frame(lines: &[impl AsRef<str>]) -> String {
    lines.iter().map(|line| format!("data: {}\n\n", line.as_ref())).collect()
}

/// Assembles a stream that is whole in one push, and again byte by byte.
fn assemble(dialect: Dialect, bytes: &str) -> (Assembled, Vec<StreamEvent>) {
    let run = |size: usize| {
        let (mut assembler, mut events) = (StreamAssembler::new(dialect), Vec::new());
        bytes.as_bytes().chunks(size).for_each(|piece| assembler.push(piece, &mut events));
        (assembler.finish(), events)
    };
    let whole = run(bytes.len().max(1));
    assert_eq!(run(1), whole);
    whole
}

/// What the events add up to.
#[derive(Default)]
struct Told {
    text: String,
    reasoning: String,
    started: BTreeMap<u32, (String, String)>,
    arguments: BTreeMap<u32, String>,
    ready: Vec<u32>,
}

fn events_of(events: &[StreamEvent]) -> Told {
    let mut told = Told::default();
    for event in events {
        match event {
            StreamEvent::TextDelta(text) => told.text += &text.decode(),
            StreamEvent::ReasoningDelta(text) => told.reasoning += &text.decode(),
            StreamEvent::CallStarted { index, call_id, name } => {
                told.started.insert(*index, (call_id.clone(), name.clone()));
            }
            StreamEvent::ArgumentsDelta { index, json, .. } => {
                *told.arguments.entry(*index).or_default() += &json.decode()
            }
            StreamEvent::CallReady { index, call } => {
                assert!(!call.executable, "only the end says that a call may run");
                told.ready.push(*index);
            }
            _ => {}
        }
    }
    told
}

/// A call as id, name, arguments and whether it may run.
fn calls_of(assembled: &Assembled) -> Vec<(&str, &str, String, bool)> {
    let call = |call| -> (&str, &str, String, bool) {
        let call: &rethread::provider::AssembledCall = call;
        (&call.call_id, &call.name, call.arguments.decode().into_owned(), call.executable)
    };
    assembled.calls.iter().map(call).collect()
}

fn wire_of(assembled: &Assembled) -> &str {
    assembled.wire.as_ref().map_or("", |wire| wire.as_str())
}

#[test]
fn invalid_and_empty_streams() {
    for dialect in Dialect::ALL {
        for body in [
            "",
            " ",
            "<html>",
            "{",
            "[]",
            "7",
            "null",
            "{}",
            "{\"a\":1}",
            "\u{feff}",
            "{\"choices\":[]}",
            "{\"content\":7",
        ] {
            let read = read_response(dialect, body.as_bytes());
            assert_eq!(read.status, AnswerStatus::Failed, "{body:?}");
            assert!(!read.error.unwrap().message.is_empty() && read.wire.is_none());
        }
        for stream in ["", "\n\n", ": comment\n\n", "data: [DONE]\n\n", "data:\n\n", "event: ping\n\n", "\u{feff}"] {
            let (got, events) = assemble(dialect, stream);
            assert_eq!((got.status, got.wire, events.len()), (AnswerStatus::Truncated, None, 0), "{stream:?}");
        }
        let (got, events) = assemble(dialect, "data: upstream gone\n\n");
        assert_eq!((got.status, events.len()), (AnswerStatus::Failed, 1));
        assert!(got.error.unwrap().message.contains("upstream gone"));
    }
}

/// Pieces of streams of all dialects, good and bad.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        r#"{"id":"c","choices":[{"index":0,"delta":{"content":"h\u00e9 \ud83d"}}]}"#,
        r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"text":"t"}]},"x",{"type":"q"}],"refusal":"r"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"k\":"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"","function":{"arguments":"1}"}},{"function":{"arguments":{"x":1}}}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"r","reasoning_details":[{"type":"t","text":"r","index":0},7]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        r#"{"error":{"message":"no"}}"#,
        "[DONE]",
        r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"i","name":"n","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\": \"\ud800\"}"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"a":1}}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}"#,
        r#"{"type":"message_stop"}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"h\u00e9 \ud83d"}],"role":"model"}}],"usageMetadata":{"promptTokenCount":1}}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"t","thought":true},{"text":"\ude00","thoughtSignature":"x"},7]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[0]","stringValue":"\ud83d","willContinue":true}],"willContinue":true}}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"g","args":{"a":1}}}]},"finishReason":"STOP"}]}"#,
        "[",
        ",",
        "]",
        r#"{"type":"response.created","response":{"id":"r","store":false,"output":[]}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","role":"assistant","content":[]}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":""}}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"\ud83d"}"#,
        r#"{"type":"response.output_text.done","output_index":0,"content_index":1,"text":"h\u00e9"}"#,
        r#"{"type":"response.refusal.delta","output_index":7,"delta":"no"}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":2,"summary_index":0,"delta":"t"}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":""}]}}"#,
        r#"{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":1}}}"#,
        r#"{"type":"response.incomplete","response":{"output":[{"type":"message","content":"x"}]}}"#,
        "not json",
    ]);
    let framed = (known, prop::sample::select(vec!["\n\n", "\r\n\r\n", "\r\r", "\n", ""]))
        .prop_map(|(data, end)| format!("data: {data}{end}").into_bytes());
    prop_oneof![8 => framed, 1 => prop::collection::vec(any::<u8>(), 0..12)]
}

proptest! {
    #[test]
    fn r44_no_stream_causes_a_panic(body in prop::collection::vec(any::<u8>(), 0..400)) {
        for dialect in Dialect::ALL {
            let _ = read_response(dialect, &body);
            let mut assembler = StreamAssembler::new(dialect);
            assembler.push(&body, &mut Vec::new());
            let _ = (assembler.partial(), assembler.finish());
        }
    }

    #[test]
    fn r44_fragments_of_any_text_give_the_same_message(
        fragments in prop::collection::vec(r#"[a-z"\\{}\u{1}é]{0,5}"#, 1..12),
        end in prop::sample::select(vec!["}}]}", "},\"finish_reason\":\"stop\"}]}", "},\"index\":0}]}"]),
    ) {
        // Fragments as they are, so that a quote or a backslash breaks the event.
        let text = (r#"{"choices":[{"delta":{"content":""#, format!("\"{end}"));
        let call = (r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""#, format!("\"}}}}]{end}"));
        let more = (call.0.replace(r#""name":"f","#, ""), call.1.clone());
        for (starts, ends) in [(text.0, &text.1), (call.0, &call.1), (&more.0, &more.1)] {
            let lines: Vec<String> = fragments.iter().map(|fragment| format!("{starts}{fragment}{ends}")).collect();
            let apart: Vec<&str> = lines.iter().flat_map(|line| [line.as_str(), "{}"]).collect();
            prop_assert_eq!(assemble(Dialect::OpenAiChat, &frame(&lines)), assemble(Dialect::OpenAiChat, &frame(&apart)));
        }
    }

    #[test]
    fn r44_any_split_of_any_stream_gives_the_same_message(
        parts in prop::collection::vec(pieces(), 0..14),
        cuts in prop::collection::vec(1_usize..40, 1..60),
        plain in any::<bool>(),
    ) {
        let mut bytes = parts.concat();
        if plain {
            bytes = String::from_utf8_lossy(&bytes).replace("data: ", "").into_bytes();
        }
        for dialect in Dialect::ALL {
            let (mut whole, mut told) = (StreamAssembler::new(dialect), Vec::new());
            whole.push(&bytes, &mut told);
            let (mut split, mut told_split) = (StreamAssembler::new(dialect), Vec::new());
            let mut rest = bytes.as_slice();
            for cut in cuts.iter().cycle() {
                let (piece, tail) = rest.split_at((*cut).min(rest.len()));
                split.push(piece, &mut told_split);
                rest = tail;
                if rest.is_empty() {
                    break;
                }
            }
            let (whole, split) = (whole.finish(), split.finish());
            prop_assert_eq!(&whole, &split);
            prop_assert_eq!(&told, &told_split);
            // A half that another half of its kind follows is alone for good: only a pair may not be parted.
            let texts: Vec<_> = told.iter().filter_map(|event| if let StreamEvent::TextDelta(text) = event { Some(text.inside()) } else { None }).collect();
            for pair in texts.windows(2) {
                prop_assert!(!(pair[0].ends_with("\\ud83d") && pair[1].starts_with("\\ude00")));
            }
            if let Some(wire) = &whole.wire {
                prop_assert!(rethread::json::check(wire.as_str()).is_ok());
            }
            prop_assert!(whole.status == AnswerStatus::Complete || whole.calls.iter().all(|call| !call.executable));
        }
    }
}
