#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::*;
use crate::history::{
    History, HistoryEntry, JoinBase, MessageFormat, MessageWriter, NO_ALTERNATIVES, NewItem, Origin, join, join_new,
};
use crate::id::{CountingIds, Seed};
use crate::message::{AnswerMeta, MessageStatus, Phase, Role, Source, SourceKind, Usage};
use crate::provider::decode_body;
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult};

fn stored(dialect: Dialect, body: &str) -> History {
    let items = decode_body(dialect, JsonRef::parse(body).unwrap()).unwrap();
    let mut history = History::new(Seed(1));
    let joined =
        join(JoinBase::history(&history), items, &Origin { at: 7, ..Origin::default() }, &CountingIds::default());
    joined.entries.into_iter().for_each(|entry| history.apply(entry));
    history
}

fn written(history: &History, format: MessageFormat) -> String {
    let mut out = String::new();
    let mut list = ArrayWriter::new(&mut out);
    let writer = MessageWriter { history, session: "s", format, alternatives: &NO_ALTERNATIVES };
    history.messages().iter().for_each(|message| list.object(|out| writer.write(out, message, None)));
    list.end();
    out
}

fn appended(messages: &str) -> Result<History> {
    let items = NewItem::read_all(JsonRef::parse(messages).unwrap())?;
    let mut history = History::new(Seed(2));
    let joined = join_new(&history, items, &Origin { at: 99, ..Origin::default() }, &CountingIds::default())?;
    joined.entries.into_iter().for_each(|entry| history.apply(entry));
    Ok(history)
}

const BODY: &str = r#"{"messages":[{"role":"user","content":"caf\u00e9","extra":1.0},
  {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"x"},
    {"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"f","input":{"n":12345678901234567890,"n":2.50}},{"type":"text","text":"Wait."}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"r","odd":1e2}],"cache_control":{"type":"ephemeral"}}]}]}"#;

#[test]
fn r57_everything_of_a_message_comes_back_from_what_is_shown_of_it() {
    let history = stored(Dialect::Anthropic, BODY);
    for format in [MessageFormat::WithCalls, MessageFormat::View { saved: true, streaming: false }] {
        let copy = appended(&written(&history, format)).unwrap();
        let unnumbered = |history: &History| {
            let mut calls = history.invocations().to_vec();
            calls.iter_mut().for_each(|call| call.stored_at = 0);
            calls
        };
        assert_eq!(copy.messages(), history.messages(), "{format:?}");
        assert_eq!(unnumbered(&copy), unnumbered(&history), "{format:?}");
    }
}

#[test]
fn r12_r57_a_copied_call_keeps_what_decides_about_its_late_result() {
    let mut history = History::new(Seed(1));
    let stored = stored(Dialect::Anthropic, BODY);
    stored.messages().iter().for_each(|message| history.apply(HistoryEntry::Message(message.clone())));
    for flags in 0..16 {
        let has = |bit: u32| flags & (1 << bit) != 0;
        let mut call = stored.invocations()[0].clone();
        (call.has_persist, call.is_async, call.redacted, call.has_redacted_result) = (has(0), has(1), has(2), has(3));
        let mut history = history.clone();
        history.apply(HistoryEntry::Invocation(call.clone()));
        for format in [MessageFormat::WithCalls, MessageFormat::View { saved: true, streaming: false }] {
            let copy = appended(&written(&history, format)).unwrap();
            let copied = ToolInvocation { stored_at: call.stored_at, ..copy.invocations()[0].clone() };
            assert_eq!(copied, call, "{format:?}");
        }
    }
}

#[test]
fn r57_what_the_application_changes_is_changed_and_the_rest_stays() {
    let shown = written(&stored(Dialect::Anthropic, BODY), MessageFormat::WithCalls);
    let changed = shown.replace("caf\\u00e9", "tea").replace("\"hm\"", "\"so\"").replace("\"odd\":1e2", "\"odd\":7");
    let copy = appended(&changed).unwrap();
    let texts: Vec<_> =
        copy.messages().iter().flat_map(|message| &message.parts).map(|part| format!("{:?}", part.body)).collect();
    assert!(texts[0].contains("tea") && texts[1].contains("so"), "{texts:?}");
    let content = copy.invocations()[0].result.as_ref().unwrap().content.as_str().to_owned();
    assert!(content.contains(r#""odd":7"#), "{content}");
    assert!(copy.messages()[1].parts[0].template.is_some(), "the signature stays");
}

#[test]
fn r57_data_that_was_changed_is_rejected_and_named() {
    let message = |data: &str| {
        let data = JsonStr::new(data);
        format!(
            r#"[{{"role":"user","parts":[{{"type":"text","text":"x","dialectData":{}}}],"dialectData":{0}}}]"#,
            data.token()
        )
    };
    let nested = format!("{}{}", "[[\"a\",10,".repeat(40), "]]".repeat(40));
    for data in [
        "",
        "x",
        "[]",
        r#"{"template":[["a"]]}"#,
        r#"{"template":[["a",99]]}"#,
        r#"{"template":[[1,0,1]]}"#,
        &format!(r#"{{"template":{nested}}}"#),
    ] {
        let error = appended(&message(data)).unwrap_err();
        assert!(error.message.contains("dialectData"), "{data}: {}", error.message);
    }
    assert!(appended(&message(r#"{"dialect":"other"}"#)).unwrap_err().message.contains("dialectData"));
    let text = r#"[{"role":"user","parts":[{"type":"text","text":"x","dialectData":7}]}]"#;
    assert!(appended(text).unwrap_err().message.contains("dialectData"));
}

#[test]
fn r57_an_opaque_part_needs_its_dialect_and_a_message_has_one() {
    let error =
        |parts: &str| appended(&format!(r#"[{{"role":"user","parts":[{parts}]}}]"#)).unwrap_err().message.clone();
    assert!(error(r#"{"type":"opaque","value":{}}"#).contains("`dialect`"));
    assert!(error(r#"{"type":"opaque","dialect":"anthropic"}"#).contains("`value`"));
    let two = r#"{"type":"opaque","dialect":"anthropic","value":{}},{"type":"opaque","dialect":"gemini","value":{}}"#;
    assert!(error(two).contains("two dialects"));
    let one = appended(r#"[{"role":"user","parts":[{"type":"opaque","dialect":"anthropic","value":{"type":"new"}}]}]"#)
        .unwrap();
    assert_eq!(one.messages()[0].dialect, Some(Dialect::Anthropic));
    assert!(error(r#"{"type":"tool_call","invocation":"i","round":0,"place":0}"#).contains("assistant"));
    let bare =
        appended(r#"[{"role":"assistant","parts":[{"type":"tool_call","invocation":"i","round":0,"place":0}]}]"#);
    assert!(bare.unwrap_err().message.contains("type \"tool\""));
}

#[test]
fn r57_what_javascript_makes_of_a_value() {
    let form = |text: &str| JsonRef::parse(text).unwrap().javascript_form();
    for text in [
        "0",
        "-1",
        "12.5",
        "0.001",
        "{\"a\":[1,{\"b\":\"x\\n\"}],\"c\":{}}",
        "[]",
        "true",
        "null",
        "\"\\\"\"",
        "\" , \"",
        "{\"0\":1,\"2\":2,\"10\":3,\"b\":4,\"01\":5,\"4294967295\":6,\"-1\":7}",
    ] {
        assert!(form(text).is_kept, "{text}");
    }
    for text in [
        "1.0",
        "-0",
        "1e2",
        "12345678901234567890",
        "{\"a\":1,\"a\":2}",
        "\"\\u00e9\"",
        "\"\\/\"",
        "[[0.10]]",
        "0.00001",
        "{\"\\u0061\":1}",
        "{\"b\":1,\"1\":2}",
        "{\"2\":1,\"1\":2}",
        "{\"a\":{\"b\":1,\"\\u0030\":2}}",
        "[1, 2]",
        "{\"a\" :1}",
        "[{}\n]",
    ] {
        assert!(!form(text).is_kept, "{text}");
    }
}

#[test]
fn r57_what_javascript_writes_alike_has_one_hash() {
    let form = |text: &str| JsonRef::parse(text).unwrap().javascript_form();
    for (one, other) in [
        ("1.0", "1"),
        ("1e2", "100"),
        ("-0", "0"),
        ("0.10", "0.1"),
        ("12345678901234567890", "12345678901234567000"),
        ("\"\\u00e9\"", "\"\u{e9}\""),
        ("{\"a\":1,\"a\":2}", "{\"a\":2}"),
        ("{\"b\":1,\"1\":2}", "{\"1\":2,\"b\":1}"),
        ("123e-2", "1.23"),
    ] {
        assert_eq!(form(one).hash, form(other).hash, "{one} {other}");
    }
    for (one, other) in [
        ("1", "2"),
        ("1", "-1"),
        ("1", "10"),
        ("[1,2]", "[2,1]"),
        ("{\"a\":1}", "{\"b\":1}"),
        ("[[1],2]", "[[1,2]]"),
        ("\"1\"", "1"),
        ("[]", "{}"),
        ("[[]]", "[]"),
    ] {
        assert_ne!(form(one).hash, form(other).hash, "{one} {other}");
    }
}

const RUN: &str = r#"{"messages":[{"role":"user","content":"Go"},
  {"role":"assistant","content":[{"type":"thinking","thinking":"caf\u00e9","signature":"c2ln"},{"type":"text","text":"I look."},
    {"type":"tool_use","id":"ok","name":"f","input":{}},{"type":"tool_use","id":"rejected","name":"f","input":{}},
    {"type":"tool_use","id":"withheld","name":"f","input":{}},{"type":"tool_use","id":"open","name":"f","input":{}},
    {"type":"tool_use","id":"late","name":"f","input":{}},{"type":"tool_use","id":"started","name":"f","input":{}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"ok","content":"r"},{"type":"tool_result","tool_use_id":"rejected","content":"no"}]},
  {"role":"assistant","content":[{"type":"text","text":"Done."}]}]}"#;

/// A history as a run leaves it, in which every field that a copy keeps has another value than a new message or call.
fn of_a_run() -> History {
    let items = decode_body(Dialect::Anthropic, JsonRef::parse(RUN).unwrap()).unwrap();
    let mut history = History::new(Seed(1));
    let origin = Origin { at: 7, ..Origin::default() };
    let mut late = String::new();
    for mut entry in join(JoinBase::history(&history), items, &origin, &CountingIds::default()).entries {
        match &mut entry {
            HistoryEntry::Message(message) => {
                let is_answer = message.role == Role::Assistant;
                let is_last = is_answer && message.parts.len() == 1;
                message.run_id = Some("run".into());
                message.source = Source { kind: SourceKind::Context, id: Some("rag".into()) };
                message.metadata = Json::parse(r#"{"a":1.0}"#).ok();
                message.late_results.extend(is_last.then(|| late.clone()));
                if is_answer {
                    message.status = if is_last { MessageStatus::Stopped } else { MessageStatus::Truncated };
                    message.parts.last_mut().unwrap().phase = is_last.then_some(Phase::FinalAnswer);
                    message.answer = Some(Box::new(answer_meta()));
                }
            }
            HistoryEntry::Invocation(call) => {
                change_call(call);
                if call.call_id == "late" {
                    late.clone_from(&call.id);
                }
            }
            HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => {}
        }
        history.apply(entry);
    }
    history
}

fn answer_meta() -> AnswerMeta {
    AnswerMeta {
        model: Some("m-1".into()),
        usage: Some(Usage { input: 1, output: 2, cached_input: Some(3), cache_write: Some(4), reasoning: Some(5) }),
        finish_reason: Some("end_turn".into()),
        duration_ms: Some(9),
        response_id: Some("resp".into()),
        agent: Some("billing".into()),
        maker: Some(AnswerMaker { host: Some("api.example.com".into()), model: Some("m".into()) }),
        prefix: Some(PrefixMark { instructions: 1, tools: u64::MAX, items: 3, is_filtered: true, has_provided: true }),
        ..AnswerMeta::default()
    }
}

fn change_call(call: &mut ToolInvocation) {
    call.freshness = Some(Window::Always);
    call.append_freshness = Some(Window::Millis(11));
    call.stored_during_run = true;
    call.has_persist = true;
    let times = |started: Option<u64>, finished: Option<u64>| (started, finished);
    let (status, times) = match call.call_id.as_str() {
        "ok" => (InvocationStatus::Ok, times(Some(2), Some(3))),
        "rejected" => (InvocationStatus::Rejected, times(None, Some(3))),
        "withheld" => (InvocationStatus::Ok, times(Some(2), Some(4))),
        "late" => (InvocationStatus::Error, times(Some(2), Some(5))),
        "started" => (InvocationStatus::Interrupted, times(Some(2), None)),
        _ => (InvocationStatus::Pending, times(None, None)),
    };
    (call.status, (call.started_at, call.finished_at)) = (status, times);
    call.redacted = call.call_id == "withheld";
    call.is_deferred = matches!(call.call_id.as_str(), "late" | "open");
    if call.call_id == "late" {
        let content = Json::parse(r#"{"n":1.0}"#).unwrap();
        call.result = Some(ToolResult { content, is_error: true, dialect: None, template: None });
    }
}

#[test]
fn r57_every_field_of_a_run_comes_back_from_what_is_shown_of_it() {
    let history = of_a_run();
    for format in [MessageFormat::WithCalls, MessageFormat::View { saved: true, streaming: false }] {
        let copy = appended(&written(&history, format)).unwrap();
        assert_eq!(copy.messages(), history.messages(), "{format:?}");
        let calls = |history: &History| {
            let mut calls = history.invocations().to_vec();
            // It stands for the times of a call that has none.
            let timed = calls.iter_mut().filter(|call| call.finished_at.or(call.started_at).is_some());
            timed.for_each(|call| call.stored_at = 0);
            calls
        };
        assert_eq!(calls(&copy), calls(&history), "{format:?}");
        assert_eq!(copy.late_results().unplaced_ids(), history.late_results().unplaced_ids());
    }
}

#[test]
fn r57_what_an_append_names_takes_precedence_over_what_was_stored() {
    let shown = written(&of_a_run(), MessageFormat::WithCalls);
    let source = Source { kind: SourceKind::History, id: Some("archive".into()) };
    let origin = Origin { source: source.clone(), freshness: Some(Window::Millis(0)), ..Origin::default() };
    let items = NewItem::read_all(JsonRef::parse(&shown).unwrap()).unwrap();
    let history = History::new(Seed(2));
    let joined = join_new(&history, items, &origin, &CountingIds::default()).unwrap();
    for entry in joined.entries {
        match entry {
            HistoryEntry::Message(message) => assert_eq!(message.source, source),
            HistoryEntry::Invocation(call) => assert_eq!(call.append_freshness, Some(Window::Millis(0))),
            HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => {}
        }
    }
}

#[test]
fn r57_arguments_and_values_that_the_application_changes_are_changed() {
    let body = r#"{"messages":[{"role":"user","content":"Go"},{"role":"assistant","content":null,"tool_calls":
      [{"id":"a","type":"function","function":{"name":"f","arguments":"{\"q\":\"caf\u00e9\"}"}}]}]}"#;
    let history = stored(Dialect::OpenAiChat, body);
    let shown = written(&history, MessageFormat::WithCalls);
    let arguments = |shown: &str| appended(shown).unwrap().invocations()[0].arguments.clone();
    assert_eq!(arguments(&shown), history.invocations()[0].arguments, "the escape comes back");
    let changed = arguments(&shown.replace("café", "tea").replace("caf\\u00e9", "tea"));
    assert_eq!(changed.text(), r#"{"q":"tea"}"#);

    let body = r#"{"messages":[{"role":"user","content":[{"type":"new","n":1.0}]}]}"#;
    let shown = written(&stored(Dialect::Anthropic, body), MessageFormat::WithCalls);
    let value = |shown: &str| format!("{:?}", appended(shown).unwrap().messages()[0].parts[0].body);
    assert!(value(&shown).contains("1.0"));
    // Only what is shown: the data of the dialect is a text in a text.
    assert!(value(&shown.replace("\"n\":1.0", "\"n\":7")).contains(":7"), "{shown}");
}

#[test]
fn r57_a_message_has_the_dialect_of_its_opaque_parts() {
    let message = |dialect: &str| {
        format!(
            r#"[{{"role":"user","parts":[{{"type":"opaque","dialect":"gemini","value":{{}}}}],"dialectData":{}}}]"#,
            JsonStr::new(&format!(r#"{{"dialect":"{dialect}"}}"#)).token()
        )
    };
    assert_eq!(appended(&message("gemini")).unwrap().messages()[0].dialect, Some(Dialect::Gemini));
    assert!(appended(&message("anthropic")).unwrap_err().message.contains("two dialects"));
}

#[test]
fn r57_a_data_part_of_the_application_belongs_to_the_answer_before_it() {
    let history = appended(
        r#"[{"id":"m","role":"assistant","parts":[{"type":"tool","name":"a","result":1},{"type":"data","name":"d","value":1}]}]"#,
    );
    assert_eq!(history.unwrap().messages().len(), 1);
}

#[test]
fn r57_a_call_without_its_result_is_open_whatever_its_status_says() {
    let shown = written(&of_a_run(), MessageFormat::WithCalls);
    let given = shown.replace(r#""content":"r""#, r#""was":"r""#).replace(r#""result":{"#, r#""gone":{"#);
    let history = appended(&given).unwrap();
    let call = |id: &str| history.invocations().iter().find(|call| call.call_id == id).unwrap();
    assert_eq!((call("ok").status, call("ok").result.is_none()), (InvocationStatus::Pending, true));
    assert_eq!(call("rejected").status, InvocationStatus::Rejected);
    assert_eq!(call("withheld").status, InvocationStatus::Ok, "its result was never stored");
}
