//! Gemini's interactions: steps through a history, and answers, whole and streamed.

use crate::wire_cases::{Stored, with_params};
use rethread::finding::{FindingCode, Severity};
use rethread::json::JsonRef;
use rethread::message::{Dialect, PartBody};
use rethread::provider::{
    AnswerStatus, Assembled, RepairOptions, StreamAssembler, StreamEvent, decode_body, drop_unavailable_tool_choice,
    read_response, repair, validate,
};
use rethread::render::convert;
use serde_json::{Value, json};

const OWN: Dialect = Dialect::GeminiInteractions;

fn user(text: &str) -> Value {
    json!({ "type": "user_input", "content": [{ "type": "text", "text": text }] })
}

fn said(text: &str) -> Value {
    json!({ "type": "model_output", "content": [{ "type": "text", "text": text }] })
}

/// Steps with all that they may have.
fn steps() -> Vec<Value> {
    vec![
        json!({ "type": "user_input", "content": [
            { "type": "text", "text": "What is this?" },
            { "type": "image", "data": "iVBORw0KGgo=", "mime_type": "image/png", "resolution": "high" },
            { "type": "document", "uri": "https://example.com/a.pdf", "mime_type": "application/pdf" },
        ] }),
        json!({ "type": "thought", "signature": "c2lnMQ==", "summary": [
            { "type": "text", "text": "First" }, { "type": "text", "text": "Second" },
        ] }),
        json!({ "type": "function_call", "id": "a", "name": "look", "arguments": { "n": 9007199254740993_u64 } }),
        json!({ "type": "thought", "signature": "c2lnMg==" }),
        json!({ "type": "function_call", "id": "b", "name": "look", "arguments": {}, "signature": "c2lnMw==" }),
        json!({ "type": "function_result", "call_id": "a", "name": "look", "result": { "degrees": 21 } }),
        json!({ "type": "function_result", "call_id": "b", "name": "look", "result": [{ "type": "text", "text": "gone" }], "is_error": true }),
        json!({ "type": "google_search_call", "id": "s", "arguments": { "queries": ["q"] }, "signature": "c2lnNA==" }),
        json!({ "type": "google_search_result", "call_id": "s", "result": [], "signature": "c2lnNQ==" }),
        json!({ "type": "new_step", "a": [1] }),
        json!({ "type": "model_output", "content": [
            { "type": "text", "text": "A cat. ", "annotations": [{ "type": "url_citation", "url": "https://x" }] },
            { "type": "image", "data": "AA==", "mime_type": "image/png" },
            { "type": "text", "text": "Yes." },
        ] }),
        user("Sure?"),
    ]
}

#[test]
fn r65_steps_come_back_as_they_were() {
    let body = json!({ "model": "m", "system_instruction": "Be brief.", "input": steps() });
    assert!(validate(body.to_string().as_bytes(), OWN).is_empty());
    let out = Stored::of(OWN, &body).body(OWN);
    assert_eq!(out["input"], json!(steps()));
    assert_eq!(out["system_instruction"], "Be brief.");
    // The body has the history, so Google need not keep it.
    assert_eq!(out["store"], false);
}

#[test]
fn r65_the_older_form_of_interactions_is_read_and_written_as_steps() {
    let older = json!({ "input": [
        { "role": "user", "content": "Weather?" },
        { "role": "model", "content": [
            { "type": "thought", "signature": "c2ln" },
            { "type": "text", "text": "I look." },
            { "type": "function_call", "id": "a", "name": "f", "arguments": {} },
        ] },
        { "role": "user", "content": [{ "type": "function_result", "call_id": "a", "name": "f", "result": "21" }] },
        { "role": "model", "content": [{ "type": "text", "text": "Mild." }] },
        { "role": "user", "content": [{ "type": "text", "text": "And now?" }] },
    ] });
    let newer = json!([
        user("Weather?"),
        { "type": "thought", "signature": "c2ln" },
        said("I look."),
        { "type": "function_call", "id": "a", "name": "f", "arguments": {} },
        { "type": "function_result", "call_id": "a", "name": "f", "result": "21" },
        said("Mild."),
        user("And now?"),
    ]);
    assert_eq!(Stored::of(OWN, &older).body(OWN)["input"], newer);
    let (repaired, _) = repair(older.to_string().as_bytes(), OWN, &RepairOptions::default()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&repaired).unwrap()["input"], newer);
    // What the user says may stand without a step: a text, a content, contents.
    for input in [json!("Hi"), json!({ "type": "text", "text": "Hi" }), json!([{ "type": "text", "text": "Hi" }])] {
        let body = json!({ "input": input });
        assert!(validate(body.to_string().as_bytes(), OWN).iter().all(|found| found.severity != Severity::Error));
        assert_eq!(Stored::of(OWN, &body).body(OWN)["input"], json!([user("Hi")]), "{body}");
    }
}

#[test]
fn r42_r65_thoughts_stay_with_their_provider_and_results_keep_what_they_are() {
    let body = json!({ "input": steps() }).to_string();
    for to in Dialect::ALL.into_iter().filter(|to| *to != OWN) {
        let (out, _) = convert(body.as_bytes(), OWN, to, &RepairOptions::default()).unwrap();
        let out = String::from_utf8(out).unwrap();
        for signature in ["c2lnMQ", "c2lnMg", "c2lnMw", "c2lnNA", "c2lnNQ"] {
            assert!(!out.contains(signature), "{to:?} {out}");
        }
        assert!(out.contains("9007199254740993") && out.contains("degrees") && out.contains("gone"), "{to:?} {out}");
        assert!(out.contains("A cat. ") && out.contains("Sure?"), "{to:?} {out}");
    }
}

#[test]
fn r65_parameters_and_tool_choice_are_in_generation_config() {
    let tools = json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    let choice = json!({ "type": "function", "function": { "name": "f" } });
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hi" }], "max_tokens": 9, "temperature": 0.5,
        "stop": "END", "tools": tools, "tool_choice": choice });
    let (out, _) = convert(body.to_string().as_bytes(), Dialect::OpenAiChat, OWN, &RepairOptions::default()).unwrap();
    let out: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        out["generation_config"],
        json!({ "max_output_tokens": 9, "temperature": 0.5, "stop_sequences": ["END"],
            "tool_choice": { "allowed_tools": { "mode": "any", "tools": ["f"] } } })
    );
    assert_eq!(out["tools"], json!([{ "type": "function", "name": "f", "parameters": { "type": "object" } }]));
    assert!(out.get("tool_choice").is_none() && out.get("max_tokens").is_none(), "{out}");
    let (back, _) = convert(out.to_string().as_bytes(), OWN, Dialect::OpenAiChat, &RepairOptions::default()).unwrap();
    let back: Value = serde_json::from_slice(&back).unwrap();
    assert_eq!((&back["tool_choice"], &back["temperature"]), (&body["tool_choice"], &body["temperature"]));
    // What the application has in it stays.
    let own = with_params(
        OWN,
        r#"{"model":"m","store":true,"generation_config":{"thinking_level":"high","seed":1},"seed":2,"temperature":0.5}"#,
    );
    let (text, _) = Stored::of(OWN, &json!({ "input": "Hi" })).bytes_for(&own, &[]);
    let out: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(out["generation_config"], json!({ "thinking_level": "high", "seed": 1, "temperature": 0.5 }));
    assert_eq!(out["store"], true);
}

#[test]
fn r65_a_request_with_a_token_may_lack_its_input() {
    let body = r#"{"model":"m","previous_interaction_id":"v1_1","continuation_token":"t"}"#;
    assert!(validate(body.as_bytes(), OWN).is_empty());
    assert_eq!(repair(body.as_bytes(), OWN, &RepairOptions::default()).unwrap().0, body.as_bytes());
    assert_eq!(decode_body(OWN, JsonRef::parse(body).unwrap()).unwrap().len(), 0);
    let without = validate(br#"{"model":"m"}"#, OWN);
    assert!(without.iter().any(|found| found.code == FindingCode::Malformed));
}

/// The events of a stream.
fn stream(events: &[Value]) -> (Assembled, Vec<StreamEvent>) {
    let (mut assembler, mut out) = (StreamAssembler::new(OWN), Vec::new());
    for event in events {
        assembler
            .push(format!("event: {}\ndata: {event}\n\n", event["event_type"].as_str().unwrap()).as_bytes(), &mut out);
    }
    (assembler.finish(), out)
}

fn value_of(got: &Assembled) -> Value {
    got.wire.as_ref().map_or(Value::Null, |wire| serde_json::from_str(wire.as_str()).unwrap())
}

#[test]
fn r65_an_interaction_that_is_streamed_or_whole_is_the_same() {
    let delta = |index: u64, delta: Value| json!({ "event_type": "step.delta", "index": index, "delta": delta });
    let start = |index: u64, step: Value| json!({ "event_type": "step.start", "index": index, "step": step });
    let stop = |index: u64| json!({ "event_type": "step.stop", "index": index });
    let usage = json!({ "total_input_tokens": 7, "total_output_tokens": 5, "total_thought_tokens": 3, "total_cached_tokens": 2 });
    let (got, events) = stream(&[
        json!({ "event_type": "interaction.created", "interaction": { "id": "v1_1", "status": "in_progress", "model": "m" } }),
        json!({ "event_type": "interaction.status_update", "interaction_id": "v1_1", "status": "in_progress" }),
        start(0, json!({ "type": "thought" })),
        delta(0, json!({ "type": "thought_summary", "content": { "type": "text", "text": "Hm" } })),
        delta(0, json!({ "type": "thought_summary", "content": { "type": "text", "text": "m." } })),
        delta(0, json!({ "type": "thought_signature", "signature": "c2ln" })),
        stop(0),
        start(1, json!({ "type": "google_search_call", "id": "s", "arguments": {} })),
        delta(1, json!({ "type": "google_search_call", "arguments": { "queries": ["q"] }, "signature": "c2lu" })),
        stop(1),
        start(2, json!({ "type": "model_output" })),
        delta(2, json!({ "type": "text", "text": "I " })),
        delta(2, json!({ "type": "text", "text": "look." })),
        delta(2, json!({ "type": "text_annotation_delta", "annotations": [{ "type": "url_citation", "url": "u" }] })),
        stop(2),
        start(3, json!({ "type": "function_call", "id": "a", "name": "f", "arguments": {} })),
        delta(3, json!({ "type": "arguments_delta", "arguments": "{\"n\":" })),
        delta(3, json!({ "type": "arguments_delta", "arguments": "1}" })),
        stop(3),
        json!({ "event_type": "interaction.completed", "interaction": { "id": "v1_1", "status": "requires_action", "usage": usage } }),
    ]);
    let steps = json!([
        { "type": "thought", "signature": "c2ln", "summary": [{ "type": "text", "text": "Hmm." }] },
        { "type": "google_search_call", "id": "s", "arguments": { "queries": ["q"] }, "signature": "c2lu" },
        { "type": "model_output", "content": [{ "type": "text", "text": "I look.", "annotations": [{ "type": "url_citation", "url": "u" }] }] },
        { "type": "function_call", "id": "a", "name": "f", "arguments": { "n": 1 } },
    ]);
    assert_eq!((got.status, value_of(&got)), (AnswerStatus::Complete, steps.clone()));
    assert_eq!((got.response_id.as_deref(), got.model.as_deref()), (Some("v1_1"), Some("m")));
    let counted = got.usage.unwrap();
    assert_eq!((counted.input, counted.output, counted.cached_input, counted.reasoning), (7, 8, Some(2), Some(3)));
    let reasoning: String = events
        .iter()
        .filter_map(|event| if let StreamEvent::ReasoningDelta(text) = event { Some(text.decode()) } else { None })
        .collect();
    assert_eq!((reasoning.as_str(), &*got.text.decode()), ("Hmm.", "I look."));
    let body = json!({ "id": "v1_1", "status": "requires_action", "model": "m", "usage": usage, "steps": steps });
    let whole = read_response(OWN, body.to_string().as_bytes());
    assert_eq!((&whole.wire, &whole.calls, whole.usage), (&got.wire, &got.calls, got.usage));
    // As it was before 2026-06-08.
    let outputs = json!([{ "type": "thought", "signature": "c2ln" }, { "type": "text", "text": "Hi" }]);
    let older =
        read_response(OWN, json!({ "id": "i", "status": "completed", "outputs": outputs }).to_string().as_bytes());
    assert_eq!(value_of(&older), json!([{ "type": "thought", "signature": "c2ln" }, said("Hi")]));
    let (older, _) = stream(&[
        json!({ "event_type": "interaction.start", "interaction": { "id": "i", "status": "in_progress" } }),
        json!({ "event_type": "content.start", "index": 0, "content": { "type": "text" } }),
        json!({ "event_type": "content.delta", "index": 0, "delta": { "type": "text", "text": "Hi" } }),
        json!({ "event_type": "content.stop", "index": 0 }),
        json!({ "event_type": "interaction.complete", "interaction": { "id": "i", "status": "completed" } }),
    ]);
    assert_eq!(value_of(&older), json!([said("Hi")]));
}

#[test]
fn r65_a_status_of_an_interaction_is_that_of_its_answer() {
    for (status, expected, is_executable) in [
        ("completed", AnswerStatus::Complete, true),
        ("requires_action", AnswerStatus::Complete, true),
        ("incomplete", AnswerStatus::Incomplete, false),
        ("budget_exceeded", AnswerStatus::Incomplete, false),
        ("requires_continuation", AnswerStatus::Incomplete, false),
        ("failed", AnswerStatus::Failed, false),
        ("cancelled", AnswerStatus::Failed, false),
        ("in_progress", AnswerStatus::Truncated, false),
    ] {
        let call = json!({ "type": "function_call", "id": "a", "name": "f", "arguments": {} });
        let body = json!({ "id": "i", "status": status, "steps": [said("Hi"), call] });
        let got = read_response(OWN, body.to_string().as_bytes());
        assert_eq!((got.status, got.finish_reason.as_deref()), (expected, Some(status)));
        assert_eq!(got.calls[0].executable, is_executable, "{status}");
        assert_eq!(value_of(&got).to_string().contains("function_call"), is_executable, "{status}");
    }
    // A thought without its signature cannot be sent again.
    let body = json!({ "id": "i", "status": "completed", "steps": [{ "type": "thought", "summary": [] }, said("Hi")] });
    assert_eq!(value_of(&read_response(OWN, body.to_string().as_bytes())), json!([said("Hi")]));
}

#[test]
fn r65_a_thought_is_reasoning_in_the_view() {
    let body = json!({ "input": steps() });
    let stored = Stored::of(OWN, &body);
    let parts: Vec<&PartBody> = stored.history.messages()[1].parts.iter().map(|part| &part.body).collect();
    assert!(
        matches!(parts[..3], [PartBody::Reasoning(_), PartBody::Reasoning(_), PartBody::ToolCall { .. }]),
        "{parts:?}"
    );
}

#[test]
fn r20_a_call_that_begins_with_an_empty_signature_is_plain() {
    let event = |name: &str, data: Value| {
        let mut event = json!({ "event_type": name });
        event.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
        event
    };
    let call = json!({ "id": "a", "signature": "", "type": "function_call", "name": "f", "arguments": {} });
    let (got, _) = stream(&[
        event(
            "interaction.created",
            json!({ "interaction": { "id": "v1_1", "status": "in_progress", "object": "interaction", "model": "m" } }),
        ),
        event("step.start", json!({ "index": 0, "step": { "type": "thought" } })),
        event("step.delta", json!({ "index": 0, "delta": { "signature": "c2ln", "type": "thought_signature" } })),
        event("step.stop", json!({ "index": 0 })),
        event("step.start", json!({ "index": 1, "step": call })),
        event("step.delta", json!({ "index": 1, "delta": { "arguments": "{\"n\":1}", "type": "arguments_delta" } })),
        event("step.stop", json!({ "index": 1 })),
        event("interaction.completed", json!({ "interaction": { "id": "v1_1", "status": "requires_action" } })),
    ]);
    let steps = json!([
        { "type": "thought", "signature": "c2ln" },
        { "type": "function_call", "id": "a", "name": "f", "arguments": { "n": 1 } },
    ]);
    assert_eq!((got.status, value_of(&got)), (AnswerStatus::Complete, steps.clone()));
    let mut whole = json!({ "id": "v1_1", "status": "requires_action", "model": "m", "steps": steps });
    whole["steps"][1]["signature"] = json!("");
    let whole = read_response(OWN, whole.to_string().as_bytes());
    assert_eq!((&whole.wire, &whole.calls), (&got.wire, &got.calls));
}

/// The events of an answer with these deltas in its only step.
fn stream_of(step: &Value, deltas: &[Value]) -> Value {
    let mut events = vec![
        json!({ "event_type": "interaction.created", "interaction": { "id": "i", "status": "in_progress" } }),
        json!({ "event_type": "step.start", "index": 0, "step": step }),
    ];
    events.extend(deltas.iter().map(|delta| json!({ "event_type": "step.delta", "index": 0, "delta": delta })));
    events.push(json!({ "event_type": "step.stop", "index": 0 }));
    events.push(json!({ "event_type": "interaction.completed", "interaction": { "id": "i", "status": "completed" } }));
    value_of(&stream(&events).0)
}

#[test]
fn r20_a_delta_of_an_unknown_type_adds_no_member_to_a_known_step() {
    let unknown = json!({ "type": "new_delta", "foo": 1 });
    let signature = json!({ "type": "thought_signature", "signature": "c2ln" });
    let text = json!({ "type": "text", "text": "Hi" });
    let output = json!({ "type": "model_output" });
    assert_eq!(stream_of(&output, &[text.clone(), unknown.clone(), signature.clone()]), json!([said("Hi")]));
    let signed = json!([{ "type": "thought", "signature": "c2ln" }]);
    assert_eq!(stream_of(&json!({ "type": "thought" }), &[unknown.clone(), signature]), signed);
    let call = json!({ "type": "function_call", "id": "a", "name": "f", "arguments": {} });
    assert_eq!(stream_of(&call, std::slice::from_ref(&unknown)), json!([call]));
    // A step of an unknown type is kept as it comes.
    let new = json!({ "type": "new_step", "foo": 1 });
    assert_eq!(stream_of(&json!({ "type": "new_step" }), &[unknown]), json!([new]));
    // Annotations as streams had them before 2026-06-08.
    let annotations = json!([{ "type": "url_citation", "url": "u" }]);
    let older = json!({ "type": "text_annotation", "annotations": annotations });
    let annotated =
        json!([{ "type": "model_output", "content": [{ "type": "text", "text": "Hi", "annotations": annotations }] }]);
    assert_eq!(stream_of(&output, &[text, older]), annotated);
}

#[test]
fn r65_a_stream_that_is_cut_or_ends_with_a_status_has_its_usage() {
    let usage = |output: u64| json!({ "total_input_tokens": 7, "total_output_tokens": output });
    let started = [
        json!({ "event_type": "interaction.created", "interaction": { "id": "i", "status": "in_progress" } }),
        json!({ "event_type": "step.start", "index": 0, "step": { "type": "model_output" } }),
        json!({ "event_type": "step.delta", "index": 0, "delta": { "type": "text", "text": "Hi" }, "metadata": { "total_usage": usage(1) } }),
    ];
    let (cut, events) = stream(&started);
    assert_eq!((cut.status, cut.usage.map(|usage| usage.output)), (AnswerStatus::Truncated, Some(1)));
    assert!(events.iter().any(|event| matches!(event, StreamEvent::Usage(_))));
    let stop = json!({ "event_type": "step.stop", "index": 0, "usage": usage(2), "step_usage": usage(9) });
    for (end, expected) in [
        (json!({ "event_type": "interaction.requires_action", "interaction_id": "i" }), AnswerStatus::Complete),
        (json!({ "event_type": "interaction.status_update", "status": "requires_action" }), AnswerStatus::Complete),
        (json!({ "event_type": "interaction.status_update", "status": "budget_exceeded" }), AnswerStatus::Incomplete),
        (json!({ "event_type": "interaction.in_progress" }), AnswerStatus::Truncated),
        (json!({ "event_type": "interaction.status_update", "status": "in_progress" }), AnswerStatus::Truncated),
    ] {
        let events = [started.to_vec(), vec![stop.clone(), end.clone()]].concat();
        let (got, _) = stream(&events);
        assert_eq!((got.status, got.usage.map(|usage| usage.output)), (expected, Some(2)), "{end}");
    }
}

#[test]
fn r42_an_image_of_the_assistant_is_kept() {
    let image = json!({ "inlineData": { "mimeType": "image/png", "data": "AA==" } });
    let given = json!({ "contents": [
        { "role": "user", "parts": [{ "text": "Draw" }] },
        { "role": "model", "parts": [{ "text": "Here:" }, image] },
        { "role": "user", "parts": [{ "text": "Thanks" }] },
    ] });
    let (out, report) = convert(given.to_string().as_bytes(), Dialect::Gemini, OWN, &RepairOptions::default()).unwrap();
    let out: Value = serde_json::from_slice(&out).unwrap();
    let image = json!({ "type": "image", "data": "AA==", "mime_type": "image/png" });
    let shown = json!({ "type": "model_output", "content": [image] });
    assert_eq!(out["input"], json!([user("Draw"), said("Here:"), shown, user("Thanks")]), "{report:?}");
    assert!(report.is_empty(), "{report:?}");
}

#[test]
fn r65_top_k_is_a_member_of_generation_config() {
    let body = json!({ "model": "m", "max_tokens": 9, "top_k": 5, "messages": [{ "role": "user", "content": "Hi" }] });
    let (out, _) = convert(body.to_string().as_bytes(), Dialect::Anthropic, OWN, &RepairOptions::default()).unwrap();
    let out: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!((&out["generation_config"]["top_k"], out.get("top_k")), (&json!(5), None));
    let (back, _) = convert(out.to_string().as_bytes(), OWN, Dialect::Anthropic, &RepairOptions::default()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&back).unwrap()["top_k"], 5);
}

#[test]
fn r55_a_tool_choice_is_dropped_only_from_the_objects_that_hold_it() {
    let choice = json!({ "type": "function", "function": { "name": "search" } });
    let dropped = |params: Value| {
        let text = params.to_string();
        drop_unavailable_tool_choice(JsonRef::parse(&text).unwrap(), &|_| false)
            .map(|params| params.as_str().to_owned())
    };
    for group in ["extra_body", "metadata", "provider"] {
        assert_eq!(dropped(json!({ "model": "m", group: { "tool_choice": choice } })), None, "{group}");
    }
    for group in ["generation_config", "completion_args"] {
        let left = json!({ "model": "m", group: { "seed": 1 } }).to_string();
        assert_eq!(dropped(json!({ "model": "m", group: { "seed": 1, "tool_choice": choice } })), Some(left));
    }
    assert_eq!(dropped(json!({ "tool_choice": choice })), Some("{}".into()));
}

#[test]
fn r65_an_answer_in_the_background_is_kept_by_the_service() {
    let hi = Stored::of(OWN, &json!({ "input": "Hi" }));
    let (text, report) = hi.bytes_for(&with_params(OWN, r#"{"model":"m","background":true}"#), &[]);
    let out: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&out["background"], &out["store"], report.len()), (&json!(true), &json!(true), 0));
    let (text, report) = hi.bytes_for(&with_params(OWN, r#"{"model":"m","background":false}"#), &[]);
    let out: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&out["background"], &out["store"], report.len()), (&json!(false), &json!(false), 0));
}

#[test]
fn r65_tools_with_which_the_model_calls_have_a_choice() {
    for tool in ["computer_use", "mcp_server", "google_search"] {
        let params =
            json!({ "model": "m", "tools": [{ "type": tool }], "generation_config": { "tool_choice": "any" } });
        let (text, _) =
            Stored::of(OWN, &json!({ "input": "Hi" })).bytes_for(&with_params(OWN, &params.to_string()), &[]);
        assert_eq!(text.contains("tool_choice"), tool != "google_search", "{text}");
    }
}
