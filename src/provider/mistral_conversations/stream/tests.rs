//! R77: answers of Mistral's conversations, streamed and whole.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::ConversationAssembler;
use crate::provider::stream::{AnswerStatus, Assembled, StreamAssembler, StreamEvent};

const STARTED: &str =
    r#"{"type":"conversation.response.started","created_at":"2026-11-28T10:00:00Z","conversation_id":"conv_1"}"#;
const DONE: &str =
    r#"{"type":"conversation.response.done","usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}"#;

fn read(bytes: &str) -> (Assembled, Vec<StreamEvent>) {
    let mut assembler = StreamAssembler::of(Box::new(ConversationAssembler::default()));
    let mut events = Vec::new();
    assembler.push(bytes.as_bytes(), &mut events);
    let assembled = assembler.finish_into(&mut events);
    (assembled, events)
}

fn streamed(events: &[&str]) -> (Assembled, Vec<StreamEvent>) {
    read(&events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>())
}

fn wire_of(answer: &Assembled) -> &str {
    answer.wire.as_ref().map_or("", |wire| wire.as_str())
}

const STREAM: [&str; 8] = [
    STARTED,
    r#"{"type":"message.output.delta","output_index":0,"id":"msg_1","content_index":0,"model":"m","role":"assistant","content":{"type":"thinking","thinking":[{"type":"text","text":"H"}]}}"#,
    r#"{"type":"message.output.delta","output_index":0,"id":"msg_1","content_index":0,"model":"m","role":"assistant","content":{"type":"thinking","thinking":[{"type":"text","text":"m"}]}}"#,
    r#"{"type":"message.output.delta","output_index":0,"id":"msg_1","content_index":1,"model":"m","role":"assistant","content":"I "}"#,
    r#"{"type":"message.output.delta","output_index":0,"id":"msg_1","content_index":1,"model":"m","role":"assistant","content":"look."}"#,
    r#"{"type":"function.call.delta","output_index":1,"id":"fc_1","model":"m","name":"look","tool_call_id":"abcdefgh1","arguments":"{\"a\""}"#,
    r#"{"type":"function.call.delta","output_index":1,"id":"fc_1","model":"m","name":"look","tool_call_id":"abcdefgh1","arguments":":1}"}"#,
    DONE,
];

const WHOLE: &str = r#"{"object":"conversation.response","conversation_id":"conv_1","outputs":[
    {"object":"entry","type":"message.output","created_at":"2026-11-28T10:00:00Z","completed_at":null,"id":"msg_1","model":"m","agent_id":null,"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]},{"type":"text","text":"I look."}]},
    {"object":"entry","type":"function.call","id":"fc_1","model":"m","tool_call_id":"abcdefgh1","name":"look","arguments":"{\"a\":1}"}
],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}"#;

const ENTRIES: &str = r#"[{"type":"message.output","id":"msg_1","model":"m","role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]},{"type":"text","text":"I look."}]},{"type":"function.call","id":"fc_1","model":"m","name":"look","tool_call_id":"abcdefgh1","arguments":"{\"a\":1}"}]"#;

#[test]
fn r77_a_streamed_conversation_is_assembled_as_a_whole_one() {
    let (streamed, events) = streamed(&STREAM);
    let (whole, _) = read(WHOLE);
    assert_eq!(wire_of(&streamed), ENTRIES);
    // The members of a call are in the order of the answer.
    let sorted =
        ENTRIES.replace(r#""name":"look","tool_call_id":"abcdefgh1""#, r#""tool_call_id":"abcdefgh1","name":"look""#);
    assert_eq!(wire_of(&whole), sorted);
    for answer in [&streamed, &whole] {
        assert_eq!((answer.status, &*answer.text.decode()), (AnswerStatus::Complete, "I look."));
        assert_eq!((answer.response_id.as_deref(), &answer.conversation_id), (Some("conv_1"), &None));
        assert_eq!(answer.model.as_deref(), Some("m"));
        assert_eq!(answer.usage.map(|usage| (usage.input, usage.output)), Some((9, 4)));
        let [call] = answer.calls.as_slice() else { panic!("{:?}", answer.calls) };
        assert_eq!((&*call.call_id, &*call.name, &*call.arguments.decode()), ("abcdefgh1", "look", "{\"a\":1}"));
        assert!(call.executable);
    }
    let texts: String = events
        .iter()
        .map(|event| match event {
            StreamEvent::TextDelta(text) => text.decode().into_owned(),
            StreamEvent::ReasoningDelta(text) => format!("({})", text.decode()),
            StreamEvent::ArgumentsDelta { json, .. } => json.decode().into_owned(),
            _ => String::new(),
        })
        .collect();
    assert_eq!(texts, "(H)(m)I look.{\"a\":1}");
}

#[test]
fn r77_parallel_calls_and_tools_of_the_service_keep_their_order() {
    let (answer, _) = streamed(&[
        STARTED,
        r#"{"type":"tool.execution.started","output_index":0,"id":"tool_1","name":"web_search","arguments":""}"#,
        r#"{"type":"tool.execution.delta","output_index":0,"id":"tool_1","name":"web_search","arguments":"{\"q\":1}"}"#,
        r#"{"type":"tool.execution.done","output_index":0,"id":"tool_1","name":"web_search","info":{"n":2}}"#,
        r#"{"type":"agent.handoff.started","output_index":1,"id":"h","previous_agent_id":"a","previous_agent_name":"A"}"#,
        r#"{"type":"agent.handoff.done","output_index":1,"id":"h","next_agent_id":"b","next_agent_name":"B"}"#,
        r#"{"type":"function.call.delta","output_index":2,"id":"fc","name":"f","tool_call_id":"aaaaaaaa1","arguments":"{"}"#,
        r#"{"type":"function.call.delta","output_index":2,"id":"fc","name":"f","tool_call_id":"aaaaaaaa2","arguments":"{}"}"#,
        r#"{"type":"function.call.delta","output_index":2,"id":"fc","name":"f","tool_call_id":"aaaaaaaa1","arguments":"}"}"#,
        DONE,
    ]);
    let calls: Vec<_> = answer.calls.iter().map(|call| (call.call_id.as_str(), call.executable)).collect();
    assert_eq!(calls, [("aaaaaaaa1", true), ("aaaaaaaa2", true)]);
    assert_eq!(
        wire_of(&answer),
        concat!(
            r#"[{"type":"tool.execution","id":"tool_1","name":"web_search","info":{"n":2},"arguments":"{\"q\":1}"},"#,
            r#"{"type":"agent.handoff","id":"h","previous_agent_id":"a","previous_agent_name":"A","next_agent_id":"b","next_agent_name":"B"},"#,
            r#"{"type":"function.call","id":"fc","name":"f","tool_call_id":"aaaaaaaa1","arguments":"{}"},"#,
            r#"{"type":"function.call","id":"fc","name":"f","tool_call_id":"aaaaaaaa2","arguments":"{}"}]"#
        )
    );
}

/// The events of a built-in tool, in the recorded form: each has a `function` beside its name.
const EXECUTION: [&str; 4] = [
    r#"{"type":"tool.execution.started","output_index":0,"id":"t","model":"m","name":"code_interpreter","arguments":"","function":"code_interpreter"}"#,
    r#"{"type":"tool.execution.delta","output_index":0,"id":"t","name":"code_interpreter","arguments":"{\"code\"","function":"code_interpreter"}"#,
    r#"{"type":"tool.execution.delta","output_index":0,"id":"t","name":"code_interpreter","arguments":":\"1\"}","function":"code_interpreter"}"#,
    r#"{"type":"tool.execution.done","output_index":0,"id":"t","name":"code_interpreter","function":"code_interpreter","info":{"code_output":"1\n"}}"#,
];

#[test]
fn r77_an_execution_is_stored_as_it_was_received() {
    const USAGE: &str = r#"{"type":"conversation.response.done","usage":{"prompt_tokens":240,"completion_tokens":35,"total_tokens":280,"connector_tokens":5}}"#;
    let (answer, _) = streamed(&[&[STARTED], EXECUTION.as_slice(), &[USAGE]].concat());
    let sent = r#"[{"type":"tool.execution","id":"t","model":"m","name":"code_interpreter","function":"code_interpreter","info":{"code_output":"1\n"},"arguments":"{\"code\":\"1\"}"}]"#;
    assert_eq!(wire_of(&answer), sent);
    assert_eq!(answer.usage.map(|usage| usage.input + usage.output), Some(280));
    let whole = r#"{"outputs":[{"object":"entry","type":"tool.execution","id":"t","model":"m","name":"code_interpreter","arguments":"{\"code\":\"1\"}","function":"code_interpreter","info":{"code_output":"1\n"}}]}"#;
    assert_eq!(wire_of(&read(whole).0), sent);
    // One without a name has that of its function.
    let nameless = r#"{"outputs":[{"type":"tool.execution","function":"open_url","arguments":"{}"}]}"#;
    assert_eq!(wire_of(&read(nameless).0), r#"[{"type":"tool.execution","function":"open_url","arguments":"{}"}]"#);
}

#[test]
fn r20_r77_an_entry_of_a_newer_type_is_kept_as_it_was_received() {
    let whole = r#"{"outputs":[{"object":"entry","type":"agent.note","id":"n","role":"assistant","content":"Hi","arguments":"{}"}]}"#;
    let kept = r#"[{"type":"agent.note","id":"n","role":"assistant","content":"Hi","arguments":"{}"}]"#;
    assert_eq!(wire_of(&read(whole).0), kept);
    assert_eq!(wire_of(&read(r#"{"outputs":[{"note":"x"}]}"#).0), "");
}

#[test]
fn r20_r77_a_list_that_each_event_has_is_stored_once() {
    let delta = |text: &str| {
        format!(
            r#"{{"type":"message.output.delta","output_index":0,"id":"o","guards":["a"],"role":"assistant","content":"{text}"}}"#
        )
    };
    let entry = r#"[{"type":"message.output","id":"o","guards":["a"],"role":"assistant","content":"abc"}]"#;
    let streams =
        [&["abc"][..], &["a", "b", "c"]].map(|texts| texts.iter().map(|text| delta(text)).collect::<Vec<_>>());
    for events in streams {
        let events: Vec<&str> = [STARTED].into_iter().chain(events.iter().map(String::as_str)).chain([DONE]).collect();
        assert_eq!(wire_of(&streamed(&events).0), entry);
    }
}

#[test]
fn r20_r77_an_event_that_lacks_a_member_of_its_key_is_of_the_latest_entry() {
    let (answer, _) = streamed(&[
        STARTED,
        r#"{"type":"function.call.delta","output_index":0,"id":"c","name":"look","tool_call_id":"abcdefgh1","arguments":"{\"a\""}"#,
        r#"{"type":"function.call.delta","output_index":0,"arguments":":1}"}"#,
        r#"{"type":"tool.execution.started","output_index":1,"id":"t","name":"web_search","arguments":"{}"}"#,
        r#"{"type":"tool.execution.done","output_index":1,"info":{"n":2}}"#,
        // An id of another entry is not overlooked.
        r#"{"type":"tool.execution.done","id":"u","name":"web_search","arguments":"{}"}"#,
        DONE,
    ]);
    assert_eq!(
        wire_of(&answer),
        concat!(
            r#"[{"type":"function.call","id":"c","name":"look","tool_call_id":"abcdefgh1","arguments":"{\"a\":1}"},"#,
            r#"{"type":"tool.execution","id":"t","name":"web_search","info":{"n":2},"arguments":"{}"},"#,
            r#"{"type":"tool.execution","id":"u","name":"web_search","arguments":"{}"}]"#
        )
    );
    assert!(answer.calls[0].executable);
}

#[test]
fn r77_an_entry_without_its_own_end_is_not_sent_back() {
    let handoff = r#"{"type":"agent.handoff.started","output_index":1,"id":"h","previous_agent_id":"a","previous_agent_name":"A"}"#;
    let (answer, _) = streamed(&[&[STARTED], &EXECUTION[..3], &[handoff, DONE]].concat());
    assert_eq!((answer.status, wire_of(&answer)), (AnswerStatus::Complete, ""));
    let handoff =
        r#"{"outputs":[{"type":"agent.handoff","id":"h","previous_agent_id":"a","previous_agent_name":"A"}]}"#;
    assert_eq!(wire_of(&read(handoff).0), "");
}

#[test]
fn r77_a_call_that_waits_for_a_confirmation_is_of_the_service() {
    const CALL: &str = r#"{"type":"function.call.delta","output_index":0,"id":"f","name":"mail","tool_call_id":"abcdefgh1","confirmation_status":"pending","arguments":"{}"}"#;
    let (answer, events) = streamed(&[STARTED, CALL, DONE]);
    assert!(answer.calls.is_empty(), "{:?}", answer.calls);
    let is_call = |event: &StreamEvent| {
        matches!(
            event,
            StreamEvent::CallStarted { .. } | StreamEvent::ArgumentsDelta { .. } | StreamEvent::CallReady { .. }
        )
    };
    assert!(!events.iter().any(is_call), "{events:?}");
    let sent = r#"[{"type":"function.call","id":"f","name":"mail","tool_call_id":"abcdefgh1","confirmation_status":"pending","arguments":"{}"}]"#;
    assert_eq!(wire_of(&answer), sent);
    // The state may follow later, and an ordinary call has none.
    let ordinary = CALL.replace(r#""pending""#, "null");
    assert!(streamed(&[STARTED, &ordinary, DONE]).0.calls[0].executable);
    let later = CALL.replace(r#""arguments":"{}""#, r#""arguments":"""#);
    assert!(streamed(&[STARTED, &ordinary, &later, DONE]).0.calls.is_empty());
    assert_eq!(wire_of(&streamed(&[STARTED, CALL]).0), "");
}

#[test]
fn r77_deltas_of_reasoning_with_more_members_are_one_chunk() {
    let delta = |text: &str, more: &str| {
        format!(
            r#"{{"type":"message.output.delta","output_index":0,"id":"msg_1","content_index":0,"content":{{"type":"thinking","thinking":[{{"type":"text","text":"{text}"}}]{more}}}}}"#
        )
    };
    let (first, second) = (delta("H", r#","closed":true"#), delta("m", r#","closed":true,"signature":"s""#));
    let text = r#"{"type":"message.output.delta","output_index":0,"id":"msg_1","content_index":1,"content":"Hi"}"#;
    let (answer, events) = streamed(&[STARTED, &first, &second, text, DONE]);
    let reasoning = events.iter().filter(|event| matches!(event, StreamEvent::ReasoningDelta(_))).count();
    assert_eq!((reasoning, &*answer.text.decode()), (2, "Hi"));
    assert_eq!(
        wire_of(&answer),
        r#"[{"type":"message.output","id":"msg_1","role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}],"closed":true,"signature":"s"},{"type":"text","text":"Hi"}]}]"#
    );
}

#[test]
fn r77_a_stream_without_its_end_runs_no_call() {
    for count in 0..STREAM.len() {
        let (answer, _) = streamed(&STREAM[..count]);
        assert_eq!(answer.status, AnswerStatus::Truncated, "after {count} events");
        assert!(answer.calls.iter().all(|call| !call.executable));
        assert!(!wire_of(&answer).contains("function.call"));
    }
    // What comes after the end is of another answer.
    let (answer, _) = streamed(&[STREAM.as_slice(), &STREAM[3..5]].concat());
    assert_eq!(&*answer.text.decode(), "I look.");
}

#[test]
fn r77_errors_are_those_of_the_service() {
    let failed = |bytes: &str| {
        let (answer, _) = read(bytes);
        assert_eq!(answer.status, AnswerStatus::Failed, "{bytes}");
        let error = answer.error.unwrap();
        (error.code.unwrap_or_default(), error.message)
    };
    let event = format!(
        "data: {STARTED}\n\ndata: {}\n\n",
        r#"{"type":"conversation.response.error","message":"Gone.","code":3000}"#
    );
    assert_eq!(failed(&event), ("3000".into(), "Gone.".into()));
    let body = r#"{"object":"error","message":"Not the same number of function calls and responses","type":"invalid_request_error","code":3230}"#;
    assert_eq!(failed(body), ("3230".into(), "Not the same number of function calls and responses".into()));
    assert!(
        failed(r#"{"detail":[{"type":"missing","loc":["body","inputs"],"msg":"Field required"}]}"#)
            .1
            .contains("Field required")
    );
    assert_eq!(failed("{}").0, "malformed");
}
