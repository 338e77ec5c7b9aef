//! Cases 69 to 79: what single providers do in their streams, and what was assembled as the next request's history.

use crate::wire_cases::streams::{
    Answer, assembled, calls_of, event, framed, lines, ready, two_calls, typed, words_only,
};
use crate::wire_cases::*;
use rethread::provider::{AnswerStatus, StreamAssembler, read_response};
use serde_json::json;

fn claude_stream(blocks: &[&str], ends: &[&str]) -> rethread::provider::Assembled {
    let start = r#"{"type":"message_start","message":{"id":"r1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":7,"output_tokens":1}}}"#;
    let all: Vec<&str> = std::iter::once(start)
        .chain(blocks.iter().copied())
        .chain(ends.iter().copied())
        .chain([r#"{"type":"message_stop"}"#])
        .collect();
    lines(CLAUDE, &all)
}

const TOOL_USE: &str = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}"#;
const END_TURN: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}"#;

#[test]
fn wf_69_empty_argument_fragments_become_an_empty_object() {
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#;
    let empty = r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}"#;
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    for blocks in [vec![start, empty, stop], vec![start, stop], vec![start, empty, empty, stop]] {
        let got = claude_stream(&blocks, &[TOOL_USE]);
        assert_eq!(calls_of(&got), [ready("a", "{}")]);
        assert!(got.wire.unwrap().as_str().contains(r#""input":{}"#));
    }
    // Nothing written is no arguments in the other dialects, too.
    for dialect in ALL {
        for pieces in [vec![], vec![""]] {
            if dialect == GEMINI {
                continue;
            }
            let answer = Answer { text: vec![], calls: vec![("a11111111", pieces)] };
            let got = assembled(dialect, &answer.stream(dialect, None).events);
            // What a model wrote is kept; where it wrote nothing it reads as no arguments.
            let written = got.calls[0].arguments.decode().into_owned();
            assert!(matches!(&*written, "" | "{}") && got.calls[0].executable, "{dialect:?} {:?}", got.calls);
            let wire = got.wire.unwrap();
            let wire =
                if wire.as_str().starts_with('[') { wire.as_str().to_owned() } else { format!("[{}]", wire.as_str()) };
            let mut stored = Stored::new();
            stored.append(dialect, &wire);
            assert!(stored.bytes(CLAUDE).0.contains(r#""name":"f","input":{}"#), "{dialect:?}");
        }
    }
    let got = lines(
        GEMINI,
        &[
            r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"a","name":"f"}}]},"finishReason":"STOP"}]}"#,
        ],
    );
    assert_eq!(calls_of(&got), [ready("a", "{}")]);
}

#[test]
fn wf_70_pings_comments_and_unknown_events_are_ignored() {
    for dialect in ALL {
        let events = two_calls().stream(dialect, None).events;
        let plain = assembled(dialect, &events);
        let strange = match dialect {
            CHAT | MISTRAL => vec![r#"{"object":"ping"}"#, r#"{"x":[1]}"#],
            Dialect::Gemini => vec![r#"{"createTime":"2026-01-01"}"#, r#"{"x":[1]}"#],
            _ => vec![r#"{"type":"ping"}"#, r#"{"type":"response.new_thing.delta","output_index":77,"delta":"x"}"#],
        };
        let mut bytes = String::from(": hello\n\n");
        for event in &events {
            bytes += &framed(std::slice::from_ref(event));
            bytes += ": keep-alive\n\n:\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\nid: 7\nretry: 100\n\n";
            if event.1 != "[DONE]" {
                for strange in &strange {
                    bytes += &format!("data: {strange}\n\n");
                }
            }
        }
        let mut assembler = StreamAssembler::new(dialect);
        assembler.push(bytes.as_bytes(), &mut Vec::new());
        assert_eq!(assembler.finish(), plain, "{dialect:?}");
    }
}

#[test]
fn wf_71_thinking_and_its_signature_form_one_block() {
    let got = claude_stream(
        &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"mm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"so"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
        ],
        &[END_TURN],
    );
    let wire: Value = serde_json::from_str(got.wire.unwrap().as_str()).unwrap();
    assert_eq!(
        wire["content"],
        json!([{ "type": "thinking", "thinking": "hmm", "signature": "c2ln" }, { "type": "text", "text": "so" }])
    );
    assert_eq!(got.text.decode(), "so");
    // Gemini signs a part: what follows is another one.
    let got = lines(
        GEMINI,
        &[
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"h","thought":true}]}}]}"#,
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"mm","thought":true}]}}]}"#,
            r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP"}]}"#,
        ],
    );
    let wire: Value = serde_json::from_str(got.wire.unwrap().as_str()).unwrap();
    let parts = wire["parts"].as_array().unwrap();
    assert_eq!(
        parts.last().unwrap(),
        &json!({ "functionCall": { "name": "f", "args": {} }, "thoughtSignature": "c2ln" })
    );
    assert!(got.text.is_empty());
}

#[test]
fn wf_72_usage_is_the_last_report_not_a_sum() {
    let got = claude_stream(
        &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"so"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
        ],
        &[r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":3}}"#, END_TURN],
    );
    assert_eq!(got.usage.map(|usage| (usage.input, usage.output)), Some((7, 5)));
    for dialect in [CHAT, MISTRAL] {
        let got = lines(
            dialect,
            &[
                r#"{"choices":[{"index":0,"delta":{"content":"so"}}],"usage":{"prompt_tokens":7,"completion_tokens":1}}"#,
                r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":5}}"#,
            ],
        );
        assert_eq!(got.usage.map(|usage| (usage.input, usage.output)), Some((7, 5)), "{dialect:?}");
    }
    let got = lines(
        GEMINI,
        &[
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"so"}]}}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1,"thoughtsTokenCount":2,"totalTokenCount":10}}"#,
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"!"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":12}}"#,
        ],
    );
    assert_eq!(got.usage.map(|usage| (usage.input, usage.output)), Some((7, 5)));
    let with = |output: u64| json!({ "id": "r", "status": "in_progress", "output": [], "usage": { "input_tokens": 7, "output_tokens": output } });
    let mut events = words_only().stream(RESPONSES, None).events;
    events.insert(0, typed(json!({ "type": "response.created", "response": with(1) })));
    assert_eq!(assembled(RESPONSES, &events).usage.map(|usage| (usage.input, usage.output)), Some((7, 5)));
}

#[test]
fn wf_73_gemini_calls_in_separate_chunks_are_separate_calls() {
    let call = |name: &str, n: u32| {
        event(
            json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "functionCall": { "name": name, "args": { "n": n } } }] } }] }),
        )
    };
    let end = event(
        json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "" }] }, "finishReason": "STOP" }] }),
    );
    let got = assembled(GEMINI, &[call("f", 1), call("f", 2), call("g", 1), call("f", 1), end]);
    let calls: Vec<_> = got
        .calls
        .iter()
        .map(|call| (call.name.as_str(), call.arguments.decode().into_owned(), call.executable))
        .collect();
    let of = |name: &'static str, n: u32| (name, format!("{{\"n\":{n}}}"), true);
    assert_eq!(calls, [of("f", 1), of("f", 2), of("g", 1), of("f", 1)]);
    let wire = got.wire.unwrap();
    assert_eq!(wire.as_str().matches("functionCall").count(), 4, "{}", wire.as_str());
}

#[test]
fn wf_74_a_blocked_prompt_gives_a_blocked_answer_without_a_message() {
    let body = r#"{"promptFeedback":{"blockReason":"SAFETY","safetyRatings":[]},"usageMetadata":{"promptTokenCount":7,"totalTokenCount":7},"modelVersion":"m"}"#;
    for got in [lines(GEMINI, &[body]), read_response(GEMINI, body.as_bytes())] {
        assert_eq!(got.status, AnswerStatus::Blocked);
        assert!(got.wire.is_none() && got.text.is_empty() && got.calls.is_empty());
        assert_eq!(got.usage.map(|usage| usage.input), Some(7));
    }
}

#[test]
fn wf_75_a_done_event_overrides_its_deltas() {
    let right = two_calls().stream(RESPONSES, None).events;
    let want = assembled(RESPONSES, &right);
    let broken = |kind: &str| {
        let mut events = right.clone();
        for (name, data) in events.iter_mut().filter(|(name, _)| name.ends_with(".delta") && name.contains(kind)) {
            let mut value: Value = serde_json::from_str(data).unwrap();
            value["delta"] = json!("WRONG");
            *data = value.to_string();
            assert!(!name.is_empty());
        }
        assembled(RESPONSES, &events)
    };
    for kind in ["output_text", "function_call_arguments"] {
        let got = broken(kind);
        assert_eq!((got.text.decode(), calls_of(&got)), (want.text.decode(), calls_of(&want)), "{kind}");
        assert_eq!(got.wire, want.wire, "{kind}");
    }
    // Where the last event brings no output, what was done before counts.
    let mut cut = right;
    cut.last_mut().unwrap().1 = r#"{"type":"response.completed","response":{"id":"r1","model":"m","status":"completed","output":[],"usage":{"input_tokens":7,"output_tokens":5}}}"#.into();
    let got = assembled(RESPONSES, &cut);
    assert_eq!((got.status, got.wire, calls_of(&want)), (AnswerStatus::Complete, want.wire.clone(), calls_of(&want)));
}

#[test]
fn wf_76_encrypted_content_is_taken_from_the_done_event() {
    let item =
        |content: Value| json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": content });
    for added in [json!("early"), Value::Null, json!("")] {
        for last in [true, false] {
            let mut events = words_only().stream(RESPONSES, None).events;
            for (_, data) in &mut events {
                *data = data.replace(r#""output_index":0"#, r#""output_index":1"#);
            }
            events.insert(
                1,
                typed(json!({ "type": "response.output_item.added", "output_index": 0, "item": item(added.clone()) })),
            );
            events.insert(
                2,
                typed(json!({ "type": "response.output_item.done", "output_index": 0, "item": item(json!("late")) })),
            );
            let end = events.last_mut().unwrap();
            let mut value: Value = serde_json::from_str(&end.1).unwrap();
            if last {
                value["response"]["output"].as_array_mut().unwrap().insert(0, item(json!("late")));
            } else {
                value["response"]["output"] = json!([]);
            }
            end.1 = value.to_string();
            let wire = assembled(RESPONSES, &events).wire.unwrap();
            assert!(wire.as_str().contains(r#""encrypted_content":"late""#), "{}", wire.as_str());
            assert!(!wire.as_str().contains("early"), "{}", wire.as_str());
        }
    }
}

#[test]
fn wf_77_an_incomplete_response_keeps_its_reason_and_usage() {
    for (reason, status) in [("max_output_tokens", AnswerStatus::Incomplete), ("content_filter", AnswerStatus::Blocked)]
    {
        let events = words_only().stream(RESPONSES, Some(reason)).events;
        let whole: Value = serde_json::from_str(&events.last().unwrap().1).unwrap();
        for got in [assembled(RESPONSES, &events), read_response(RESPONSES, whole["response"].to_string().as_bytes())] {
            assert_eq!(got.finish_reason.as_deref(), Some(reason));
            assert_eq!(got.status, status, "{reason}");
            assert_eq!(got.usage.map(|usage| (usage.input, usage.output)), Some((7, 5)));
            assert_eq!(got.text.decode(), "So it is.");
        }
    }
}

#[test]
fn wf_78_object_arguments_in_json_lines_are_complete() {
    // Ollama's own interface is none of the dialects; a gateway that speaks its manner of a chat stream is read.
    let body = concat!(
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"so"}}]}"#,
        "\n",
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"a11111111","function":{"name":"f","arguments":{"n":12345678901234567890,"n":1.0}}}]}}]}"#,
        "\n",
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        "\n",
    );
    for dialect in [CHAT, MISTRAL] {
        for size in [1, 7, body.len()] {
            let got = crate::wire_cases::streams::assemble(dialect, body.as_bytes(), size);
            assert_eq!(calls_of(&got), [ready("a11111111", r#"{"n":12345678901234567890,"n":1.0}"#)], "{dialect:?}");
            assert_eq!((got.status, &*got.text.decode()), (AnswerStatus::Complete, "so"));
        }
    }
}

#[test]
fn wf_79_an_assembled_answer_renders_to_valid_bodies_in_every_dialect() {
    let answers = [
        two_calls(),
        words_only(),
        Answer { text: vec![], calls: vec![("c11111111", vec!["{\"n\":[1]}"]), ("c22222222", vec![])] },
    ];
    for from in ALL {
        for answer in &answers {
            let mut events = answer.stream(from, None).events;
            if from == GEMINI {
                // It writes objects and nothing else.
                events.iter_mut().for_each(|(_, data)| *data = data.replace(r#""args":}"#, r#""args":{}}"#));
            }
            let got = assembled(from, &events);
            assert_eq!(got.status, AnswerStatus::Complete, "{from:?}");
            let wire = got.wire.unwrap();
            // As the next request has it: the user's words, what came, results in whatever order, the user again.
            let mut stored = Stored::new();
            stored.append(from, &write(from, "u q")[list_name(from)].to_string());
            let items = if wire.view().kind() == rethread::json::JsonKind::Array {
                wire.as_str().to_owned()
            } else {
                format!("[{}]", wire.as_str())
            };
            stored.append(from, &items);
            let results: Vec<String> =
                got.calls.iter().rev().map(|call| format!("{}=of-{}", call.call_id, call.call_id)).collect();
            if !results.is_empty() {
                stored.append(from, &write(from, &format!("r {}", results.join(" ")))[list_name(from)].to_string());
            }
            stored.append(from, &write(from, "u p")[list_name(from)].to_string());
            assert!(!has(&stored.report, &["malformed", "orphan_result"]), "{from:?} {:?}", stored.report);
            for to in ALL {
                let out = stored.body(to);
                let mut want = vec!["u q".to_owned()];
                if !answer.text.is_empty() {
                    want.push(format!("a {}", answer.said()));
                }
                want.extend((1..=answer.calls.len()).map(|at| format!("c {at}")));
                want.extend(answer.calls.iter().enumerate().map(|(at, (id, _))| format!("r {}=of-{id}", at + 1)));
                want.push("u p".into());
                assert_eq!(read(to, &out), want.join("; "), "{from:?} {to:?} {out}");
            }
        }
    }
}
