//! The quirks of OpenAI Responses streams, one by one.

use crate::streams::{assemble, calls_of, events_of, frame, wire_of};
use proptest::prelude::*;
use rethread::message::Dialect;
use rethread::provider::{
    AnswerStatus, Assembled, InputTransformation, StreamEvent, TransformationEffect, TransformedPlace, read_response,
};

const CREATED: &str = r#"{"type":"response.created","response":{"id":"resp_1","model":"m","status":"in_progress","output":[],"usage":null}}"#;

fn added(index: usize, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.added","output_index":{index},"item":{item}}}"#)
}

fn done(index: usize, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
}

fn text(index: usize, kind: &str, value: &str) -> String {
    let name = if kind.ends_with("done") { "text" } else { "delta" };
    format!(r#"{{"type":"response.{kind}","output_index":{index},"content_index":0,"{name}":"{value}"}}"#)
}

fn arguments(index: usize, kind: &str, value: &str) -> String {
    let name = match kind.rsplit_once('.') {
        Some(("custom_tool_call_input", "done")) => "input",
        Some((_, "done")) => "arguments",
        _ => "delta",
    };
    format!(r#"{{"type":"response.{kind}","output_index":{index},"{name}":"{value}"}}"#)
}

fn completed(output: &str) -> String {
    format!(
        r#"{{"type":"response.completed","response":{{"id":"resp_1","status":"completed","output":[{output}],"usage":{{"input_tokens":9,"input_tokens_details":{{"cached_tokens":4}},"output_tokens":5,"output_tokens_details":{{"reasoning_tokens":3}},"total_tokens":14}}}}}}"#
    )
}

fn run(lines: &[String]) -> (Assembled, Vec<StreamEvent>) {
    let lines: Vec<&str> = std::iter::once(CREATED).chain(lines.iter().map(String::as_str)).collect();
    assemble(Dialect::OpenAiResponses, &frame(&lines))
}

fn call(index: usize, arguments: &str) -> String {
    format!(
        r#"{{"type":"function_call","id":"fc_{index}","call_id":"call_{index}","name":"f","arguments":"{arguments}","status":"completed"}}"#
    )
}

fn said(words: &str) -> String {
    format!(
        r#"{{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{{"type":"output_text","text":"{words}","annotations":[]}}]}}"#
    )
}

#[test]
fn r44_an_answer_is_the_list_of_its_items() {
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"done"}"#;
    let lines = [
        added(0, &reasoning.replace("done", "added")),
        done(0, reasoning),
        added(1, &call(1, "")),
        arguments(1, "function_call_arguments.delta", r#"{\"a\":"#),
        arguments(1, "function_call_arguments.delta", "1}"),
        arguments(1, "function_call_arguments.done", r#"{\"a\":1}"#),
        done(1, &call(1, r#"{\"a\":1}"#)),
        completed(""),
    ];
    let (got, events) = run(&lines);
    assert_eq!(got.status, AnswerStatus::Complete);
    assert_eq!((got.response_id.as_deref(), got.finish_reason.as_deref()), (Some("resp_1"), Some("completed")));
    assert_eq!(calls_of(&got), [("call_1", "f", r#"{"a":1}"#.to_owned(), true)]);
    // The output at the end is empty, as from some servers: what was done stays. The copy at the start does not count.
    assert_eq!(wire_of(&got), format!("[{reasoning},{}]", call(1, r#"{\"a\":1}"#)));
    let usage = got.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cached_input, usage.reasoning), (9, 5, Some(4), Some(3)));
    let told = events_of(&events);
    assert_eq!((told.arguments[&0].as_str(), told.ready.as_slice()), (r#"{"a":1}"#, &[0][..]));
}

#[test]
fn r44_reasoning_without_output_item_added_is_not_text() {
    let about =
        |kind: &str, place: &str, value: &str| format!(r#"{{"type":"response.{kind}"{place},"delta":"{value}"}}"#);
    // Each with its own index, both with one index, both with one id, and neither with any.
    for [first, second] in [
        [r#","output_index":0"#, r#","output_index":1"#],
        [r#","output_index":0"#, r#","output_index":0"#],
        [r#","item_id":"i""#, r#","item_id":"i""#],
        ["", ""],
    ] {
        let lines = [
            about("reasoning_text.delta", first, "h"),
            about("reasoning_text.delta", first, "m"),
            about("output_text.delta", second, "Hel"),
            about("output_text.delta", second, "lo"),
            completed(""),
        ];
        let (got, events) = run(&lines);
        assert_eq!(
            (got.text.decode().as_ref(), events_of(&events).text.as_str()),
            ("Hello", "Hello"),
            "{first} {second}"
        );
        assert_eq!(events_of(&events).reasoning, "hm", "{first} {second}");
        assert_eq!(wire_of(&got).matches(r#""type":"reasoning""#).count(), 1, "{}", wire_of(&got));
        assert_eq!(wire_of(&got).matches(r#""type":"message""#).count(), 1, "{}", wire_of(&got));
    }
}

#[test]
fn case57_interleaved_items_stay_separate() {
    let lines = [
        added(0, &call(0, "")),
        added(1, &call(1, "")),
        arguments(0, "function_call_arguments.delta", r#"{\"a\":"#),
        arguments(1, "function_call_arguments.delta", r#"{\"b\":"#),
        arguments(0, "function_call_arguments.delta", "1}"),
        arguments(1, "function_call_arguments.delta", "2}"),
        completed(""),
    ];
    let calls = [("call_0", "f", r#"{"a":1}"#.to_owned(), true), ("call_1", "f", r#"{"b":2}"#.to_owned(), true)];
    assert_eq!(calls_of(&run(&lines).0), calls);
}

#[test]
fn case65_a_stream_without_its_end_runs_nothing() {
    let whole = [added(0, &said("")), text(0, "output_text.delta", "Hel"), done(1, &call(1, "{}"))];
    let (got, _) = run(&whole);
    assert_eq!(got.status, AnswerStatus::Truncated);
    assert_eq!(calls_of(&got), [("call_1", "f", "{}".to_owned(), false)]);
    assert_eq!(got.text.decode(), "Hel");
    let wire = r#"[{"type":"message","id":"msg_1","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"Hel","annotations":[]}]}]"#;
    assert_eq!(wire_of(&got), wire);
}

#[test]
fn case66_a_failure_in_the_stream_keeps_the_text() {
    let error = r#"{"type":"error","code":"server_error","message":"gone","param":null}"#.to_owned();
    let (got, events) = run(&[added(0, &said("")), text(0, "output_text.delta", "Hi"), error]);
    let told = got.error.clone().unwrap();
    assert_eq!(
        (got.status, told.code.as_deref(), told.message.as_str()),
        (AnswerStatus::Failed, Some("server_error"), "gone")
    );
    assert_eq!((got.text.decode().as_ref(), events.len()), ("Hi", 2));
    let failed = r#"{"type":"response.failed","response":{"status":"failed","output":[],"error":{"code":"rate_limit_exceeded","message":"slow down"}}}"#.to_owned();
    let (got, _) = run(&[failed]);
    assert_eq!((got.status, got.error.unwrap().message.as_str()), (AnswerStatus::Failed, "slow down"));
}

#[test]
fn case68_calls_run_whatever_the_status() {
    let (got, _) = run(&[completed(&format!("{},{}", said("Hi"), call(1, "{}")))]);
    assert_eq!((got.status, got.text.decode().as_ref()), (AnswerStatus::Complete, "Hi"));
    assert_eq!(calls_of(&got), [("call_1", "f", "{}".to_owned(), true)]);
}

#[test]
fn case75_a_done_event_overrides_its_deltas() {
    let lines = [
        added(0, &said("")),
        text(0, "output_text.delta", "Helo"),
        text(0, "output_text.done", "Hello"),
        added(1, &call(1, "")),
        arguments(1, "function_call_arguments.delta", r#"{\"a\":0}"#),
        arguments(1, "function_call_arguments.done", r#"{\"a\":1}"#),
        completed(""),
    ];
    let (got, _) = run(&lines);
    assert_eq!(got.text.decode(), "Hello");
    assert_eq!(calls_of(&got), [("call_1", "f", r#"{"a":1}"#.to_owned(), true)]);
}

#[test]
fn case77_a_truncated_answer_keeps_its_reason_and_usage() {
    for (reason, status) in [("max_output_tokens", AnswerStatus::Incomplete), ("content_filter", AnswerStatus::Blocked)]
    {
        let cut = call(1, r#"{\"a"#).replace("completed", "incomplete");
        let end = format!(
            r#"{{"type":"response.incomplete","response":{{"status":"incomplete","incomplete_details":{{"reason":"{reason}"}},"output":[{cut}],"usage":{{"input_tokens":1,"output_tokens":2}}}}}}"#
        );
        let (got, _) = run(&[added(0, &cut), end]);
        assert_eq!((got.status, got.finish_reason.as_deref()), (status, Some(reason)));
        assert_eq!(got.usage.map(|usage| (usage.input, usage.output)), Some((1, 2)));
        assert_eq!(calls_of(&got), [("call_1", "f", "{\"a".to_owned(), false)]);
        assert!(got.wire.is_none());
    }
}

#[test]
fn case77_a_truncated_answer_drops_calls_that_cannot_be_answered() {
    for id in ["", r#""call_id":"","#] {
        let item = format!(r#"{{"type":"function_call","id":"fc_1",{id}"name":"f","arguments":"{{}}"}}"#);
        let end = r#"{"type":"response.incomplete","response":{"status":"incomplete","output":[]}}"#.to_owned();
        let (got, _) = run(&[added(0, &item), done(0, &item), end]);
        assert_eq!((got.status, got.wire.is_none()), (AnswerStatus::Incomplete, true), "{:?}", got.wire);
    }
}

/// As many as a server sends: each is looked at a few times, not once for each other one.
#[test]
fn r44_an_answer_with_thousands_of_calls_is_assembled() {
    let lines: Vec<String> = (0..4_000)
        .flat_map(|at| [added(at, &call(at, "{}")), done(at, &call(at, "{}"))])
        .chain([completed("")])
        .collect();
    assert_eq!(calls_of(&run(&lines).0).len(), 4_000);
}

#[test]
fn r44_the_input_of_a_custom_tool_is_free_text() {
    let item = |input: &str| {
        format!(r#"{{"type":"custom_tool_call","id":"ctc_1","call_id":"call_1","name":"sql","input":"{input}"}}"#)
    };
    let lines = [
        added(0, &item("")),
        arguments(0, "custom_tool_call_input.delta", "SELECT "),
        arguments(0, "custom_tool_call_input.delta", "1"),
        arguments(0, "custom_tool_call_input.done", "SELECT 1"),
        done(0, &item("SELECT 1")),
        completed(""),
    ];
    let (got, _) = run(&lines);
    assert_eq!(calls_of(&got), [("call_1", "sql", "SELECT 1".to_owned(), true)]);
    assert_eq!(wire_of(&got), format!("[{}]", item("SELECT 1")));
}

#[test]
fn r44_items_are_identified_by_index_if_ids_change() {
    let mut lines = Vec::new();
    for (at, piece) in ["{", r#"\"a\":"#, "1}"].iter().enumerate() {
        if at == 0 {
            lines.push(added(0, &call(0, "")));
        }
        lines.push(format!(
            r#"{{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"x{at}","delta":"{piece}"}}"#
        ));
    }
    lines.push(done(0, &call(9, r#"{\"a\":1}"#)));
    lines.push(completed(""));
    assert_eq!(calls_of(&run(&lines).0), [("call_9", "f", r#"{"a":1}"#.to_owned(), true)]);
}

#[test]
fn r44_items_without_an_index_are_identified_by_id() {
    let item =
        |id: &str| format!(r#"{{"type":"function_call","id":"{id}","call_id":"c{id}","name":"f","arguments":""}}"#);
    let lines = [
        format!(r#"{{"type":"response.output_item.added","item":{}}}"#, item("a")),
        format!(r#"{{"type":"response.output_item.added","item":{}}}"#, item("b")),
        r#"{"type":"response.function_call_arguments.delta","item_id":"a","delta":"{}"}"#.to_owned(),
        r#"{"type":"response.function_call_arguments.delta","item_id":"b","delta":"{\"x\":1}"}"#.to_owned(),
        format!(r#"{{"type":"response.output_item.done","item":{}}}"#, item("a")),
        completed(""),
    ];
    let calls = [("ca", "f", "{}".to_owned(), true), ("cb", "f", r#"{"x":1}"#.to_owned(), true)];
    assert_eq!(calls_of(&run(&lines).0), calls);
}

#[test]
fn r43_encrypted_content_of_a_done_event_is_kept_whatever_the_final_event_has() {
    let item = |content: &str| format!(r#"{{"type":"reasoning","id":"rs_1","summary":[]{content}}}"#);
    let lines = [
        added(0, &item("")),
        done(0, &item(r#","encrypted_content":"secret""#)),
        added(1, &said("")),
        done(1, &said("Hi")),
        completed(&format!("{},{}", item(r#","encrypted_content":null"#), said("Hi"))),
    ];
    assert!(wire_of(&run(&lines).0).contains(r#""encrypted_content":"secret""#));
}

#[test]
fn r43_item_ids_that_the_server_does_not_store_are_not_sent() {
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]}"#;
    let end = completed(&format!("{reasoning},{}", call(1, "{}")));
    let kept = wire_of(&run(std::slice::from_ref(&end)).0).to_owned();
    assert!(kept.contains("rs_1") && kept.contains("fc_1"));
    let (got, _) =
        run(&[end.replace(r#""status":"completed","output""#, r#""status":"completed","store":false,"output""#)]);
    let wire = wire_of(&got);
    assert!(
        !wire.contains("rs_1") && !wire.contains("fc_1") && wire.contains("call_1") && wire.contains("hm"),
        "{wire}"
    );
    // With what it takes to read it again, all stays.
    let whole = reasoning.replace(r#""summary""#, r#""encrypted_content":"e","summary""#);
    let end = completed(&format!("{whole},{}", call(1, "{}"))).replace(r#""id":"resp_1""#, r#""store":false"#);
    assert_eq!(wire_of(&run(&[end]).0), format!("[{whole},{}]", call(1, "{}")));
}

#[test]
fn r44_an_empty_output_in_the_final_event_removes_nothing() {
    let empty = said("").replace(r#"{"type":"output_text","text":"","annotations":[]}"#, "");
    let lines = [added(0, &said("")), done(0, &said("Hello")), completed(&empty)];
    let (got, _) = run(&lines);
    assert_eq!(got.text.decode(), "Hello");
    assert!(wire_of(&got).contains("Hello"));
}

#[test]
fn r44_a_refusal_is_a_refusal_part() {
    let refusal =
        r#"{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}"#;
    let lines = [
        added(0, &said("").replace(r#"{"type":"output_text","text":"","annotations":[]}"#, "")),
        r#"{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"No."}"#.to_owned(),
        r#"{"type":"response.refusal.done","output_index":0,"content_index":0,"refusal":"No."}"#.to_owned(),
        done(0, refusal),
        completed(refusal),
    ];
    let (got, _) = run(&lines);
    assert_eq!((got.status, got.text.is_empty()), (AnswerStatus::Refused, true));
    assert_eq!(wire_of(&got), format!("[{refusal}]"));
}

#[test]
fn r44_reasoning_is_emitted_and_server_items_are_kept() {
    let search =
        r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}"#;
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm, so"}]}"#;
    let lines = [
        r#"{"type":"response.queued","response":{}}"#.to_owned(),
        added(0, r#"{"type":"reasoning","id":"rs_1","summary":[]}"#),
        r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#.to_owned(),
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"hm, "}"#.to_owned(),
        r#"{"type":"keepalive","sequence_number":4}"#.to_owned(),
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"so"}"#.to_owned(),
        done(0, reasoning),
        added(1, &search.replace("completed", "in_progress")),
        r#"{"type":"response.web_search_call.searching","output_index":1,"item_id":"ws_1"}"#.to_owned(),
        done(1, search),
        done(2, &said("Hi")),
        completed(""),
    ];
    let (got, events) = run(&lines);
    let told: String = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::ReasoningDelta(text) => Some(text.decode().into_owned()),
            _ => None,
        })
        .collect();
    assert_eq!((told.as_str(), events_of(&events).text.as_str()), ("hm, so", "Hi"));
    assert_eq!(wire_of(&got), format!("[{reasoning},{search},{}]", said("Hi")));
}

#[test]
fn r44_a_list_in_an_item_of_unknown_type_is_returned_once() {
    let item = r#"{"type":"new_item","id":"n_1","content":[{"type":"output_text","text":"a"}]}"#;
    let opened = r#"{"type":"new_item","id":"n_1","content":[]}"#;
    let lines = [added(0, opened), text(0, "output_text.delta", "a"), done(0, item), completed("")];
    assert_eq!(wire_of(&run(&lines).0), format!("[{item}]"));
}

#[test]
fn r44_a_truncated_answer_drops_client_calls() {
    let shell = r#"{"type":"shell_call","id":"sh_1","call_id":"c","action":{"commands":["ls"]},"environment":null,"status":"completed"}"#;
    let asked = r#"{"type":"mcp_approval_request","id":"mcpr_1","server_label":"s","name":"n","arguments":"{}"}"#;
    let search = r#"{"type":"tool_search_call","id":"tsc_1","call_id":null,"execution":"server","arguments":{}}"#;
    for item in [shell, asked] {
        let lines = [done(0, &said("So")), done(1, item)];
        let (cut, _) = run(&lines);
        assert_eq!(wire_of(&cut), format!("[{}]", said("So")));
        let (whole, _) = run(&[&lines[..], &[completed("")]].concat());
        assert_eq!(wire_of(&whole), format!("[{},{item}]", said("So")));
    }
    // What the server ran is there with its output, or without an id.
    let output = r#"{"type":"shell_call_output","call_id":"c","output":[]}"#;
    let (cut, _) = run(&[done(0, shell), done(1, output), done(2, search)]);
    assert_eq!(wire_of(&cut), format!("[{shell},{output},{search}]"));
    let (cut, _) = run(&[added(0, shell), done(1, output)]);
    assert!(cut.wire.is_none());
}

#[test]
fn r44_a_call_that_the_server_answered_is_not_run_again() {
    let output = r#"{"type":"function_call_output","call_id":"call_0","output":"1"}"#;
    let lines = [done(0, &call(0, "{}")), done(1, output), done(2, &call(2, "{}"))];
    let (whole, _) = run(&[&lines[..], &[completed("")]].concat());
    assert_eq!(whole.calls.iter().map(|call| call.executable).collect::<Vec<_>>(), [false, true]);
    assert_eq!(wire_of(&whole), format!("[{},{output},{}]", call(0, "{}"), call(2, "{}")));
    let (cut, _) = run(&lines);
    assert_eq!(wire_of(&cut), format!("[{},{output}]", call(0, "{}")));
    let (cut, _) = run(&[added(0, &call(0, "")), done(1, output)]);
    assert!(cut.wire.is_none());
}

#[test]
fn r45_every_character_survives_the_stream() {
    let odd = r#"{\"n\": 12345678901234567890.50, \"s\": \"\\ud800 \\u00e9\"}"#;
    let (got, _) = run(&[added(0, &call(0, "")), arguments(0, "function_call_arguments.delta", odd), completed("")]);
    assert!(wire_of(&got).contains(odd));
    let (got, _) = run(&[done(0, &call(0, odd)), completed(&call(0, odd))]);
    assert_eq!(wire_of(&got), format!("[{}]", call(0, odd)));
}

#[test]
fn r20_a_background_response_in_progress_is_not_an_answer() {
    let read = |body: &str| read_response(Dialect::OpenAiResponses, body.as_bytes());
    assert_eq!(read(r#"{"id":"r","status":"queued","output":[]}"#).status, AnswerStatus::Truncated);
    assert_eq!(read(r#"{"id":"r","status":"cancelled","output":[]}"#).status, AnswerStatus::Failed);
    // A server that says nothing of a status.
    assert_eq!(read(&format!(r#"{{"output":[{}]}}"#, said("Hi"))).status, AnswerStatus::Complete);
    let refused = read(r#"{"error":{"message":"bad","type":"invalid_request_error","code":null}}"#);
    assert_eq!((refused.status, refused.error.unwrap().message.as_str()), (AnswerStatus::Failed, "bad"));
}

/// An event about an entry of item 0.
fn about(kind: &str, index: u64, member: &str, value: &str) -> String {
    let name = if kind.starts_with("reasoning_summary") { "summary_index" } else { "content_index" };
    format!(r#"{{"type":"response.{kind}","output_index":0,"{name}":{index},"{member}":"{value}"}}"#)
}

fn message(texts: &[String]) -> String {
    let texts: Vec<_> =
        texts.iter().map(|text| format!(r#"{{"type":"output_text","text":"{text}","annotations":[]}}"#)).collect();
    format!(r#"{{"type":"message","id":"msg_1","role":"assistant","content":[{}]}}"#, texts.join(","))
}

#[test]
fn r44_parts_counted_from_1_are_not_duplicated() {
    let part = r#"{"type":"response.content_part.added","output_index":0,"content_index":1,"part":{"type":"output_text","text":"","annotations":[]}}"#;
    let item = message(&["Hello".to_owned()]);
    let lines = [
        added(0, &message(&[])),
        part.to_owned(),
        about("output_text.delta", 1, "delta", "Hel"),
        about("output_text.delta", 1, "delta", "lo"),
        about("output_text.done", 1, "text", "Hello"),
    ];
    for end in [vec![done(0, &item), completed("")], vec![done(0, &item), completed(&item)], vec![completed(&item)]] {
        let (got, events) = run(&[&lines[..], &end].concat());
        assert_eq!((got.text.decode().as_ref(), events_of(&events).text.as_str()), ("Hello", "Hello"));
        assert_eq!(wire_of(&got), format!("[{item}]"));
    }
    // What was cut says as much of it as the end does.
    let cut = format!(
        r#"{{"type":"response.incomplete","response":{{"status":"incomplete","output":[{}]}}}}"#,
        item.replace(r#""role""#, r#""status":"incomplete","role""#)
    );
    assert_eq!(run(&[&lines[..], &[cut]].concat()).0.text.decode(), "Hello");
}

proptest! {
    /// The item that is done is what was said, wherever the server said that its pieces belong.
    #[test]
    fn r44_a_done_item_replaces_its_deltas(
        texts in prop::collection::vec("[a-c ]{1,9}", 1..4),
        first in 0_u64..3,
        strange in prop::collection::vec((0_usize..12, 0_u64..6, "[a-c]{0,4}", any::<bool>()), 0..3),
        size in 1_usize..5,
        early in any::<bool>(),
        again in any::<bool>(),
    ) {
        let item = message(&texts);
        let mut lines = vec![added(0, &message(&[]))];
        for (index, text) in (first..).zip(&texts) {
            for piece in text.as_bytes().chunks(size) {
                lines.push(about("output_text.delta", index, "delta", std::str::from_utf8(piece).unwrap()));
            }
        }
        let whole = strange.is_empty();
        for (place, index, text, done) in strange {
            let (kind, member) = if done { ("output_text.done", "text") } else { ("output_text.delta", "delta") };
            lines.insert(1 + place % lines.len(), about(kind, index, member, &text));
        }
        if early {
            lines.push(done(0, &item));
        }
        lines.push(completed(if again || !early { &item } else { "" }));
        let (got, events) = run(&lines);
        prop_assert_eq!(got.text.decode(), texts.concat());
        prop_assert_eq!(wire_of(&got), format!("[{item}]"));
        if whole {
            prop_assert_eq!(events_of(&events).text, texts.concat());
        }
    }
}

#[test]
fn r70_what_became_of_reasoning_in_the_request_is_read() {
    let response = r#"{"id":"resp_1","object":"response","model":"m","status":"completed","output":[],"input_transformations":[
        {"type":"reasoning","action":"removed","id":"rs_1","reason":"prefix_mismatch"},
        {"type":"reasoning","action":"removed","id":"rs_2","reason":"turn_boundary"},
        {"type":"reasoning","action":"renumbered","id":"rs_3","reason":"new"}]}"#;
    let transformation = |id: &str, reason: &str, effect| InputTransformation {
        place: TransformedPlace::Item(id.into()),
        reason: reason.into(),
        effect,
    };
    let expected = [
        transformation("rs_1", "prefix_mismatch", TransformationEffect::Dropped),
        transformation("rs_2", "turn_boundary", TransformationEffect::DroppedByDesign),
    ];
    assert_eq!(read_response(Dialect::OpenAiResponses, response.as_bytes()).transformations, expected);
    let completed = format!(r#"{{"type":"response.completed","response":{}}}"#, response.replace('\n', ""));
    let streamed = frame(&[CREATED.to_owned(), completed]);
    assert_eq!(assemble(Dialect::OpenAiResponses, &streamed).0.transformations, expected);
}
