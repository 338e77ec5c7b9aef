//! Mistral's ways of streaming, one by one.

use crate::streams::{assemble, calls_of, frame, wire_of};
use rethread::message::{Dialect, Usage};
use rethread::provider::{AnswerStatus, Assembled, StreamEvent, read_response};

fn chunks(deltas: &[(&str, Option<&str>)]) -> String {
    let line = |(delta, reason): &(&str, Option<&str>)| {
        let reason = reason.map_or("null".to_owned(), |reason| format!("\"{reason}\""));
        format!(
            r#"{{"id":"m","model":"mistral-small","choices":[{{"index":0,"delta":{delta},"finish_reason":{reason}}}]}}"#
        )
    };
    frame(&deltas.iter().map(line).collect::<Vec<_>>())
}

fn read(deltas: &[(&str, Option<&str>)]) -> (Assembled, Vec<StreamEvent>) {
    assemble(Dialect::Mistral, &chunks(deltas))
}

#[test]
fn r44_several_whole_calls_in_one_delta_with_one_index_or_none() {
    for index in [r#","index":0"#, ""] {
        let call = |id: &str, name: &str| {
            format!(r#"{{"id":"{id}","function":{{"name":"{name}","arguments":"{{\"n\": 1}}"}}{index}}}"#)
        };
        let both = format!(r#"{{"tool_calls":[{},{}]}}"#, call("aaaaaaaa1", "f"), call("aaaaaaaa2", "f"));
        let (one, two) = (
            format!(r#"{{"tool_calls":[{}]}}"#, call("aaaaaaaa1", "f")),
            format!(r#"{{"tool_calls":[{}]}}"#, call("aaaaaaaa2", "f")),
        );
        for deltas in
            [vec![(both.as_str(), Some("tool_calls"))], vec![(one.as_str(), None), (two.as_str(), Some("tool_calls"))]]
        {
            let (got, _) = read(&deltas);
            let want = |id| (id, "f", "{\"n\": 1}".to_owned(), true);
            assert_eq!(calls_of(&got), [want("aaaaaaaa1"), want("aaaaaaaa2")], "{deltas:?}");
        }
    }
}

#[test]
fn r44_the_id_null_counts_as_missing() {
    let call = |name: &str| format!(r#"{{"id":"null","function":{{"name":"{name}","arguments":"{{}}"}}}}"#);
    let both = format!(r#"{{"tool_calls":[{},{}]}}"#, call("f"), call("g"));
    let (got, _) = read(&[(&both, Some("tool_calls"))]);
    assert_eq!(calls_of(&got), [("", "f", "{}".to_owned(), true), ("", "g", "{}".to_owned(), true)]);
}

#[test]
fn r44_arguments_can_be_an_object() {
    let (got, _) = read(&[(
        r#"{"tool_calls":[{"id":"aaaaaaaa1","function":{"name":"f","arguments":{"n":1.0,"n":2}}}]}"#,
        Some("tool_calls"),
    )]);
    assert_eq!(calls_of(&got), [("aaaaaaaa1", "f", r#"{"n":1.0,"n":2}"#.to_owned(), true)]);
}

#[test]
fn r43_reasoning_chunks_are_joined_into_one() {
    let think = |text: &str, more: &str| {
        format!(r#"{{"type":"thinking","thinking":[{{"type":"text","text":"{text}"}}]{more}}}"#)
    };
    let first = format!(r#"{{"role":"assistant","content":[{}]}}"#, think("a", ""));
    let second = format!(
        r#"{{"content":[{},{{"type":"text","text":"x"}}]}}"#,
        think("b", r#","closed":true,"signature":"c2ln""#)
    );
    let (got, events) = read(&[
        (&first, None),
        (&second, None),
        (r#"{"content":"y"}"#, None),
        (r#"{"content":[{"type":"reference","reference_ids":[3]}]}"#, None),
        (r#"{"content":""}"#, Some("stop")),
    ]);
    assert_eq!((got.status, &*got.text.decode()), (AnswerStatus::Complete, "xy"));
    assert_eq!(
        wire_of(&got),
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"ab"}],"closed":true,"signature":"c2ln"},{"type":"text","text":"xy"},{"type":"reference","reference_ids":[3]}]}"#
    );
    let told: String = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::ReasoningDelta(text) => Some(text.decode().into_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(told, "ab");
}

#[test]
fn r44_an_early_end_is_not_a_success() {
    let call = r#"{"tool_calls":[{"id":"aaaaaaaa1","function":{"name":"f","arguments":"{}"}}]}"#;
    for (reason, status) in [
        ("model_length", AnswerStatus::Incomplete),
        ("length", AnswerStatus::Incomplete),
        ("error", AnswerStatus::Failed),
        ("tool_calls", AnswerStatus::Complete),
        ("stop", AnswerStatus::Complete),
    ] {
        let (got, _) = read(&[(call, Some(reason))]);
        assert_eq!(got.status, status, "{reason}");
        assert_eq!(got.calls[0].executable, status == AnswerStatus::Complete, "{reason}");
    }
    assert_eq!(read(&[(call, None)]).0.status, AnswerStatus::Truncated);
}

#[test]
fn r44_usage_includes_cached_tokens() {
    let body = r#"{"id":"m","choices":[{"index":0,"message":{"role":"assistant","content":"","tool_calls":[{"id":"aaaaaaaa1","function":{"name":"f","arguments":"{}"},"index":0}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"num_cached_tokens":4}}"#;
    let got = read_response(Dialect::Mistral, body.as_bytes());
    assert_eq!(got.usage, Some(Usage { input: 9, output: 2, cached_input: Some(4), ..Usage::default() }));
    assert_eq!(
        wire_of(&got),
        r#"{"role":"assistant","content":"","tool_calls":[{"id":"aaaaaaaa1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#
    );
}

#[test]
fn r44_a_rejected_request_reports_the_reason() {
    let told = [
        (
            r#"{"object":"error","message":"Expected last role User or Tool","type":"invalid_request_message_order","param":null,"code":"3230"}"#,
            "Expected last role User or Tool",
        ),
        (r#"{"detail":[{"type":"extra_forbidden","msg":"Extra inputs are not permitted"}]}"#, "Extra inputs"),
        (r#"{"message":"Unauthorized","request_id":"x"}"#, "Unauthorized"),
    ];
    for (body, words) in told {
        let got = read_response(Dialect::Mistral, body.as_bytes());
        assert_eq!(got.status, AnswerStatus::Failed);
        assert!(got.error.as_ref().unwrap().message.contains(words), "{got:?}");
    }
}

#[test]
fn r43_thinking_keeps_its_parts_and_references() {
    let think = |chunks: &str, more: &str| format!(r#"{{"type":"thinking","thinking":[{chunks}]{more}}}"#);
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let (a, b, c) = (text("a"), text("b"), text("c"));
    let reference = r#"{"type":"reference","reference_ids":[1.0]}"#;
    let signed = r#","closed":true,"signature":"c2ln""#;
    let message = |content: &str| format!(r#"{{"role":"assistant","content":[{content}]}}"#);
    // Whole, they are as they came.
    let content = [
        think(&format!("{a},{b},{reference},{c}"), signed),
        think(&c, r#","closed":true"#),
        r#"{"type":"thinking","thinking":"d"}"#.to_owned(),
        text("B"),
        reference.to_owned(),
    ]
    .join(",");
    let body =
        format!(r#"{{"id":"m","choices":[{{"index":0,"message":{},"finish_reason":"stop"}}]}}"#, message(&content));
    assert_eq!(wire_of(&read_response(Dialect::Mistral, body.as_bytes())), message(&content));
    // Streamed, words in a row are one text; every chunk may say `closed` (recorded), a signature ends a part.
    let delta = |part: String| message(&part);
    let deltas = [
        delta(think(&a, r#","closed":true,"signature":null"#)),
        delta(think(&b, r#","closed":true,"signature":"""#)),
        delta(think(reference, "")),
        delta(think(&c, signed)),
        delta(think(&a, r#","signature":"eA==""#)),
        delta(text("B")),
        delta(think(&c, "")),
    ];
    let mut list: Vec<(&str, Option<&str>)> = deltas.iter().map(|delta| (delta.as_str(), None)).collect();
    list.push((r#"{"content":""}"#, Some("stop")));
    let want = [
        think(&format!(r#"{},{reference},{c}"#, text("ab")), signed),
        think(&a, r#","signature":"eA==""#),
        text("B"),
        think(&c, ""),
    ];
    let (got, events) = read(&list);
    assert_eq!(wire_of(&got), message(&want.join(",")));
    let told = events.iter().filter_map(|event| match event {
        StreamEvent::ReasoningDelta(text) => Some(text.decode().into_owned()),
        _ => None,
    });
    assert_eq!(told.collect::<String>(), "abcac");
}
