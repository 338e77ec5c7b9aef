//! Gemini: a simple accumulation to compare with, and the quirks one by one.

use crate::streams::reference::Reference;
use crate::streams::{assemble, calls_of, events_of, frame, wire_of};
use rethread::message::Dialect;
use rethread::provider::{AnswerStatus, Assembled, StreamAssembler, StreamEvent, read_response};
use serde_json::{Value, json};

/// What a recorded stream comes to, over `serde_json`.
pub fn reference(lines: &[String]) -> Reference {
    let mut found = Reference::default();
    let mut open = false;
    for line in lines {
        let event: Value = serde_json::from_str(line).unwrap();
        found.ids.extend(event["responseId"].as_str().map(str::to_owned));
        found.error = event["error"]["message"].as_str().map(str::to_owned).or(found.error);
        let count = |name: &str| event["usageMetadata"][name].as_u64();
        if let Some(prompt) = count("promptTokenCount") {
            let sum = |a: &str, b: &str| count(a).unwrap_or(0) + count(b).unwrap_or(0);
            let input = prompt + count("toolUsePromptTokenCount").unwrap_or(0);
            found.usage = Some((input, sum("candidatesTokenCount", "thoughtsTokenCount")));
        }
        let candidate = &event["candidates"][0];
        found.terminal = candidate["finishReason"].as_str().map(str::to_owned).or(found.terminal);
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            let call = &part["functionCall"];
            if call.is_object() {
                if !(open && call["name"].is_null()) {
                    found.blocks.push(part.clone());
                }
                let last = found.blocks.last_mut().unwrap();
                for piece in call["partialArgs"].as_array().into_iter().flatten() {
                    place(&mut last["functionCall"]["args"], piece);
                }
                open = call["willContinue"] == true;
                for name in ["partialArgs", "willContinue"] {
                    last["functionCall"].as_object_mut().unwrap().shift_remove(name);
                }
                continue;
            }
            let signed = part["thoughtSignature"].is_string();
            let Some(text) = part["text"].as_str().filter(|_| !signed) else {
                found.blocks.push(part.clone());
                continue;
            };
            let goes_on = found.blocks.last().is_some_and(|last| {
                last["text"].is_string() && last["thoughtSignature"].is_null() && last["thought"] == part["thought"]
            });
            if goes_on {
                let last = found.blocks.last_mut().unwrap();
                last["text"] = json!(last["text"].as_str().unwrap().to_owned() + text);
            } else if !text.is_empty() {
                found.blocks.push(part.clone());
            }
        }
    }
    for block in &mut found.blocks {
        if let Some(text) = block["text"].as_str().filter(|_| block["thought"] != true) {
            found.text += text;
        }
        if block["functionCall"].is_object() {
            let call = &mut block["functionCall"];
            let arguments = if call["args"].is_null() { json!({}) } else { call["args"].clone() };
            let word = |name: &str| call[name].as_str().unwrap_or("").to_owned();
            found.calls.push((word("id"), word("name"), arguments.to_string()));
        }
    }
    found
}

/// Puts a piece of arguments where its path says: `$.a[0].b`.
fn place(arguments: &mut Value, piece: &Value) {
    let path = piece["jsonPath"].as_str().unwrap().replace('[', ".").replace(']', "");
    let mut at = arguments;
    for step in path.split('.').skip(1) {
        at = match step.parse::<usize>() {
            Ok(index) => {
                if at.is_null() {
                    *at = json!([]);
                }
                let list = at.as_array_mut().unwrap();
                if list.len() == index {
                    list.push(Value::Null);
                }
                &mut list[index]
            }
            Err(_) => &mut at[step],
        };
    }
    match &piece["stringValue"] {
        Value::String(more) => *at = json!(at.as_str().unwrap_or("").to_owned() + more),
        _ => *at = piece["numberValue"].clone(),
    }
}

fn gemini(lines: &[&str]) -> (Assembled, Vec<StreamEvent>) {
    assemble(Dialect::Gemini, &frame(lines))
}

fn says(parts: &str, rest: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}}{rest}}}]}}"#)
}

const STOP: &str = r#","finishReason":"STOP""#;

#[test]
fn r44_consecutive_texts_are_joined_and_a_signed_text_is_its_own_part() {
    let (got, events) = gemini(&[
        &says(r#"{"text":"Hm","thought":true}"#, ""),
        &says(r#"{"text":"m.","thought":true}"#, ""),
        &says(r#"{"text":"\u0041"}"#, ""),
        &says(r#"{"text":"b"},{"text":"c"}"#, ""),
        &says(r#"{"text":"d","thoughtSignature":"c2ln"}"#, ""),
        &says(r#"{"text":""}"#, ""),
        &says(r#"{"text":"","thoughtSignature":"ZW5k"}"#, STOP),
    ]);
    assert_eq!(got.status, AnswerStatus::Complete);
    assert_eq!(
        wire_of(&got),
        r#"{"role":"model","parts":[{"text":"Hmm.","thought":true},{"text":"\u0041b"},{"text":"c"},{"text":"d","thoughtSignature":"c2ln"},{"text":"","thoughtSignature":"ZW5k"}]}"#
    );
    assert_eq!((got.text.decode().as_ref(), events_of(&events).text.as_str()), ("Abcd", "Abcd"));
    let thoughts = events.iter().filter(|event| matches!(event, StreamEvent::ReasoningDelta(_)));
    assert_eq!(thoughts.count(), 2);
}

#[test]
fn r44_r45_a_call_returns_unchanged() {
    let call = r#"{"thoughtSignature":"c2ln","functionCall":{"args":{"n":1.10,"n":1E+5,"s":"\ud800\/"},"name":"f"}}"#;
    let (got, events) = gemini(&[&says(call, ""), &says(r#"{"functionCall":{"name":"g","id":"1"}}"#, STOP)]);
    let calls =
        [("", "f", r#"{"n":1.10,"n":1E+5,"s":"\ud800\/"}"#.to_owned(), true), ("1", "g", "{}".to_owned(), true)];
    assert_eq!(calls_of(&got), calls);
    assert_eq!(
        wire_of(&got),
        format!(r#"{{"role":"model","parts":[{call},{{"functionCall":{{"name":"g","id":"1"}}}}]}}"#)
    );
    assert_eq!(events_of(&events).ready, [0, 1]);
}

/// Case 73: calls in one event after the other are calls of their own.
#[test]
fn r44_calls_of_the_same_name_are_not_merged() {
    let call = r#"{"functionCall":{"name":"f","args":{"a":1}}}"#;
    let (got, _) = gemini(&[&says(call, ""), &says(call, ""), &says(&format!("{call},{call}"), STOP)]);
    assert_eq!(got.calls.len(), 4);
}

#[test]
fn r44_arguments_in_fragments_are_joined() {
    let piece = |pieces: &str, goes_on: bool| {
        let more = if goes_on { r#","willContinue":true"# } else { "" };
        says(&format!(r#"{{"functionCall":{{"partialArgs":[{pieces}]{more}}}}}"#), "")
    };
    let lines = [
        says(r#"{"functionCall":{"name":"f","id":"7","willContinue":true},"thoughtSignature":"c2ln"}"#, ""),
        piece(r#"{"jsonPath":"$.a[0]['b c']","stringValue":"x\ud83d","willContinue":true}"#, true),
        piece(r#"{"jsonPath":"$.a[0]['b c']","stringValue":"\ude00"}"#, true),
        piece(r#"{"jsonPath":"$.n","numberValue":1.50},{"jsonPath":"$.t","boolValue":true}"#, true),
        piece(r#"{"jsonPath":"$.a[1]","nullValue":"NULL_VALUE"}"#, false),
        says(r#"{"text":""}"#, STOP),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (got, events) = gemini(&lines);
    let arguments = r#"{"a":[{"b c":"x\ud83d\ude00"},null],"n":1.50,"t":true}"#;
    assert_eq!(calls_of(&got), [("7", "f", arguments.to_owned(), true)]);
    assert_eq!(events_of(&events).arguments[&0], arguments);
    assert_eq!(
        wire_of(&got),
        format!(
            r#"{{"role":"model","parts":[{{"functionCall":{{"name":"f","id":"7","args":{arguments}}},"thoughtSignature":"c2ln"}}]}}"#
        )
    );
    // Without its end it was cut, whatever the reason says; and so it was if a piece has no place.
    for spoilt in [
        vec![lines[0], lines[1], lines[5]],
        vec![lines[0], &piece(r#"{"jsonPath":"$.a[9]","stringValue":"x"}"#, false), lines[5]],
        vec![lines[0], &piece(r#"{"jsonPath":"a","stringValue":"x"}"#, false), lines[5]],
        vec![
            lines[0],
            &piece(r#"{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a.b","stringValue":"x"}"#, false),
            lines[5],
        ],
    ] {
        let (got, _) = gemini(&spoilt);
        assert!(!got.calls[0].executable && got.wire.is_none(), "{spoilt:?}");
    }
}

#[test]
fn r44_usage_is_the_last_report_not_a_sum() {
    let usage = |counts: &str| format!(r#"{{"candidates":[],"usageMetadata":{{{counts}}}}}"#);
    let (got, events) = gemini(&[
        &usage(r#""trafficType":"ON_DEMAND""#),
        &usage(r#""promptTokenCount":9,"candidatesTokenCount":1"#),
        &says(r#"{"text":"x"}"#, STOP),
        &usage(
            r#""promptTokenCount":10,"cachedContentTokenCount":4,"toolUsePromptTokenCount":2,"candidatesTokenCount":3,"thoughtsTokenCount":5"#,
        ),
    ]);
    let last = gemini(&[
        &usage(r#""promptTokenCount":9,"candidatesTokenCount":21,"thoughtsTokenCount":35"#),
        &usage(r#""promptTokenCount":87,"thoughtsTokenCount":78"#),
    ]);
    assert_eq!(last.0.usage.map(|usage| (usage.input, usage.output)), Some((87, 78)));
    let usage = got.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cached_input, usage.reasoning), (12, 8, Some(4), Some(5)));
    assert_eq!(events.iter().filter(|event| matches!(event, StreamEvent::Usage(_))).count(), 2);
}

#[test]
fn r44_finish_reasons_are_mapped() {
    let ends = |reason: &str| {
        gemini(&[&says(r#"{"text":"x"},{"functionCall":{"name":"f"}}"#, &format!(r#","finishReason":"{reason}""#))]).0
    };
    for (reason, status) in [
        ("STOP", AnswerStatus::Complete),
        ("MAX_TOKENS", AnswerStatus::Incomplete),
        ("CONTINUATION", AnswerStatus::Incomplete),
        ("SAFETY", AnswerStatus::Blocked),
        ("RECITATION", AnswerStatus::Blocked),
        ("BLOCKLIST", AnswerStatus::Blocked),
        ("PROHIBITED_CONTENT", AnswerStatus::Blocked),
        ("SPII", AnswerStatus::Blocked),
        ("MALFORMED_FUNCTION_CALL", AnswerStatus::Failed),
        ("UNEXPECTED_TOOL_CALL", AnswerStatus::Failed),
        ("OTHER", AnswerStatus::Failed),
        ("SOMETHING_NEW", AnswerStatus::Failed),
    ] {
        let got = ends(reason);
        assert_eq!((got.status, got.finish_reason.as_deref()), (status, Some(reason)));
        assert_eq!(got.calls[0].executable, status == AnswerStatus::Complete, "{reason}");
        assert_eq!(got.error.is_some(), status == AnswerStatus::Failed, "{reason}");
        assert_eq!(wire_of(&got).contains("functionCall"), status == AnswerStatus::Complete, "{reason}");
    }
    let words = r#","finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: f(""#;
    assert_eq!(gemini(&[&says("", words)]).0.error.unwrap().message, "Malformed function call: f(");
    // Case 65: nothing said that it was done.
    let (cut, _) = gemini(&[&says(r#"{"functionCall":{"name":"f","args":{}}}"#, "")]);
    assert_eq!((cut.status, cut.calls[0].executable, cut.wire), (AnswerStatus::Truncated, false, None));
}

/// Case 74: a prompt that was not let through has no answer.
#[test]
fn r44_a_blocked_prompt_gives_a_blocked_answer() {
    let body = r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":5}}"#;
    let (streamed, _) = gemini(&[body]);
    let whole = read_response(Dialect::Gemini, body.as_bytes());
    for got in [streamed, whole] {
        assert_eq!((got.status, got.finish_reason.as_deref()), (AnswerStatus::Blocked, Some("PROHIBITED_CONTENT")));
        assert!(got.wire.is_none() && got.error.is_none() && got.usage.is_some());
    }
}

#[test]
fn r44_an_error_in_the_stream_fails_the_answer() {
    let error = r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
    let (got, events) = gemini(&[&says(r#"{"text":"x"}"#, ""), error, &says(r#"{"text":"y"}"#, STOP)]);
    assert_eq!((got.status, got.text.decode().as_ref()), (AnswerStatus::Failed, "x"));
    assert_eq!(got.error.unwrap().message, "The model is overloaded.");
    assert!(matches!(events.last(), Some(StreamEvent::Error(_))));
    for body in [error.to_owned(), format!("[{error}]")] {
        let got = read_response(Dialect::Gemini, body.as_bytes());
        assert_eq!((got.status, got.error.unwrap().code.as_deref()), (AnswerStatus::Failed, Some("503")));
    }
}

#[test]
fn r44_the_first_of_several_candidates_is_used() {
    let two = r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]},"finishReason":"MAX_TOKENS"},{"index":0,"content":{"parts":[{"text":"yes"}]},"finishReason":"STOP"}]}"#;
    let (got, _) = gemini(&[two]);
    assert_eq!((got.text.decode().as_ref(), got.status), ("yes", AnswerStatus::Complete));
}

/// Without `alt=sse` the stream is one list: its events are told as they come, and it may be cut anywhere.
#[test]
fn r44_a_json_array_is_read_as_a_stream() {
    let events =
        [says(r#"{"text":"A]\"{ "}"#, ""), says(r#"{"functionCall":{"name":"f","args":{"a":[1,{"b":"}"}]}}}"#, STOP)];
    let framed = gemini(&[&events[0], &events[1]]);
    let list = format!("[{},\r\n{}\n]\n", events[0], events[1]);
    for body in [list.clone(), format!(" \n{list}"), format!("\u{feff}{list}")] {
        assert_eq!(assemble(Dialect::Gemini, &body), framed);
        assert_eq!(read_response(Dialect::Gemini, body.as_bytes()), framed.0);
    }
    let mut assembler = StreamAssembler::new(Dialect::Gemini);
    let mut told = Vec::new();
    assembler.push(&list.as_bytes()[..events[0].len() + 2], &mut told);
    assert_eq!(events_of(&told).text, "A]\"{ ");
    for at in 0..=events[0].len() + events[1].len() {
        let cut = &list[..at];
        let got = assemble(Dialect::Gemini, cut).0;
        assert!(matches!(got.status, AnswerStatus::Truncated), "{cut}");
        assert!(got.calls.iter().all(|call| !call.executable));
    }
    let got = read_response(Dialect::Gemini, b"[]");
    assert_eq!(got.status, AnswerStatus::Failed);
}

#[test]
fn r44_unknown_parts_return_unchanged() {
    let parts = r#"{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK"}},{"toolCall":{"id":"x"},"thoughtSignature":"c2ln"},{"inlineData":{"mimeType":"image/png","data":"AA=="}},{"text":"t","new":1}"#;
    let (got, _) = gemini(&[&says(parts, STOP)]);
    assert_eq!(wire_of(&got), format!(r#"{{"role":"model","parts":[{parts}]}}"#));
    assert_eq!(got.text.decode(), "t");
}

/// Whole responses as Google sent them: their parts return as they came, but for texts that say nothing.
#[test]
fn r20_r43_recorded_whole_responses_return_unchanged() {
    let folder = crate::streams::recorded::data_folder().join("exchanges/gemini");
    let mut read = 0;
    for path in
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).filter(|path| !path.ends_with("index.json"))
    {
        let exchange: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for step in
            exchange["steps"].as_array().unwrap().iter().filter(|step| step["response"]["candidates"].is_array())
        {
            let got = read_response(Dialect::Gemini, step["response"].to_string().as_bytes());
            let mut parts = step["response"]["candidates"][0]["content"]["parts"].as_array().unwrap().clone();
            parts.retain(|part| part["text"] != "" || part["thoughtSignature"].is_string());
            assert_eq!(got.status, AnswerStatus::Complete, "{}", path.display());
            assert_eq!(wire_of(&got), json!({ "role": "model", "parts": parts }).to_string(), "{}", path.display());
            read += 1;
        }
    }
    assert!(read >= 80, "{read} whole responses, 80 at least");
}
