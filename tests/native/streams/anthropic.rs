//! The quirks of Anthropic streams, one by one.

use crate::streams::{assemble, calls_of, events_of, frame, wire_of};
use rethread::message::Dialect;
use rethread::provider::{
    AnswerStatus, Assembled, InputTransformation, StreamEvent, TransformationEffect, TransformedPlace, read_response,
};

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn ended(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":9}}}}"#
    )
}

/// A block with its deltas.
fn block(index: usize, start: &str, deltas: &[&str]) -> Vec<String> {
    let mut lines = vec![format!(r#"{{"type":"content_block_start","index":{index},"content_block":{start}}}"#)];
    lines.extend(
        deltas.iter().map(|delta| format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)),
    );
    lines.push(format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
    lines
}

fn text(index: usize, text: &str) -> Vec<String> {
    block(index, r#"{"type":"text","text":""}"#, &[&format!(r#"{{"type":"text_delta","text":"{text}"}}"#)])
}

fn tool(index: usize, pieces: &[&str]) -> Vec<String> {
    let deltas: Vec<String> =
        pieces.iter().map(|piece| format!(r#"{{"type":"input_json_delta","partial_json":"{piece}"}}"#)).collect();
    let start = format!(r#"{{"type":"tool_use","id":"toolu_{index}","name":"f","input":{{}}}}"#);
    block(index, &start, &deltas.iter().map(String::as_str).collect::<Vec<_>>())
}

fn stream(blocks: &[Vec<String>], reason: &str) -> String {
    let mut lines = vec![START.to_owned()];
    lines.extend(blocks.concat());
    lines.extend([ended(reason), STOP.to_owned()]);
    frame(&lines)
}

fn message(blocks: &[Vec<String>], reason: &str) -> Assembled {
    assemble(Dialect::Anthropic, &stream(blocks, reason)).0
}

fn content(blocks: &str) -> String {
    format!(r#"{{"role":"assistant","content":[{blocks}]}}"#)
}

#[test]
fn case57_interleaved_blocks_stay_separate() {
    let (one, two) = (tool(0, &[r#"{\"a\":"#, "1}"]), tool(1, &[r#"{\"b\":"#, "2}"]));
    let woven: Vec<String> = one.iter().zip(&two).flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
    let got = message(&[woven], "tool_use");
    assert_eq!(
        calls_of(&got),
        [("toolu_0", "f", r#"{"a":1}"#.to_owned(), true), ("toolu_1", "f", r#"{"b":2}"#.to_owned(), true)]
    );
}

#[test]
fn case65_a_stream_without_its_end_runs_nothing() {
    let whole = stream(&[text(0, "so far"), tool(1, &["{}"]), tool(2, &[r#"{\"a\":"#, "1}"])], "tool_use");
    for at in (0..whole.rfind("message_stop").unwrap()).filter(|at| whole.is_char_boundary(*at)) {
        let got = assemble_once(&whole[..at]);
        assert_eq!(got.status, AnswerStatus::Truncated, "cut at {at}");
        assert!(got.calls.iter().all(|call| !call.executable) && !wire_of(&got).contains("tool_use"), "cut at {at}");
    }
    let got = assemble_once(&whole[..whole.rfind("event").unwrap_or(whole.len() - 40)]);
    assert_eq!(wire_of(&got), content(r#"{"type":"text","text":"so far"}"#));
}

fn assemble_once(bytes: &str) -> Assembled {
    let mut assembler = rethread::provider::StreamAssembler::new(Dialect::Anthropic);
    assembler.push(bytes.as_bytes(), &mut Vec::new());
    assembler.finish()
}

#[test]
fn case66_an_error_after_text_is_fatal() {
    let mut lines = vec![START.to_owned()];
    lines.extend(text(0, "so far"));
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let (got, events) = assemble(Dialect::Anthropic, &(frame(&lines) + error + &frame(&[&ended("end_turn"), STOP])));
    assert_eq!((got.status, got.text.decode().as_ref()), (AnswerStatus::Failed, "so far"));
    let words = got.error.unwrap();
    assert_eq!((words.code.as_deref(), words.message.as_str()), (Some("overloaded_error"), "Overloaded"));
    assert!(matches!(events.last(), Some(StreamEvent::Error(error)) if *error == words));
}

#[test]
fn case67_a_truncated_response_runs_nothing() {
    for (reason, status) in [
        ("max_tokens", AnswerStatus::Incomplete),
        ("model_context_window_exceeded", AnswerStatus::Incomplete),
        ("pause_turn", AnswerStatus::Incomplete),
        ("compaction", AnswerStatus::Incomplete),
        ("refusal", AnswerStatus::Refused),
    ] {
        let got = message(&[text(0, "a"), tool(1, &["{}"]), tool(2, &[r#"{\"a\":"#])], reason);
        assert_eq!((got.status, got.finish_reason.as_deref()), (status, Some(reason)));
        assert!(got.calls.len() == 2 && got.calls.iter().all(|call| !call.executable));
        assert_eq!(wire_of(&got), content(r#"{"type":"text","text":"a"}"#));
    }
}

#[test]
fn case68_calls_run_whatever_the_stop_reason() {
    for reason in ["end_turn", "tool_use", "stop_sequence", "a_new_reason"] {
        let got = message(&[tool(0, &[r#"{\"a\": 1}"#])], reason);
        assert_eq!(
            (got.status, calls_of(&got)),
            (AnswerStatus::Complete, vec![("toolu_0", "f", r#"{"a": 1}"#.to_owned(), true)])
        );
    }
}

#[test]
fn case69_a_call_without_fragments_has_an_empty_object() {
    for pieces in [&[][..], &[""], &["", ""], &[" "]] {
        let got = message(&[tool(0, pieces)], "tool_use");
        assert_eq!(calls_of(&got), [("toolu_0", "f", "{}".to_owned(), true)]);
        assert_eq!(wire_of(&got), content(r#"{"type":"tool_use","id":"toolu_0","name":"f","input":{}}"#));
    }
}

#[test]
fn case70_pings_comments_and_unknown_events_are_ignored() {
    let noise = "event: ping\ndata: {\"type\":\"ping\"}\n\n: hi\n\ndata: {\"type\":\"new_thing\",\"index\":0}\n\n";
    let lines = frame(&[START]) + noise + &frame(&text(0, "hi")) + noise + &frame(&[&ended("end_turn"), STOP]) + noise;
    let got = assemble(Dialect::Anthropic, &lines).0;
    assert_eq!((got.status, wire_of(&got)), (AnswerStatus::Complete, &*content(r#"{"type":"text","text":"hi"}"#)));
    assert_eq!(got, message(&[text(0, "hi")], "end_turn"));
}

#[test]
fn case71_thinking_and_its_signature_form_one_block() {
    let thinking = block(
        0,
        r#"{"type":"thinking","thinking":"","signature":""}"#,
        &[
            r#"{"type":"thinking_delta","thinking":"Let \u00e9"}"#,
            r#"{"type":"thinking_delta","thinking":" me"}"#,
            r#"{"type":"signature_delta","signature":"EqQB+/=="}"#,
        ],
    );
    let redacted = block(1, r#"{"type":"redacted_thinking","data":"abc"}"#, &[]);
    let (got, events) = assemble(Dialect::Anthropic, &stream(&[thinking, redacted, tool(2, &["{}"])], "tool_use"));
    assert_eq!(
        wire_of(&got),
        content(concat!(
            r#"{"type":"thinking","thinking":"Let \u00e9 me","signature":"EqQB+/=="},{"type":"redacted_thinking","data":"abc"},"#,
            r#"{"type":"tool_use","id":"toolu_2","name":"f","input":{}}"#
        ))
    );
    assert_eq!(events.iter().filter(|event| matches!(event, StreamEvent::ReasoningDelta(_))).count(), 2);
    assert_eq!(events_of(&events).started[&0], ("toolu_2".to_owned(), "f".to_owned()));
    assert_eq!(events_of(&events).ready, [0]);
    assert!(got.text.is_empty());
}

#[test]
fn case72_usage_is_merged_and_never_summed() {
    let second = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":11,"output_tokens":12,"output_tokens_details":{"thinking_tokens":3}}}"#;
    let lines: Vec<String> = [START.to_owned(), ended("end_turn"), second.to_owned(), STOP.to_owned()].into();
    let usage = assemble(Dialect::Anthropic, &frame(&lines)).0.usage.unwrap();
    assert_eq!((usage.input, usage.output), (11 + 5 + 2, 12));
    assert_eq!((usage.cached_input, usage.cache_write, usage.reasoning), (Some(5), Some(2), Some(3)));
}

#[test]
fn case79_blocks_that_the_api_rejects_in_a_request_are_omitted() {
    let empty = block(0, r#"{"type":"text","text":"","citations":[]}"#, &[]);
    let got = message(&[empty, tool(1, &["{}"])], "tool_use");
    assert_eq!(wire_of(&got), content(r#"{"type":"tool_use","id":"toolu_1","name":"f","input":{}}"#));
    let thinking = block(
        0,
        r#"{"type":"thinking","thinking":"","signature":""}"#,
        &[r#"{"type":"thinking_delta","thinking":"x"}"#],
    );
    let open = frame(&[START]) + &frame(&thinking[..2]);
    assert_eq!(assemble(Dialect::Anthropic, &open).0.wire, None, "thinking that was cut before its signature");
    // A text is a block of its own again.
    let got = message(&[text(0, "a"), tool(1, &["{}"]), text(2, "b")], "tool_use");
    assert_eq!(got.text.decode(), "ab");
}

#[test]
fn r44_unknown_blocks_return_unchanged() {
    let server = block(
        0,
        r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{},"caller":{"type":"direct"}}"#,
        &[
            r#"{"type":"input_json_delta","partial_json":""}"#,
            r#"{"type":"input_json_delta","partial_json":"{\"query\": \"x\"}"}"#,
        ],
    );
    let result = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[ {"n":1.0}]}"#;
    let compaction =
        block(2, r#"{"type":"compaction","content":null}"#, &[r#"{"type":"compaction_delta","content":"sum"}"#]);
    let cited = block(
        3,
        r#"{"citations":[],"type":"text","text":""}"#,
        &[
            r#"{"type":"citations_delta","citation":{"type":"web","n":1}}"#,
            r#"{"type":"text_delta","text":"hi"}"#,
            r#"{"type":"citations_delta","citation":{"type":"web","n":2}}"#,
        ],
    );
    let got = message(&[server, block(1, result, &[]), compaction, cited], "end_turn");
    assert_eq!(
        wire_of(&got),
        content(&[
            r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "x"},"caller":{"type":"direct"}}"#,
            result,
            r#"{"type":"compaction","content":"sum"}"#,
            r#"{"citations":[{"type":"web","n":1},{"type":"web","n":2}],"type":"text","text":"hi"}"#,
        ]
        .join(","))
    );
    assert_eq!(got.calls, []);
}

#[test]
fn r44_a_call_whose_arguments_are_not_an_object_does_not_run() {
    for broken in [r#"{\"a\":"#, "[1]", "7", "nonsense"] {
        let got = message(&[text(0, "a"), tool(1, &[broken]), tool(2, &["{}"])], "tool_use");
        assert_eq!(got.status, AnswerStatus::Complete);
        assert_eq!(calls_of(&got).iter().map(|call| call.3).collect::<Vec<_>>(), [false, true], "{broken}");
        assert!(!wire_of(&got).contains("toolu_1"));
        assert_eq!(calls_of(&got)[0].2, broken.replace('\\', ""));
    }
}

#[test]
fn r44_a_second_message_start_is_tolerated() {
    let lines = stream(&[text(0, "hi")], "end_turn");
    assert_eq!(assemble(Dialect::Anthropic, &(frame(&[START]) + &lines)).0, message(&[text(0, "hi")], "end_turn"));
    // A block that nobody opened, and one that nobody closed.
    let delta = &text(0, "hi")[1];
    let got = assemble(Dialect::Anthropic, &frame(&[START, delta, &ended("end_turn"), STOP])).0;
    assert_eq!(got, message(&[text(0, "hi")], "end_turn"));
    let open = &tool(0, &[r#"{\"a\":1}"#])[..2];
    let got = assemble(Dialect::Anthropic, &frame(&[START, &open[0], &open[1], &ended("tool_use"), STOP])).0;
    assert_eq!(calls_of(&got), [("toolu_0", "f", r#"{"a":1}"#.to_owned(), true)]);
}

#[test]
fn r45_input_keeps_every_character() {
    // As the model wrote it: a number that no double holds, a key twice, an escape, a lone surrogate as an escape of
    // the JSON inside, one of the string around it, and a pair that is cut in two.
    let pieces = [
        r#"{\"n\":123456789012345678901234567890, \"n\": 1.00e+5,"#,
        r#"\"s\":\"\\ud800 \\u00e9 \ud83d"#,
        r#"\ude00 \ud801 \\\\ud802\"}"#,
    ];
    let got = message(&[tool(0, &pieces)], "tool_use");
    let expected = r#"{"n":123456789012345678901234567890, "n": 1.00e+5,"s":"\ud800 \u00e9 😀 \ud801 \\ud802"}"#;
    assert_eq!(calls_of(&got), [("toolu_0", "f", expected.to_owned(), true)]);
    assert_eq!(
        wire_of(&got),
        content(&format!(r#"{{"type":"tool_use","id":"toolu_0","name":"f","input":{expected}}}"#))
    );
}

#[test]
fn r20_a_whole_and_a_streamed_answer_give_the_same_message() {
    let streamed = message(&[text(0, "hi"), tool(1, &[r#"{\"a\": 1.0}"#])], "tool_use");
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi","citations":null},
        {"type":"tool_use","id":"toolu_1","name":"f","input":{"a": 1.0}}],"stop_reason":"tool_use","stop_sequence":null,
        "usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":9}}"#;
    assert_eq!(read_response(Dialect::Anthropic, body.as_bytes()), streamed);
    assert_eq!(assemble(Dialect::Anthropic, body).0, streamed);
    let one_event = format!("event: message\ndata: {}\n\n", body.replace('\n', ""));
    assert_eq!(assemble(Dialect::Anthropic, &one_event).0, streamed);
    assert_eq!(
        read_response(
            Dialect::Anthropic,
            stream(&[text(0, "hi"), tool(1, &[r#"{\"a\": 1.0}"#])], "tool_use").as_bytes()
        ),
        streamed
    );
}

#[test]
fn r20_failures_quote_the_provider() {
    let body = r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages: no"},"request_id":"r"}"#;
    for got in [read_response(Dialect::Anthropic, body.as_bytes()), assemble(Dialect::Anthropic, body).0] {
        let error = got.error.unwrap();
        assert_eq!((got.status, error.code.as_deref()), (AnswerStatus::Failed, Some("invalid_request_error")));
        assert_eq!(error.message, "messages: no");
    }
    assert_eq!(read_response(Dialect::Anthropic, br#"{"message":"no auth"}"#).error.unwrap().message, "no auth");
    assert_eq!(read_response(Dialect::Anthropic, br#"{"id":"x"}"#).error.unwrap().code.as_deref(), Some("malformed"));
}

const SEARCH: &str = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}"#;
const FOUND: &str = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#;

#[test]
fn r43_only_thinking_and_signature_deltas_extend_a_thinking_block() {
    for count in ["50", "null"] {
        let thought = block(
            0,
            r#"{"type":"thinking","thinking":"","signature":""}"#,
            &[
                &format!(r#"{{"type":"thinking_delta","thinking":"h","estimated_tokens":{count}}}"#),
                &format!(r#"{{"type":"thinking_delta","thinking":"m","estimated_tokens":{count}}}"#),
                r#"{"type":"signature_delta","signature":"Eq=="}"#,
            ],
        );
        let got = message(&[thought, text(1, "x")], "end_turn");
        let want = r#"{"type":"thinking","thinking":"hm","signature":"Eq=="},{"type":"text","text":"x"}"#;
        assert_eq!(wire_of(&got), content(want));
    }
}

#[test]
fn r44_calls_before_a_fallback_are_neither_run_nor_sent() {
    let thought = |index, signature: &str| {
        let end = format!(r#"{{"type":"signature_delta","signature":"{signature}"}}"#);
        block(index, r#"{"type":"thinking","thinking":"","signature":""}"#, &[&end])
    };
    let fallback = r#"{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}}"#;
    let open = SEARCH.replace("_1", "_2");
    let blocks = [
        thought(0, "s0"),
        block(1, r#"{"type":"redacted_thinking","data":"d"}"#, &[]),
        text(2, "so far"),
        block(3, SEARCH, &[]),
        block(4, FOUND, &[]),
        block(5, &open, &[]),
        tool(6, &["{}"]),
        block(7, fallback, &[]),
        thought(8, "s1"),
        tool(9, &["{}"]),
    ];
    let got = message(&blocks, "tool_use");
    assert_eq!(calls_of(&got), [("toolu_9", "f", "{}".to_owned(), true)]);
    let kept = format!(
        r#"{{"type":"text","text":"so far"}},{SEARCH},{FOUND},{fallback},{{"type":"thinking","thinking":"","signature":"s1"}},{{"type":"tool_use","id":"toolu_9","name":"f","input":{{}}}}"#
    );
    assert_eq!(wire_of(&got), content(&kept));
}

#[test]
fn r44_an_open_server_call_is_kept_if_the_turn_is_paused() {
    let blocks = [text(0, "I look."), block(1, SEARCH, &[])];
    let (said, asked) =
        (r#"{"type":"text","text":"I look."}"#, format!(r#"{{"type":"text","text":"I look."}},{SEARCH}"#));
    for reason in ["tool_use", "end_turn", "pause_turn"] {
        assert_eq!(wire_of(&message(&blocks, reason)), content(&asked), "{reason}");
    }
    for reason in ["max_tokens", "refusal"] {
        assert_eq!(wire_of(&message(&blocks, reason)), content(said), "{reason}");
    }
    let answered = [&blocks[..], &[block(2, FOUND, &[])]].concat();
    assert_eq!(wire_of(&message(&answered, "max_tokens")), content(&format!("{asked},{FOUND}")));
    // Cut between the two.
    let whole = stream(&answered, "end_turn");
    let got = assemble_once(&whole[..whole.find("web_search_tool_result").unwrap()]);
    assert_eq!((got.status, wire_of(&got).to_owned()), (AnswerStatus::Truncated, content(said)));
}

#[test]
fn r44_an_answer_of_white_space_is_empty() {
    let got = message(&[text(0, "\\n\\n")], "end_turn");
    assert_eq!((got.status, got.text.decode().as_ref(), got.wire), (AnswerStatus::Complete, "\n\n", None));
    let got = message(&[block(0, SEARCH, &[]), block(1, FOUND, &[]), text(2, " ")], "end_turn");
    assert_eq!(wire_of(&got), content(&format!("{SEARCH},{FOUND}")));
    for blocks in [[text(0, " "), text(1, "x")], [text(0, " "), tool(1, &["{}"])]] {
        assert!(wire_of(&message(&blocks, "tool_use")).contains(r#""text":" ""#));
    }
}

#[test]
fn r70_what_became_of_thinking_in_the_request_is_read() {
    let listed = r#""input_transformations":[
        {"type":"thinking_dropped","path":"messages.1.content.0","reason":"prefix_binding_mismatch"},
        {"type":"thinking_mismatch_allowed","path":"messages.3.content.1","reason":"model_binding_mismatch"},
        {"type":"something_new","path":"messages.5.content.0","reason":"none"}]"#;
    let transformation = |path: &str, reason: &str, effect| InputTransformation {
        place: TransformedPlace::Path(path.into()),
        reason: reason.into(),
        effect,
    };
    let expected = [
        transformation("/messages/1/content/0", "prefix_binding_mismatch", TransformationEffect::Dropped),
        transformation("/messages/3/content/1", "model_binding_mismatch", TransformationEffect::Kept),
    ];
    let whole = format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"text","text":"Hi"}}],"stop_reason":"end_turn",{listed}}}"#
    );
    assert_eq!(read_response(Dialect::Anthropic, whole.as_bytes()).transformations, expected);
    let start = START.replace(r#""content":[],"#, &format!(r#""content":[],{},"#, listed.replace('\n', "")));
    let mut lines = vec![start.clone()];
    lines.extend([text(0, "Hi"), vec![ended("end_turn"), STOP.to_owned()]].concat());
    assert_eq!(assemble(Dialect::Anthropic, &frame(&lines)).0.transformations, expected);
    // Another model went on with the answer: its list replaces the first one.
    let other = ended("end_turn").replace(r#","usage""#, r#","input_transformations":[],"usage""#);
    let mut lines = vec![start];
    lines.extend([text(0, "Hi"), vec![other, STOP.to_owned()]].concat());
    assert_eq!(assemble(Dialect::Anthropic, &frame(&lines)).0.transformations, []);
}
