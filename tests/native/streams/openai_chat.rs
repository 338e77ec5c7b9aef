//! The quirks of Chat Completions streams, one by one.

use crate::streams::{assemble, calls_of, events_of, frame, wire_of};
use rethread::message::Dialect;
use rethread::provider::{AnswerStatus, Assembled, StreamAssembler, StreamEvent, read_response};

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;

fn delta(members: &str) -> String {
    format!(r#"{{"id":"chatcmpl-1","model":"m","choices":[{{"index":0,"delta":{{{members}}},"finish_reason":null}}]}}"#)
}

fn call(members: &str) -> String {
    delta(&format!(r#""tool_calls":[{{{members}}}]"#))
}

fn chat(lines: &[&str]) -> Assembled {
    assemble(Dialect::OpenAiChat, &frame(lines)).0
}

fn calls(lines: &[&str]) -> Vec<(String, String, String)> {
    let own: Vec<String> = lines.iter().map(|line| call(line)).collect();
    let mut lines: Vec<&str> = own.iter().map(String::as_str).collect();
    lines.push(STOP);
    let got = chat(&lines);
    assert_eq!(got.status, AnswerStatus::Complete);
    let owned = |(id, name, arguments, executable): (&str, &str, String, bool)| {
        assert!(executable);
        (id.to_owned(), name.to_owned(), arguments)
    };
    calls_of(&got).into_iter().map(owned).collect()
}

fn three(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

fn whole(message: &str, reason: &str) -> Assembled {
    let body =
        format!(r#"{{"id":"chatcmpl-1","choices":[{{"index":0,"message":{message},"finish_reason":"{reason}"}}]}}"#);
    read_response(Dialect::OpenAiChat, body.as_bytes())
}

#[test]
fn case56_any_split_gives_the_same_message() {
    let lines =
        [&*delta(r#""role":"assistant","content":"h\u00e9 ü""#), &delta(r#""content":"🎉 \ud83d\ude00""#), STOP];
    for bytes in [frame(&lines), frame(&lines).replace('\n', "\r\n"), frame(&lines).replace('\n', "\r")] {
        for at in 0..bytes.len() {
            let (mut assembler, events) = (StreamAssembler::new(Dialect::OpenAiChat), &mut Vec::new());
            assembler.push(&bytes.as_bytes()[..at], events);
            assembler.push(&bytes.as_bytes()[at..], events);
            let got = assembler.finish();
            assert_eq!((got.text.decode().as_ref(), got.status), ("hé ü🎉 😀", AnswerStatus::Complete), "at {at}");
            assert_eq!(events_of(events).text, "hé ü🎉 😀");
        }
    }
}

#[test]
fn case57_interleaved_calls_stay_separate() {
    let got = calls(&[
        r#""index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}"#,
        r#""index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}"#,
        r#""index":0,"function":{"arguments":"{\"x\":"}"#,
        r#""index":1,"function":{"arguments":"{\"y\":"}"#,
        r#""index":0,"function":{"arguments":"1}"}"#,
        r#""index":1,"function":{"arguments":"2}"}"#,
    ]);
    assert_eq!(got, [three("a", "f", r#"{"x":1}"#), three("b", "g", r#"{"y":2}"#)]);
}

#[test]
fn case58_id_and_name_of_the_first_fragment_are_kept() {
    let got = calls(&[
        r#""index":0,"id":"a","type":"function","function":{"name":"f","arguments":null}"#,
        r#""index":0,"id":"","type":null,"function":{"name":"","arguments":"{\"x\""}"#,
        r#""index":0,"id":null,"function":{"name":null,"arguments":":1"}"#,
        r#""index":0,"id":"a","function":{"name":"f","arguments":"}"}"#,
        r#""index":0,"id":"a","function":{"name":"f","arguments":""}"#,
    ]);
    assert_eq!(got, [three("a", "f", r#"{"x":1}"#)]);
}

#[test]
fn case59_calls_without_an_index_stay_separate() {
    let got = calls(&[
        r#""id":"a","function":{"name":"f","arguments":"{\"x\":"}"#,
        r#""function":{"arguments":"1}"}"#,
        r#""id":"b","function":{"name":"f","arguments":""}"#,
        r#""id":"","function":{"arguments":"{}"}"#,
    ]);
    assert_eq!(got, [three("a", "f", r#"{"x":1}"#), three("b", "f", "{}")]);
    // The id again with every fragment.
    let got = calls(&[
        r#""id":"a","function":{"name":"f","arguments":"{"}"#,
        r#""id":"a","function":{"name":"f","arguments":"}"}"#,
    ]);
    assert_eq!(got, [three("a", "f", "{}")]);
    // Neither id nor index: names tell them apart, and a whole call is behind the next.
    let named = |name: &str| format!(r#""function":{{"name":"{name}","arguments":"{{}}"}}"#);
    let got = calls(&[&named("f"), &named("g"), &named("g"), &format!("{}}},{{{}", named("h"), named("h"))]);
    assert_eq!(got.iter().map(|call| &*call.1).collect::<Vec<_>>(), ["f", "g", "g", "h", "h"]);
}

#[test]
fn case60_a_new_id_at_a_used_index_is_a_new_call() {
    let got = calls(&[
        r#""index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}"#,
        r#""index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":"}"#,
        r#""index":0,"function":{"arguments":"2}"}"#,
    ]);
    assert_eq!(got, [three("a", "f", r#"{"x":1}"#), three("b", "f", r#"{"x":2}"#)]);
}

#[test]
fn r44_a_changing_index_or_id_stays_with_its_call() {
    let got = calls(&[
        r#""index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}"#,
        r#""index":1,"function":{"arguments":"1"}"#,
        r#""index":2,"id":null,"function":{"name":"","arguments":"}"}"#,
    ]);
    assert_eq!(got, [three("a", "f", r#"{"x":1}"#)]);
    let got = calls(&[
        r#""index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}"#,
        r#""index":0,"id":"other","function":{"arguments":"1}"}"#,
    ]);
    assert_eq!(got, [three("a", "f", r#"{"x":1}"#)]);
    let got = calls(&[
        r#""index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}"#,
        r#""index":5,"id":"a","function":{"arguments":"1}"}"#,
    ]);
    assert_eq!(got, [three("a", "f", r#"{"x":1}"#)]);
}

#[test]
fn case61_several_calls_in_one_chunk() {
    let two = r#""index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}"#;
    assert_eq!(calls(&[two]), [three("a", "f", "{}"), three("b", "g", "{}")]);
    let unindexed = two.replace(r#""index":0,"#, "").replace(r#""index":1,"#, "");
    assert_eq!(calls(&[&unindexed]), [three("a", "f", "{}"), three("b", "g", "{}")]);
    let same = two.replace(r#""index":1,"#, r#""index":0,"#);
    assert_eq!(calls(&[&same]), [three("a", "f", "{}"), three("b", "g", "{}")]);
}

#[test]
fn case62_a_whole_call_in_one_chunk() {
    let got = assemble(
        Dialect::OpenAiChat,
        &frame(&[
            &*call(r#""index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}"#),
            STOP,
        ]),
    );
    assert_eq!(calls_of(&got.0), [("a", "f", r#"{"x":1}"#.to_owned(), true)]);
    let told = events_of(&got.1);
    assert_eq!((told.started[&0].clone(), told.ready), (("a".to_owned(), "f".to_owned()), vec![0]));
    assert_eq!(
        wire_of(&got.0),
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#
    );
}

#[test]
fn case63_a_last_chunk_with_usage_alone() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,
        "prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":2}}}"#
        .replace('\n', "");
    let got =
        chat(&[r#"{"choices":[],"prompt_filter_results":[]}"#, &delta(r#""content":"hi""#), STOP, &usage, "[DONE]"]);
    let used = got.usage.unwrap();
    assert_eq!((used.input, used.output, used.cached_input, used.reasoning), (9, 4, Some(5), Some(2)));
    assert_eq!((got.text.decode().as_ref(), got.status), ("hi", AnswerStatus::Complete));
}

#[test]
fn case64_the_done_event_is_not_required() {
    let got = chat(&[&delta(r#""content":"hi""#), STOP]);
    assert_eq!(got.status, AnswerStatus::Complete);
    assert_eq!(wire_of(&got), r#"{"role":"assistant","content":"hi"}"#);
}

#[test]
fn case65_an_end_before_the_finish_reason_is_a_truncation() {
    let first = call(r#""index":0,"id":"a","function":{"name":"f","arguments":"{}"}"#);
    for lines in [vec![&*first], vec![&first, "[DONE]"], vec![&first, r#"{"choices":[],"usage":{"prompt_tokens":1}}"#]]
    {
        let got = chat(&lines);
        assert_eq!((got.status, got.wire.is_none()), (AnswerStatus::Truncated, true));
        assert_eq!(calls_of(&got), [("a", "f", "{}".to_owned(), false)]);
    }
    // Cut inside an event.
    let bytes = frame(&[&*delta(r#""content":"so far""#), STOP]);
    let got = assemble(Dialect::OpenAiChat, &bytes[..bytes.len() - 10]).0;
    assert_eq!((got.status, wire_of(&got)), (AnswerStatus::Truncated, r#"{"role":"assistant","content":"so far"}"#));
}

#[test]
fn case66_an_in_band_error_keeps_the_text_before_it() {
    let error = r#"{"error":{"message":"overloaded","type":"server_error","code":null}}"#;
    let after = frame(&[&*delta(r#""content":"so far""#), error, STOP]);
    let (got, events) = assemble(Dialect::OpenAiChat, &after);
    assert_eq!((got.status, got.text.decode().as_ref()), (AnswerStatus::Failed, "so far"));
    let words = got.error.unwrap();
    assert_eq!((words.code.as_deref(), words.message.as_str()), (Some("server_error"), "overloaded"));
    assert!(matches!(events.last(), Some(StreamEvent::Error(error)) if *error == words));
    let named = "event: error\ndata: {\"message\":\"gone\",\"code\":502}\n\n";
    let words = assemble(Dialect::OpenAiChat, named).0.error.unwrap();
    assert_eq!((words.code.as_deref(), words.message.as_str()), (Some("502"), "gone"));
    let inside = r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"x"}}]}"#;
    assert_eq!(chat(&[inside]).error.unwrap().message, "x");
    assert_eq!(
        chat(&[&inside.replace(r#""error":{"code":502,"message":"x"}"#, r#""logprobs":null"#)]).status,
        AnswerStatus::Failed
    );
}

#[test]
fn case67_a_call_truncated_by_the_length_limit_does_not_run() {
    let first = call(r#""index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}"#);
    let cut = STOP.replace("tool_calls", "length");
    let got = chat(&[&first, &cut, STOP]);
    assert_eq!((got.status, got.finish_reason.as_deref()), (AnswerStatus::Incomplete, Some("length")));
    assert_eq!((calls_of(&got)[0].3, got.wire), (false, None));
    let got = chat(&[&delta(r#""content":"hm""#), &first, &STOP.replace("tool_calls", "content_filter")]);
    assert_eq!((got.status, wire_of(&got)), (AnswerStatus::Blocked, r#"{"role":"assistant","content":"hm"}"#));
}

#[test]
fn case68_calls_run_whatever_the_finish_reason() {
    for reason in ["stop", "function_call", "STOP", "eos"] {
        let first = call(r#""index":0,"id":"a","function":{"name":"f","arguments":"{}"}"#);
        let got = chat(&[&first, &STOP.replace("tool_calls", reason), &STOP.replace("tool_calls", reason)]);
        assert_eq!((got.status, calls_of(&got)[0].3), (AnswerStatus::Complete, true), "{reason}");
    }
}

#[test]
fn case70_comments_pings_and_unknown_chunks_are_ignored() {
    let bytes = format!(
        ": OPENROUTER PROCESSING\n\nevent: ping\ndata: {{}}\n\ndata: 7\n\n{}:\n\n{}",
        frame(&[delta(r#""role":"assistant","content":"hi","other":null"#)]),
        frame(&[r#"{"choices":[{"index":1,"delta":{"content":"not mine"},"finish_reason":"length"}]}"#, STOP])
    );
    let got = assemble(Dialect::OpenAiChat, &bytes).0;
    assert_eq!((got.status, wire_of(&got)), (AnswerStatus::Complete, r#"{"role":"assistant","content":"hi"}"#));
}

#[test]
fn case78_object_arguments_and_json_lines() {
    let object = r#"{"a" : 1.00, "b":12345678901234567890,"a":"\ud800"}"#;
    assert_eq!(calls(&[&format!(r#""function":{{"name":"f","arguments":{object}}}"#)])[0].2, object);
    // A line an event, without framing; and Ollama's own shape.
    let lines = [&*delta(r#""content":"hi""#), STOP].join("\n");
    assert_eq!(assemble(Dialect::OpenAiChat, &lines).0.status, AnswerStatus::Complete);
    let native = format!(
        "{}\n{}\n{}\n",
        r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}"#,
        format_args!(
            r#"{{"model":"m","message":{{"content":"so","tool_calls":[{{"function":{{"name":"f","arguments":{object}}}}}]}},"done":false}}"#
        ),
        r#"{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":5}"#
    );
    let got = assemble(Dialect::OpenAiChat, &native).0;
    assert_eq!(calls_of(&got), [("", "f", object.to_owned(), true)]);
    assert_eq!((got.status, got.text.decode().as_ref(), got.usage.unwrap().output), (AnswerStatus::Complete, "so", 5));
}

#[test]
fn r44_the_last_usage_is_reported() {
    let usage = |n: u64| format!(r#"{{"choices":[],"usage":{{"prompt_tokens":{n},"completion_tokens":{n}}}}}"#);
    let (got, events) = assemble(Dialect::OpenAiChat, &frame(&[&*usage(1), &usage(1), STOP, &usage(3)]));
    assert_eq!(got.usage.unwrap().input, 3);
    assert_eq!(events.len(), 2, "the same counts are told once");
}

#[test]
fn r44_refusals_and_legacy_calls() {
    let got = chat(&[
        &delta(r#""content":null,"refusal":"I ""#),
        &delta(r#""refusal":"can't""#),
        &STOP.replace("tool_calls", "stop"),
    ]);
    assert_eq!((got.status, got.text.is_empty()), (AnswerStatus::Refused, true));
    assert_eq!(wire_of(&got), r#"{"role":"assistant","content":null,"refusal":"I can't"}"#);
    let got = chat(&[
        &delta(r#""function_call":{"name":"f","arguments":""}"#),
        &delta(r#""function_call":{"arguments":"{}"}"#),
        &STOP.replace("tool_calls", "function_call"),
    ]);
    assert_eq!(calls_of(&got), [("", "f", "{}".to_owned(), true)]);
    let custom = [
        r#""index":0,"id":"a","type":"custom","custom":{"name":"sql","input":"sel"}"#,
        r#""index":0,"custom":{"input":"ect"}"#,
    ];
    let got = chat(&[&call(custom[0]), &call(custom[1]), STOP]);
    assert_eq!(
        wire_of(&got),
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"sql","input":"select"}}]}"#
    );
}

#[test]
fn r44_reasoning_and_unknown_members_are_kept_in_the_message() {
    let (got, events) = assemble(
        Dialect::OpenAiChat,
        &frame(&[
            &*delta(
                r#""content":"","reasoning":"Let","reasoning_details":[{"type":"reasoning.text","text":"Let","signature":null,"index":0}]"#,
            ),
            &delta(r#""reasoning":" me","reasoning_details":[{"type":"reasoning.text","text":" me","index":0}]"#),
            &delta(
                r#""reasoning_details":[{"type":"reasoning.text","signature":"sig","index":0},{"type":"reasoning.encrypted","data":"x","index":1}]"#,
            ),
            &delta(r#""content":"ok","annotations":[{"n":1.0}],"audio":{"id":"au","data":"AAA"}"#),
            &delta(r#""annotations":[{"n":2}],"audio":{"data":"BBB"},"thought_signature":"s","channel":"final""#),
            &call(
                r#""index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"z"}}"#,
            ),
            STOP,
        ]),
    );
    assert_eq!(
        wire_of(&got),
        concat!(
            r#"{"role":"assistant","content":"ok","reasoning":"Let me","reasoning_details":["#,
            r#"{"type":"reasoning.text","text":"Let me","signature":"sig","index":0},{"type":"reasoning.encrypted","data":"x","index":1}],"#,
            r#""annotations":[{"n":1.0},{"n":2}],"audio":{"id":"au"},"thought_signature":"s","#,
            r#""tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"#,
            r#""extra_content":{"google":{"thought_signature":"z"}}}]}"#
        )
    );
    let told = events.iter().filter(|event| matches!(event, StreamEvent::ReasoningDelta(_))).count();
    assert_eq!(told, 2, "told once, although it stands in two members");
    let got = assemble(
        Dialect::OpenAiChat,
        &frame(&[&*delta(r#""reasoning_details":[{"type":"reasoning.summary","summary":"s","index":0}]"#), STOP]),
    );
    assert!(matches!(&got.1[..], [StreamEvent::ReasoningDelta(text)] if text.decode() == "s"));
}

#[test]
fn r44_content_that_is_a_list() {
    let got = chat(&[
        &delta(r#""content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#),
        &delta(r#""content":"c""#),
        STOP,
    ]);
    assert_eq!(wire_of(&got), r#"{"role":"assistant","content":"abc"}"#);
    let thinking = |text: &str| {
        delta(&format!(r#""content":[{{"type":"thinking","thinking":[{{"type":"text","text":"{text}"}}]}}]"#))
    };
    let got = chat(&[&thinking("h"), &thinking("m"), &delta(r#""content":"so""#), &delta(r#""content":"!""#), STOP]);
    let parts = r#"[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"so!"}]"#;
    assert_eq!(
        (wire_of(&got), got.text.decode().as_ref()),
        (&*format!(r#"{{"role":"assistant","content":{parts}}}"#), "so!")
    );
    let same = whole(&format!(r#"{{"role":"assistant","content":{parts}}}"#), "stop");
    assert_eq!(wire_of(&same), wire_of(&got));
}

#[test]
fn r45_arguments_keep_every_character() {
    let pieces = [
        r#"{\"n\":123456789012345678901234567890,"#,
        r#"\"n\": 1.00e+5, \"s\":\"\\ud800 \u00e9 \/ \ud83d"#,
        r#"\ude00 \ud83d\"}"#,
    ];
    let first = call(r#""index":0,"id":"a","function":{"name":"f","arguments":""}"#);
    let fragments = pieces.map(|piece| call(&format!(r#""index":0,"function":{{"arguments":"{piece}"}}"#)));
    let got = chat(&[&first, &fragments[0], &fragments[1], &fragments[2], STOP]);
    assert_eq!(got.calls[0].arguments.inside(), pieces.concat());
    assert!(wire_of(&got).contains(&format!(r#""arguments":"{}""#, pieces.concat())));
}

#[test]
fn r45_a_surrogate_pair_in_two_chunks_joins() {
    let (got, events) = assemble(
        Dialect::OpenAiChat,
        &frame(&[
            &*delta(r#""content":"a\ud83d""#),
            &delta(r#""content":"\ude00b""#),
            &delta(r#""content":"\ud83d""#),
            &delta(r#""content":"\ud83d""#),
            STOP,
        ]),
    );
    assert_eq!(got.text.token(), r#""a\ud83d\ude00b\ud83d\ud83d""#);
    let texts: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::TextDelta(text) => Some(text.inside().to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["a", r"\ud83d\ude00b", r"\ud83d"]);
}

#[test]
fn r20_a_whole_and_a_streamed_answer_give_the_same_message() {
    let streamed = chat(&[
        &delta(r#""role":"assistant","content":"so","refusal":null"#),
        &call(r#""index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":"}"#),
        &call(r#""index":0,"function":{"arguments":"1}"}"#),
        STOP,
    ]);
    let calls = r#"[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]"#;
    let mut same = whole(
        &format!(
            r#"{{"refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":{calls},"content":"so","role":"assistant"}}"#
        ),
        "tool_calls",
    );
    same.model.clone_from(&streamed.model);
    assert_eq!(same, streamed);
    for empty in ["null", "[]"] {
        let got = whole(&format!(r#"{{"role":"assistant","content":"hi","refusal":"","tool_calls":{empty}}}"#), "");
        assert_eq!((got.status, wire_of(&got)), (AnswerStatus::Complete, r#"{"role":"assistant","content":"hi"}"#));
    }
    assert_eq!(whole(r#"{"role":"assistant","content":null,"refusal":"no"}"#, "stop").status, AnswerStatus::Refused);
    // The same id or name twice in a whole message is two calls.
    let twice = r#"{"id":"a","function":{"name":"f","arguments":"{}"}}"#;
    assert_eq!(whole(&format!(r#"{{"content":null,"tool_calls":[{twice},{twice}]}}"#), "stop").calls.len(), 2);
}

#[test]
fn r20_failures_quote_the_provider() {
    for (body, code, message) in [
        (
            r#"{"error":{"message":"no","type":"invalid_request_error","code":null,"param":"x"}}"#,
            Some("invalid_request_error"),
            "no",
        ),
        (r#"{"error":{"message":"no","code":429}}"#, Some("429"), "no"),
        (r#"{"error":"model not found"}"#, None, "model not found"),
        (r#"[{"error":{"message":"no","status":"NOT_FOUND"}}]"#, Some("NOT_FOUND"), "no"),
        (r#"{"object":"error","message":"no","type":"BadRequest","code":400}"#, Some("400"), "no"),
        (r#"{"message":"no auth"}"#, None, "no auth"),
        (r#"{"detail":"gone"}"#, None, "gone"),
    ] {
        for got in [read_response(Dialect::OpenAiChat, body.as_bytes()), assemble(Dialect::OpenAiChat, body).0] {
            let error = got.error.unwrap();
            assert_eq!(
                (got.status, error.code.as_deref(), error.message.as_str()),
                (AnswerStatus::Failed, code, message),
                "{body}"
            );
        }
    }
}

#[test]
fn r44_a_stopped_stream_is_truncated() {
    let mut assembler = StreamAssembler::new(Dialect::OpenAiChat);
    let first = call(r#""index":0,"id":"a","function":{"name":"f","arguments":"{}"}"#);
    assembler.push(frame(&[&*delta(r#""content":"so far""#), &first, STOP]).as_bytes(), &mut Vec::new());
    let got = assembler.partial();
    assert_eq!((got.status, wire_of(&got)), (AnswerStatus::Truncated, r#"{"role":"assistant","content":"so far"}"#));
    assert!(!got.calls[0].executable);
    assert!(assembler.finish().calls[0].executable);
}

#[test]
fn r44_broken_arguments_of_a_whole_answer_are_passed_to_the_run() {
    let got = calls(&[r#""index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}"#]);
    assert_eq!(got, [three("a", "f", r#"{"x""#)]);
    let nameless = call(r#""index":0,"id":"a","function":{"arguments":"{}"}"#);
    let got = chat(&[&nameless, STOP]);
    assert_eq!((calls_of(&got)[0].3, got.wire), (false, None));
}

#[test]
fn r43_empty_reasoning_content_is_sent_in_the_next_request() {
    // DeepSeek: "The `reasoning_content` in the thinking mode must be passed back to the API".
    let used = r#""tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]"#;
    let wire = r#"{"role":"assistant","content":null,"reasoning_content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let streamed = chat(&[&delta(r#""role":"assistant","content":null,"reasoning_content":"""#), &delta(used), STOP]);
    assert_eq!(wire_of(&streamed), wire);
    assert_eq!(wire_of(&whole(wire, "tool_calls")), wire);
    // What is null is no text, and an empty one alone is no answer.
    let null = chat(&[&delta(r#""role":"assistant","content":null,"reasoning_content":null"#), &delta(used), STOP]);
    assert_eq!(wire_of(&null), wire.replace(r#""reasoning_content":"","#, ""));
    assert!(chat(&[&delta(r#""content":"","reasoning_content":"""#), STOP]).wire.is_none());
}
