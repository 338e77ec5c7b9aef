//! Responses of Converse: every kind of block, errors, ends and counts.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::*;
use crate::message::Dialect;
use crate::provider::stream::StreamAssembler;
use crate::provider::{is_error_response, read_response};

fn assembled(events: &[&str]) -> Assembled {
    let mut assembler = StreamAssembler::new(Dialect::Bedrock);
    for event in events {
        assembler.push(format!("data: {event}\n\n").as_bytes(), &mut Vec::new());
    }
    assembler.finish()
}

fn wire(answer: &Assembled) -> String {
    answer.wire.as_ref().map(|wire| wire.as_str().to_owned()).unwrap_or_default()
}

const STOP: &str = r#"{"messageStop":{"stopReason":"end_turn"}}"#;

#[test]
fn r65_reasoning_comes_back_with_its_signature() {
    let answer = assembled(&[
        r#"{"messageStart":{"role":"assistant"}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"H"}}}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"m"}}}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}}"#,
        r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"eHg="}}}}"#,
        r#"{"contentBlockStop":{"contentBlockIndex":1}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"text":"Hi."}}}"#,
        r#"{"contentBlockStop":{"contentBlockIndex":2}}"#,
        STOP,
    ]);
    assert_eq!(
        wire(&answer),
        r#"{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"Hm","signature":"c2ln"}}},{"reasoningContent":{"redactedContent":"eHg="}},{"text":"Hi."}]}"#
    );
    assert_eq!((answer.status, answer.text.inside()), (AnswerStatus::Complete, "Hi."));
}

#[test]
fn r65_reasoning_without_its_signature_is_left_out_of_a_truncated_stream() {
    let delta = r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Hm"}}}}"#;
    let cut = assembled(&[delta]);
    assert_eq!((cut.status, wire(&cut).as_str()), (AnswerStatus::Truncated, ""));
    // Models of other vendors sign nothing.
    let whole = assembled(&[delta, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#, STOP]);
    assert!(wire(&whole).contains(r#"{"reasoningText":{"text":"Hm"}}"#), "{}", wire(&whole));
}

#[test]
fn r65_calls_of_the_service_and_their_results_are_kept_and_no_calls() {
    let answer = assembled(&[
        r#"{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"s1","name":"nova_grounding","type":"server_tool_use"}}}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"q\":1}"}}}}"#,
        r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
        r#"{"contentBlockStart":{"contentBlockIndex":1,"start":{"toolResult":{"toolUseId":"s1","type":"nova_grounding_result","status":"success"}}}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"toolResult":[{"json":{"a":1}}]}}}"#,
        r#"{"contentBlockStop":{"contentBlockIndex":1}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"text":"So."}}}"#,
        r#"{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"citation":{"title":"T"}}}}"#,
        STOP,
    ]);
    assert!(answer.calls.is_empty());
    assert_eq!(
        wire(&answer),
        r#"{"role":"assistant","content":[{"toolUse":{"toolUseId":"s1","name":"nova_grounding","type":"server_tool_use","input":{"q":1}}},{"toolResult":{"toolUseId":"s1","type":"nova_grounding_result","status":"success","content":[{"json":{"a":1}}]}},{"citationsContent":{"content":[{"text":"So."}],"citations":[{"title":"T"}]}}]}"#
    );
}

#[test]
fn r65_a_stop_reason_is_a_status() {
    for (reason, status) in [
        ("end_turn", AnswerStatus::Complete),
        ("tool_use", AnswerStatus::Complete),
        ("stop_sequence", AnswerStatus::Complete),
        ("max_tokens", AnswerStatus::Incomplete),
        ("model_context_window_exceeded", AnswerStatus::Incomplete),
        ("guardrail_intervened", AnswerStatus::Blocked),
        ("content_filtered", AnswerStatus::Blocked),
        ("malformed_model_output", AnswerStatus::Failed),
        ("malformed_tool_use", AnswerStatus::Failed),
    ] {
        let body = format!(
            r#"{{"output":{{"message":{{"role":"assistant","content":[{{"text":"x"}},{{"toolUse":{{"toolUseId":"a","name":"f","input":{{}},"type":"tool_use"}}}}]}}}},"stopReason":"{reason}","usage":{{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":3,"cacheWriteInputTokens":4}}}}"#
        );
        let answer = read_response(Dialect::Bedrock, body.as_bytes());
        assert_eq!(answer.status, status, "{reason}");
        assert_eq!(answer.calls[0].executable, status == AnswerStatus::Complete, "{reason}");
        assert!(!wire(&answer).contains("\"type\""), "a request has no such member");
        let usage = answer.usage.unwrap();
        assert_eq!((usage.input, usage.output, usage.cached_input, usage.cache_write), (8, 2, Some(3), Some(4)));
    }
}

#[test]
fn r65_errors_of_http_and_of_streams_have_a_code_and_a_message() {
    for (body, code) in [
        (r#"{"message":"no"}"#, None),
        (r#"{"Message":"no"}"#, None),
        (r#"{"__type":"com.amazon.coral.service#ValidationException","message":"no"}"#, Some("ValidationException")),
        (r#"{"throttlingException":{"message":"no"}}"#, Some("throttlingException")),
        (r#"{"error":{"code":"InternalError","message":"no"}}"#, Some("InternalError")),
    ] {
        let answer = read_response(Dialect::Bedrock, body.as_bytes());
        let error = answer.error.unwrap();
        assert_eq!((answer.status, error.code.as_deref(), error.message.as_str()), (AnswerStatus::Failed, code, "no"));
        assert!(is_error_response(Dialect::Bedrock, body.as_bytes()), "{body}");
    }
    assert_eq!(read_response(Dialect::Bedrock, b"{}").status, AnswerStatus::Failed);
    assert_eq!(read_response(Dialect::Bedrock, b"").status, AnswerStatus::Failed);
}

#[test]
fn r65_damaged_frames_fail_and_keep_the_text_before_them() {
    let mut assembler = StreamAssembler::new(Dialect::Bedrock);
    let mut bytes = crate::provider::bedrock::frames::tests::event(
        "contentBlockDelta",
        r#"{"contentBlockIndex":0,"delta":{"text":"So far"}}"#,
    );
    bytes.extend([0, 0, 0, 99, 1, 2, 3, 4, 5, 6, 7, 8]);
    let mut events = Vec::new();
    bytes.chunks(5).for_each(|piece| assembler.push(piece, &mut events));
    let answer = assembler.finish();
    assert_eq!((answer.status, answer.text.inside()), (AnswerStatus::Failed, "So far"));
    assert!(events.iter().any(|event| matches!(event, StreamEvent::Error(_))));
    assert!(answer.error.unwrap().message.contains("checksum"));
}

#[test]
fn r65_a_streamed_image_has_its_source() {
    let start = r#"{"contentBlockStart":{"contentBlockIndex":0,"start":{"image":{"format":"png"}}}}"#;
    let stop = r#"{"contentBlockStop":{"contentBlockIndex":0}}"#;
    let delta = |source: &str| {
        format!(r#"{{"contentBlockDelta":{{"contentBlockIndex":0,"delta":{{"image":{{"source":{source}}}}}}}}}"#)
    };
    let image = |source: &str| {
        format!(r#"{{"role":"assistant","content":[{{"image":{{"format":"png","source":{source}}}}}]}}"#)
    };
    for (deltas, source) in [
        (vec![r#"{"bytes":"aGVsbG8="}"#], r#"{"bytes":"aGVsbG8="}"#),
        (vec![r#"{"bytes":"aGVs"}"#, r#"{"bytes":"bG8="}"#], r#"{"bytes":"aGVsbG8="}"#),
        (vec![r#"{"s3Location":{"uri":"s3://b/k"}}"#], r#"{"s3Location":{"uri":"s3://b/k"}}"#),
    ] {
        let deltas: Vec<String> = deltas.into_iter().map(delta).collect();
        let mut events = vec![start];
        events.extend(deltas.iter().map(String::as_str));
        events.extend([stop, STOP]);
        assert_eq!(wire(&assembled(&events)), image(source));
    }
    // A request cannot have an image without one.
    assert_eq!(wire(&assembled(&[start, stop, STOP])), "");
}

#[test]
fn r65_a_call_with_a_type_of_another_format_is_the_applications() {
    let start = r#"{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t1","name":"look","type":"function"}}}}"#;
    let answer = assembled(&[start, r#"{"contentBlockStop":{"contentBlockIndex":0}}"#, STOP]);
    assert_eq!(answer.calls.len(), 1);
}
