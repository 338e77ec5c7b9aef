#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::*;
use crate::id::{CountingIds, Seed};
use crate::message::MessageStatus;
use crate::tool::InvocationStatus;

fn appended(json: &str) -> Result<History> {
    let mut history = History::new(Seed(1));
    append(&mut history, json)?;
    Ok(history)
}

fn append(history: &mut History, json: &str) -> Result<Vec<String>> {
    let messages = NewItem::read_all(JsonRef::parse(json).unwrap())?;
    let joined = join_new(history, messages, &Origin { at: 500, ..Origin::default() }, &CountingIds::default())?;
    joined.entries.into_iter().for_each(|entry| history.apply(entry));
    Ok(joined.message_ids)
}

#[test]
fn r57_keeps_ids_times_metadata_and_an_applications_own_parts() {
    let history = appended(
        r#"[{"id":"m1","role":"user","createdAt":7,"metadata":{"a":1},"parts":[{"type":"text","text":"Hi"},{"type":"data","name":"card","value":{"n":1}},{"type":"image","url":"https://x/y.png"}]}]"#,
    )
    .unwrap();
    let message = &history.messages()[0];
    assert_eq!((message.id.as_str(), message.created_at), ("m1", 7));
    assert_eq!(message.metadata.as_ref().unwrap().as_str(), r#"{"a":1}"#);
    assert!(
        matches!(&message.parts[1].body, PartBody::Data { name, value } if name == "card" && value.as_str() == r#"{"n":1}"#)
    );
    assert!(matches!(&message.parts[2].body, PartBody::Image(media) if media.url.is_some()));
}

#[test]
fn r73_a_text_of_the_model_has_its_phase() {
    let parts = r#"[{"type":"text","text":"I look.","phase":"commentary"},{"type":"refusal","text":"No.","phase":"final_answer"},{"type":"text","text":"x","phase":null}]"#;
    let history = appended(&format!(r#"[{{"role":"assistant","parts":{parts}}}]"#)).unwrap();
    let phases: Vec<_> = history.messages()[0].parts.iter().map(|part| part.phase).collect();
    assert_eq!(phases, [Some(Phase::Commentary), Some(Phase::FinalAnswer), None]);
    for value in ["\"thinking\"", "1"] {
        let item = format!(r#"[{{"role":"assistant","parts":[{{"type":"text","text":"x","phase":{value}}}]}}]"#);
        assert!(appended(&item).unwrap_err().message.contains("commentary"), "{value}");
    }
    // It means nothing in what a user says.
    let history = appended(r#"[{"role":"user","parts":[{"type":"text","text":"x","phase":"commentary"}]}]"#).unwrap();
    assert_eq!(history.messages()[0].parts[0].phase, None);
}

#[test]
fn r57_a_call_has_its_result_error_and_time() {
    let history = appended(
        r#"[{"role":"assistant","parts":[{"type":"tool","name":"a","arguments":{"q":1}},{"type":"tool","name":"b","arguments":"{\"q\": 2}","result":{"x":[1]},"finishedAt":9},{"type":"tool","callId":"c","name":"c","arguments":null,"result":"no","isError":true}]}]"#,
    )
    .unwrap();
    let calls: Vec<_> = history.calls_of(&history.messages()[0]).collect();
    assert!(calls[0].result.is_none() && calls[0].status == InvocationStatus::Pending);
    assert_eq!(calls[1].result.as_ref().unwrap().content.as_str(), r#"{"x":[1]}"#);
    assert_eq!((calls[1].finished_at, calls[1].arguments.text().as_ref()), (Some(9), r#"{"q": 2}"#));
    assert_eq!((calls[2].status, calls[2].finished_at), (InvocationStatus::Error, Some(500)));
    assert_eq!(calls.iter().map(|call| (call.round, call.place)).collect::<Vec<_>>(), [(0, 0), (0, 1), (0, 2)]);
}

#[test]
fn r57_text_after_a_result_is_another_message() {
    let mut history = appended(r#"[{"role":"user","parts":[{"type":"text","text":"Hi"}]}]"#).unwrap();
    let ids = append(
        &mut history,
        r#"[{"id":"m","role":"assistant","parts":[{"type":"text","text":"I look."},{"type":"tool","name":"a","result":1},{"type":"tool","name":"b","result":2},{"type":"data","name":"d"},{"type":"text","text":"And again."},{"type":"tool","name":"c","result":3},{"type":"text","text":"Done."}]}]"#,
    )
    .unwrap();
    assert_eq!(ids, ["m", "m.2", "m.3"]);
    let rounds: Vec<Vec<u32>> = history
        .messages()
        .iter()
        .skip(1)
        .map(|message| history.calls_of(message).map(|call| call.round).collect())
        .collect();
    assert_eq!(rounds, [vec![0, 0], vec![1], vec![]]);
}

#[test]
fn r57_of_a_message_that_becomes_several_the_last_has_usage_time_and_end() {
    let history = appended(
        r#"[{"id":"m","role":"assistant","model":"m-1","agent":"a","usage":{"inputTokens":10,"outputTokens":5},"durationMs":70,"finishReason":"length","status":"truncated",
            "parts":[{"type":"tool","name":"a","result":1},{"type":"text","text":"And again."},{"type":"tool","name":"b","result":2},{"type":"text","text":"Do"}]}]"#,
    )
    .unwrap();
    let answers: Vec<_> = history.messages().iter().map(|message| message.answer.as_deref().unwrap()).collect();
    assert!(
        answers.iter().all(|answer| answer.model.as_deref() == Some("m-1") && answer.agent.as_deref() == Some("a"))
    );
    let tokens: Vec<_> = answers.iter().map(|answer| answer.usage.map(|usage| usage.input + usage.output)).collect();
    assert_eq!(tokens, [None, None, Some(15)]);
    let times: Vec<_> = answers.iter().map(|answer| answer.duration_ms).collect();
    assert_eq!(times, [None, None, Some(70)]);
    let reasons: Vec<_> = answers.iter().map(|answer| answer.finish_reason.as_deref()).collect();
    assert_eq!(reasons, [None, None, Some("length")]);
    let ends: Vec<_> = history.messages().iter().map(|message| message.status).collect();
    assert_eq!(ends, [MessageStatus::Complete, MessageStatus::Complete, MessageStatus::Truncated]);
}

#[test]
fn r57_a_duplicate_id_is_rejected_and_nothing_is_duplicated() {
    let one = r#"[{"id":"m","role":"user","parts":[{"type":"text","text":"Hi"}]}]"#;
    let mut history = appended(one).unwrap();
    assert_eq!(append(&mut history, one).unwrap_err().code, crate::error::ErrorCode::InvalidInput);
    assert!(appended(&format!("[{0},{0}]", one.trim_matches(['[', ']']))).is_err());
}

#[test]
fn r57_an_invalid_message_is_rejected_with_its_position() {
    for (bad, says) in [
        (r#"{"role":"user"}"#, "list"),
        (r#"[{"role":"tool","parts":[]}]"#, "message 0"),
        (r#"[{"role":"user","parts":[]},{"role":"user","content":"Hi"}]"#, "message 1"),
        (r#"[{"role":"user","parts":[{"type":"tool","name":"a"}]}]"#, "assistant"),
        (r#"[{"role":"assistant","parts":[{"type":"tool"}]}]"#, "`name`"),
        (r#"[{"role":"user","parts":[{"type":"image"}]}]"#, "`url`"),
        (r#"[{"role":"user","createdAt":"now","parts":[]}]"#, "milliseconds"),
        (r#"[{"role":"user","parts":[{"type":"poem"}]}]"#, "poem"),
        (r#"[{"id":"","role":"user","parts":[]}]"#, "`id`"),
    ] {
        let error = appended(bad).unwrap_err();
        assert!(error.message.contains(says), "{bad}: {}", error.message);
    }
}

#[test]
fn r18_a_call_closed_as_interrupted_accepts_its_real_result() {
    let mut history = appended(r#"[{"role":"assistant","parts":[{"type":"tool","callId":"a","name":"f"}]}]"#).unwrap();
    history.apply(HistoryEntry::Result(crate::history::ResultEntry {
        invocation: history.invocations()[0].id.clone(),
        status: InvocationStatus::Interrupted,
        started_at: None,
        finished_at: Some(1),
        freshness: None,
        result: Some(ToolResult::failure("nobody knows")),
        ..crate::history::ResultEntry::default()
    }));
    let real = r#"[{"role":"tool","parts":[{"type":"tool_result","callId":"a","result":"real","finishedAt":7}]}]"#;
    append(&mut history, real).unwrap();
    let call = &history.invocations()[0];
    assert_eq!((call.status, call.finished_at), (InvocationStatus::Ok, Some(7)));
    assert_eq!(call.result.as_ref().unwrap().content.as_str(), "\"real\"");
    assert_eq!(append(&mut history, real).unwrap_err().code, crate::error::ErrorCode::WrongState);
}

#[test]
fn r57_results_of_parallel_calls_with_one_id_are_assigned_in_order() {
    let history = appended(
        r#"[{"role":"assistant","parts":[{"type":"tool","callId":"a","name":"f"},{"type":"tool","callId":"a","name":"f"}]},{"role":"tool","createdAt":3,"parts":[{"type":"tool_result","callId":"a","result":1},{"type":"tool_result","callId":"a","result":2}]}]"#,
    )
    .unwrap();
    let results: Vec<_> = (history.invocations().iter())
        .map(|call| (call.result.as_ref().unwrap().content.as_str(), call.finished_at))
        .collect();
    assert_eq!(results, [("1", Some(3)), ("2", Some(3))]);
}

/// The results of the history's calls, in their order.
fn results(history: &History) -> Vec<Option<String>> {
    let text =
        |call: &crate::tool::ToolInvocation| call.result.as_ref().map(|result| result.content.as_str().to_owned());
    history.invocations().iter().map(text).collect()
}

#[test]
fn r57_a_result_answers_a_call_before_it_and_no_later_one_with_its_id() {
    let call = r#"{"role":"assistant","parts":[{"type":"tool","callId":"a","name":"f"}]}"#;
    let result = |n: u32| format!(r#"{{"role":"tool","parts":[{{"type":"tool_result","callId":"a","result":{n}}}]}}"#);
    let (one, two) = (result(1), result(2));
    let one_and_two = [Some("1".to_owned()), Some("2".to_owned())];
    for (first, second, expected) in [
        (format!("[{call}]"), format!("[{one},{call}]"), [Some("1".to_owned()), None]),
        (format!("[{call}]"), format!("[{one},{call},{two}]"), one_and_two.clone()),
        ("[]".to_owned(), format!("[{call},{one},{call}]"), [Some("1".to_owned()), None]),
        ("[]".to_owned(), format!("[{call},{one},{call},{two}]"), one_and_two.clone()),
        // Both are open: the newest one before the result takes it.
        ("[]".to_owned(), format!("[{call},{call},{two},{one}]"), one_and_two.clone()),
        // A result before the only call that can take it is that one's.
        (format!("[{call},{one}]"), format!("[{two},{call}]"), one_and_two),
    ] {
        let mut history = History::new(Seed(1));
        append(&mut history, &first).unwrap();
        append(&mut history, &second).unwrap();
        assert_eq!(results(&history), expected, "{first} {second}");
    }
    let unknown = format!("[{one},{call},{one},{one}]");
    assert!(appended(&unknown).is_err());
}

#[test]
fn r57_a_string_in_the_arguments_of_a_shown_call_is_json_text() {
    let call = |members: &str| {
        let part = format!(r#"{{"type":"tool","call":{{"name":"a",{members}}}}}"#);
        let history = appended(&format!(r#"[{{"role":"assistant","parts":[{part}]}}]"#)).unwrap();
        history.invocations()[0].arguments.clone()
    };
    let plain = |members: &str| {
        let history =
            appended(&format!(r#"[{{"role":"assistant","parts":[{{"type":"tool","name":"a",{members}}}]}}]"#)).unwrap();
        history.invocations()[0].arguments.clone()
    };
    for members in [r#""arguments":"{\"q\": 2}""#, r#""arguments":"{\"q\":""#, r#""arguments":"""#] {
        assert_eq!(call(members), plain(members), "{members}");
    }
    let text = |members: &str| call(members).text().into_owned();
    assert_eq!(text(r#""arguments":"{\"q\": 2}""#), r#"{"q": 2}"#);
    assert_eq!(text(r#""arguments":{"q":1},"argumentsText":"{\"q\": 2}""#), r#"{"q": 2}"#);
    assert_eq!(text(r#""arguments":{"q":1}"#), r#"{"q":1}"#);
    assert_eq!(text(r#""callId":"c""#), "{}");
    // The input of a custom tool is a value, as `dialectData` says, and no JSON text.
    let data = r#""dialectData":"{\"isValue\":true}""#;
    let part = format!(r#"{{"type":"tool","call":{{"name":"a","arguments":"{{}}"}},{data}}}"#);
    let history = appended(&format!(r#"[{{"role":"assistant","parts":[{part}]}}]"#)).unwrap();
    assert_eq!(history.invocations()[0].arguments, Arguments::Value(Json::parse(r#""{}""#).unwrap()));
}
