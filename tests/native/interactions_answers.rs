//! Answers of Gemini's interactions: what is read of them, what of them is sent again, and what a run may execute.

use crate::wire_cases::{Stored, with_params};
use rethread::history::{HistoryEntry, Incoming, JoinBase, Origin, join};
use rethread::id::CountingIds;
use rethread::message::{AnswerMeta, Dialect, Role};
use rethread::provider::{AnswerStatus, Assembled, StreamAssembler, StreamEvent, decode_answer, read_response};
use serde_json::{Value, json};

const OWN: Dialect = Dialect::GeminiInteractions;

fn said(text: &str) -> Value {
    json!({ "type": "model_output", "content": [{ "type": "text", "text": text }] })
}

fn user(text: &str) -> Value {
    json!({ "type": "user_input", "content": [{ "type": "text", "text": text }] })
}

fn call(id: &str) -> Value {
    json!({ "type": "function_call", "id": id, "name": "write_to_file", "arguments": { "n": 1 } })
}

fn result(id: &str) -> Value {
    json!({ "type": "function_result", "call_id": id, "name": "write_to_file", "result": "ok" })
}

fn whole(body: &Value) -> Assembled {
    read_response(OWN, body.to_string().as_bytes())
}

/// The answer that these events are, and what was emitted.
fn streamed(events: &[Value]) -> (Assembled, Vec<StreamEvent>) {
    let (mut assembler, mut out) = (StreamAssembler::new(OWN), Vec::new());
    for event in events {
        assembler.push(format!("data: {event}\n\n").as_bytes(), &mut out);
    }
    (assembler.finish(), out)
}

/// The events of a stream of these steps, each with its deltas, up to a status.
fn events(steps: &[(Value, &[Value])], status: &str) -> Vec<Value> {
    let mut events =
        vec![json!({ "event_type": "interaction.created", "interaction": { "id": "i", "status": "in_progress" } })];
    for (index, (step, deltas)) in steps.iter().enumerate() {
        events.push(json!({ "event_type": "step.start", "index": index, "step": step }));
        events.extend(deltas.iter().map(|delta| json!({ "event_type": "step.delta", "index": index, "delta": delta })));
        events.push(json!({ "event_type": "step.stop", "index": index }));
    }
    events.push(json!({ "event_type": "interaction.completed", "interaction": { "id": "i", "status": status } }));
    events
}

fn sent(got: &Assembled) -> Value {
    got.wire.as_ref().map_or(Value::Null, |wire| serde_json::from_str(wire.as_str()).unwrap())
}

/// The input of the next request, after an answer and a result of each of its calls.
fn next_input(got: &Assembled) -> Value {
    let mut stored = Stored::of(OWN, &json!({ "input": [user("Write it")] }));
    let answer = decode_answer(OWN, got.wire.as_ref().unwrap().view()).unwrap();
    stored.append_items(vec![Incoming::Message(answer)]);
    for call in &got.calls {
        stored.append(OWN, &json!({ "input": [result(&call.call_id)] }).to_string());
    }
    stored.append(OWN, &json!({ "input": [user("And?")] }).to_string());
    stored.body(OWN)["input"].clone()
}

#[test]
fn r65_a_call_that_the_service_has_run_is_not_run_again_and_stays_in_place() {
    let steps = [call("a"), result("a"), said("Done.")];
    let body = json!({ "id": "i", "status": "completed", "steps": steps });
    let (streamed_answer, _) = streamed(&events(
        &[
            (
                json!({ "type": "function_call", "id": "a", "name": "write_to_file" }),
                &[json!({ "type": "arguments_delta", "arguments": "{\"n\":1}" })],
            ),
            (
                json!({ "type": "function_result", "call_id": "a", "name": "write_to_file" }),
                &[json!({ "type": "function_result", "call_id": "a", "result": "ok" })],
            ),
            (json!({ "type": "model_output" }), &[json!({ "type": "text", "text": "Done." })]),
        ],
        "completed",
    ));
    for got in [whole(&body), streamed_answer] {
        assert!(got.calls.is_empty(), "{:?}", got.calls);
        assert_eq!(sent(&got), json!(steps));
        assert_eq!(next_input(&got), json!([user("Write it"), steps[0], steps[1], steps[2], user("And?")]));
    }
    // One of two calls waits for the application.
    let steps = [call("a"), result("a"), call("b")];
    let got = whole(&json!({ "id": "i", "status": "requires_action", "steps": steps }));
    assert_eq!(got.calls.iter().map(|call| (&*call.call_id, call.executable)).collect::<Vec<_>>(), [("b", true)]);
    assert_eq!(next_input(&got), json!([user("Write it"), steps[0], steps[1], steps[2], result("b"), user("And?")]));
    // What the service has run is kept of an answer that was cut off; a call that waits is not.
    let got = whole(&json!({ "id": "i", "status": "incomplete", "steps": steps }));
    assert_eq!(sent(&got), json!(steps[..2]));
    // Nothing is left of a call that cannot be sent.
    let broken = json!({ "type": "function_call", "id": "a", "name": "write_to_file", "arguments": 1 });
    let got = whole(&json!({ "id": "i", "status": "completed", "steps": [broken, result("a"), said("Done.")] }));
    assert_eq!((sent(&got), got.calls.len()), (json!([said("Done.")]), 0));
}

#[test]
fn r42_the_signature_of_a_result_goes_to_its_maker_alone() {
    let mut signed = result("a");
    signed["signature"] = json!("UzI=");
    let maker = with_params(OWN, r#"{"model":"gemini-3.6-flash"}"#);
    let other = with_params(OWN, r#"{"model":"gemini-3.8-flash"}"#);
    // The application's own result, and one of a call that the service has run.
    let waits = (vec![call("a")], vec![signed.clone()]);
    let executed = (vec![call("a"), signed.clone(), said("Done.")], vec![]);
    for (steps, results) in [waits, executed] {
        let got = whole(&json!({ "id": "i", "status": "completed", "steps": steps }));
        let answer = decode_answer(OWN, got.wire.as_ref().unwrap().view()).unwrap();
        let mut stored = Stored::of(OWN, &json!({ "input": [user("Write it")] }));
        let joined = join(
            JoinBase::history(&stored.history),
            vec![Incoming::Message(answer)],
            &Origin::default(),
            &CountingIds::default(),
        );
        for mut entry in joined.entries {
            if let HistoryEntry::Message(message) = &mut entry {
                message.answer = Some(Box::new(AnswerMeta { maker: Some(maker.maker()), ..AnswerMeta::default() }));
            }
            stored.history.apply(entry);
        }
        let input = [results, vec![user("And?")]].concat();
        stored.append(OWN, &json!({ "input": input }).to_string());
        assert!(stored.bytes_for(&maker, &[]).0.contains("UzI="));
        let (elsewhere, _) = stored.bytes_for(&other, &[]);
        assert!(!elsewhere.contains("UzI=") && elsewhere.contains("function_result"), "{elsewhere}");
    }
}

#[test]
fn r65_an_answer_without_an_id_and_steps_is_one() {
    let usage = json!({ "total_input_tokens": 7, "total_output_tokens": 0, "total_thought_tokens": 9 });
    let body = json!({ "status": "incomplete", "model": "m", "usage": usage });
    let (streamed_answer, _) = streamed(&[json!({ "event_type": "interaction.completed", "interaction": body })]);
    for got in [whole(&body), streamed_answer] {
        assert_eq!((got.status, got.usage.unwrap().output), (AnswerStatus::Incomplete, 9));
        assert_eq!((got.error, got.finish_reason.as_deref()), (None, Some("incomplete")));
    }
    let failed = whole(&json!({ "status": "failed", "errors": [{ "code": "x", "message": "why" }] }));
    assert_eq!((failed.status, failed.error.unwrap().message.as_str()), (AnswerStatus::Failed, "why"));
    let error = whole(&json!({ "error": { "code": 400, "message": "no", "status": "failed" } }));
    assert_eq!(error.error.unwrap().message, "no");
}

#[test]
fn r65_a_call_whose_arguments_cannot_be_read_does_not_run() {
    let of = |deltas: &[Value]| {
        let start = json!({ "type": "function_call", "id": "a", "name": "f", "arguments": {} });
        let (got, _) = streamed(&events(&[(start, deltas)], "requires_action"));
        (got.calls[0].executable, got.calls[0].arguments.decode().into_owned())
    };
    let delta = |name: &str, value: Value| {
        let mut delta = json!({ "type": "arguments_delta" });
        delta[name] = value;
        delta
    };
    let whole = (true, "{\"to\":\"x\"}".to_owned());
    assert_eq!(of(&[delta("partial_arguments", json!("{\"to\":")), delta("arguments", json!("\"x\"}"))]), whole);
    assert_eq!(of(&[delta("arguments", json!({ "to": "x" }))]), whole);
    assert!(!of(&[delta("text", json!("{\"to\":\"x\"}"))]).0);
    assert!(!of(&[delta("arguments", json!(1)), delta("arguments", json!("{}"))]).0);
    assert_eq!(of(&[]), (true, "{}".to_owned()));
}

#[test]
fn r65_the_error_of_a_step_is_that_of_its_answer() {
    let error = json!({ "code": 3, "message": "blocked" });
    let step = json!({ "type": "model_output", "error": error });
    for status in ["incomplete", "failed"] {
        let got = whole(&json!({ "id": "i", "status": status, "steps": [said("Hi"), step] }));
        let (streamed_answer, _) = streamed(&events(&[(step.clone(), &[])], status));
        for got in [got, streamed_answer] {
            assert_eq!((got.status, got.error.unwrap().message.as_str()), (AnswerStatus::Failed, "blocked"));
        }
    }
    // The model has gone on after it.
    let got = whole(&json!({ "id": "i", "status": "completed", "steps": [step, said("Hi")] }));
    assert_eq!((got.status, got.error), (AnswerStatus::Complete, None));
}

#[test]
fn r44_each_text_between_images_is_emitted_once() {
    let delta = |delta: &str| format!("data: {{\"event_type\":\"step.delta\",\"index\":0,\"delta\":{delta}}}\n\n");
    let mut text =
        "data: {\"event_type\":\"step.start\",\"index\":0,\"step\":{\"type\":\"model_output\"}}\n\n".to_owned();
    text.push_str(&(delta(r#"{"type":"image","uri":"u"}"#) + &delta(r#"{"type":"text","text":"a"}"#)).repeat(100));
    let (mut assembler, mut out) = (StreamAssembler::new(OWN), Vec::new());
    assembler.push(text.as_bytes(), &mut out);
    assert_eq!(out.len(), 100);
}

#[test]
fn r65_a_content_in_place_of_a_list_is_read() {
    let step = json!({ "type": "model_output", "content": { "type": "text", "text": "x" } });
    let stored = Stored::of(OWN, &json!({ "input": [user("Hi"), step, user("And?")] }));
    assert_eq!(stored.body(OWN)["input"], json!([user("Hi"), said("x"), user("And?")]));
    let got = whole(&json!({ "id": "i", "status": "completed", "steps": [step] }));
    assert_eq!((sent(&got), &*got.text.decode()), (json!([said("x")]), "x"));
}

#[test]
fn r65_what_the_user_said_is_not_the_answer() {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let echoed = (json!({ "type": "user_input" }), &[text("Hi")][..]);
    let (got, events) = streamed(&events(&[echoed, (json!({ "type": "model_output" }), &[text("Yes.")])], "completed"));
    assert_eq!((sent(&got), &*got.text.decode()), (json!([said("Yes.")]), "Yes."));
    assert_eq!(events.iter().filter(|event| matches!(event, StreamEvent::TextDelta(_))).count(), 1);
}

#[test]
fn r65_contents_whose_first_one_was_removed_are_no_steps() {
    let new = json!({ "type": "new_content", "a": 1 });
    let text = |text: &str| json!({ "type": "text", "text": text, "annotations": [] });
    let file = json!({ "type": "document", "uri": "files/a" });
    let step = json!({ "type": "model_output", "content": [text("a"), new, text("b"), file] });
    let given = Stored::of(OWN, &json!({ "input": [user("Hi"), step, user("And?")] }));
    assert_eq!(given.body(OWN)["input"][1], step);
    let mut left = Stored::new();
    for mut message in given.history.messages().iter().cloned() {
        if message.role == Role::Assistant {
            message.parts.remove(0);
        }
        left.history.apply(HistoryEntry::Message(message));
    }
    let rest = json!({ "type": "model_output", "content": [new, { "type": "text", "text": "b" }, file] });
    assert_eq!(left.body(OWN)["input"], json!([user("Hi"), rest, user("And?")]));
}
