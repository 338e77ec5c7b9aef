//! Mistral: OpenAI's format with ids of its own and content in chunks.

use super::properties::{live_after, valid_in_all};
use super::*;
use crate::message::PartBody;
use proptest::prelude::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const MISTRAL: Dialect = Dialect::Mistral;

#[test]
fn r43_r45_mistral_messages_return_byte_for_byte() {
    let calls = |members: &str, call: &str| {
        format!(
            r#"[{{"role":"user","content":"q"}},{{{members},"tool_calls":[{call}]}},{{"role":"tool","content":"r","tool_call_id":"a1B2c3D4e"}},{{"role":"user","content":"?"}}]"#
        )
    };
    let call = r#"{"id":"a1B2c3D4e","type":"function","function":{"name":"f","arguments":"{\"n\":1.0}"}}"#;
    let said = |content: &str, more: &str| {
        format!(
            r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":{content}{more}}},{{"role":"user","content":"?"}}]"#
        )
    };
    let shown = |part: &str| format!(r#"[{{"role":"user","content":[{{"type":"text","text":"see"}},{part}]}}]"#);
    for body in [
        calls(r#""role":"assistant","content":"""#, call),
        calls(r#""role":"assistant","content":null"#, call),
        calls(r#""role":"assistant","content":[]"#, call),
        calls(r#""role":"assistant","content":[],"prefix":false"#, call),
        calls(r#""role":"assistant""#, call),
        // A call without a type, with a place, with its arguments as an object.
        calls(
            r#""role":"assistant","content":"""#,
            r#"{"function":{"arguments":"{}","name":"f"},"id":"a1B2c3D4e","index":0}"#,
        ),
        calls(
            r#""role":"assistant","content":"""#,
            r#"{"id":"a1B2c3D4e","type":"function","function":{"name":"f","arguments":{"n":1.0,"n":2}}}"#,
        ),
        calls(
            r#""role":"assistant","content":"""#,
            r#"{"id":"a1B2c3D4e","function":{"name":"f","arguments":{"n":1e0}},"index":0}"#,
        ),
        calls(
            r#""role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"I look."}]"#,
            call,
        ),
        said(r#""x""#, r#","tool_calls":[]"#),
        said(r#""x""#, r#","tool_calls":null,"prefix":false"#),
        said(
            r#"[{"type":"thinking","thinking":[{"type":"text","text":"hm \ud800"}],"closed":true},{"type":"text","text":"x"}]"#,
            "",
        ),
        said(
            r#"[{"thinking":[{"text":"one","type":"text"},{"type":"text","text":"two"}],"type":"thinking"},{"text":"x","type":"text"}]"#,
            "",
        ),
        said(r#"[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"x"}]"#, ""),
        said(
            r#"[{"type":"thinking","thinking":[{"type":"reference","reference_ids":[1]}]},{"type":"text","text":"x"},{"type":"reference","reference_ids":[1,2]}]"#,
            "",
        ),
        shown(r#"{"type":"image_url","image_url":"https:\/\/x/y.png"}"#),
        shown(r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}}"#),
        shown(r#"{"type":"document_url","document_url":"https://x/y.pdf","document_name":"y"}"#),
        shown(r#"{"document_url":"data:application/pdf;base64,AA==","type":"document_url"}"#),
        shown(r#"{"type":"file","file_id":"f-1"}"#),
        shown(r#"{"type":"input_audio","input_audio":"AA=="}"#),
        r#"[{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":[{"id":"a1B2c3D4e","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","name":"f","tool_call_id":"a1B2c3D4e","content":[{"type":"text","text":"r"},{"type":"image_url","image_url":"https://x/y.png"}]}]"#.into(),
    ] {
        assert_eq!(messages(&history_of(MISTRAL, &body), MISTRAL), body);
    }
}

#[test]
fn r05_case19_ids_are_nine_alphanumerics_equal_in_call_and_result() {
    let body = r#"[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_abc_123","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"","type":"function","function":{"name":"g","arguments":"{}"}},{"id":"abcdefgh9","type":"function","function":{"name":"h","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_abc_123","content":"1"},{"role":"tool","tool_call_id":"","content":"2"},{"role":"tool","tool_call_id":"abcdefgh9","content":"3"}]"#;
    let text = messages(&history_of(CHAT, body), MISTRAL);
    let list = JsonRef::parse(&text).unwrap();
    let list: Vec<_> = list.items().collect();
    let ids: Vec<String> =
        list[1].get("tool_calls").unwrap().items().map(|call| call.text("id").unwrap().into_owned()).collect();
    let answers: Vec<String> = list[2..].iter().map(|tool| tool.text("tool_call_id").unwrap().into_owned()).collect();
    assert_eq!(ids, answers);
    assert!(ids.iter().all(|id| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric())), "{ids:?}");
    // The same in every build: a changed hash would part calls from results that a service keeps.
    assert_eq!((ids[0].as_str(), ids[2].as_str()), (LEGAL, "abcdefgh9"));
}

/// What `call_abc_123` becomes.
const LEGAL: &str = "BxEjHeFwc";

#[test]
fn case20_two_ids_that_collide_once_shortened_stay_distinct() {
    let legal = crate::id::short_name("call_abc_123", 9);
    let body = format!(
        r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_abc_123","type":"function","function":{{"name":"f","arguments":"{{}}"}}}},{{"id":"{legal}","type":"function","function":{{"name":"g","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"{legal}","content":"of g"}},{{"role":"tool","tool_call_id":"call_abc_123","content":"of f"}}]"#
    );
    let text = messages(&history_of(CHAT, &body), MISTRAL);
    let list = JsonRef::parse(&text).unwrap();
    let list: Vec<_> = list.items().collect();
    let calls: Vec<_> = list[1].get("tool_calls").unwrap().items().map(|call| call.text("id").unwrap()).collect();
    assert_ne!(calls[0], calls[1]);
    for (at, content) in [(0, "of f"), (1, "of g")] {
        let answer = list[2..].iter().find(|tool| tool.text("tool_call_id").as_ref() == Some(&calls[at])).unwrap();
        assert!(answer.get("content").unwrap().is_text(content));
    }
}

#[test]
fn r42_messages_of_other_dialects_are_encoded_for_mistral() {
    let body = r#"[{"role":"developer","content":"d"},{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low"}},{"type":"file","file":{"file_data":"data:application/pdf;base64,AA==","filename":"y.pdf"}}]},{"role":"assistant","content":null,"refusal":"I will not."},{"role":"user","content":"then"},{"role":"assistant","reasoning_content":"hm","content":null,"tool_calls":[{"id":"a1B2c3D4e","type":"custom","custom":{"name":"f","input":"free"}}]},{"role":"tool","tool_call_id":"a1B2c3D4e","content":[{"type":"text","text":"r"}]}]"#;
    assert_eq!(
        messages(&history_of(CHAT, body), MISTRAL),
        r#"[{"role":"system","content":"d"},{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low"}},{"type":"document_url","document_url":"data:application/pdf;base64,AA==","document_name":"y.pdf"}]},{"role":"assistant","content":"I will not."},{"role":"user","content":"then"},{"role":"assistant","content":"","tool_calls":[{"id":"a1B2c3D4e","type":"function","function":{"name":"f","arguments":"\"free\""}}]},{"role":"tool","tool_call_id":"a1B2c3D4e","content":"r"}]"#
    );
    let body = r#"[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"f","input":{"n":1.0}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":[{"type":"text","text":"no"},{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]}]}]"#;
    let text = messages(&history_of(CLAUDE, body), MISTRAL);
    assert!(
        text.starts_with(
            r#"[{"role":"user","content":"q"},{"role":"assistant","content":"I look.","tool_calls":[{"id":""#
        ),
        "{text}"
    );
    assert!(text.contains(r#""arguments":"{\"n\":1.0}""#) && text.contains(r#""content":"Error: no""#), "{text}");
    assert!(text.contains(r#"{"type":"image_url","image_url":{"url":"https://x/y.png"}}"#) && !text.contains("hm"));
}

#[test]
fn r42_a_refusal_between_texts_keeps_its_position() {
    let body = r#"[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"A"},{"type":"refusal","refusal":"B"},{"type":"text","text":"C"}]},{"role":"user","content":"?"}]"#;
    let text = messages(&history_of(CHAT, body), MISTRAL);
    assert!(text.contains(r#"{"role":"assistant","content":"A\n\nB\n\nC"}"#), "{text}");
}

#[test]
fn r42_mistral_messages_are_encoded_for_the_others() {
    let body = r#"[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":"https://x/y.png"},{"type":"document_url","document_url":"https://x/y.pdf","document_name":"y"}]},{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"I look."}],"tool_calls":[{"id":"a1B2c3D4e","function":{"name":"f","arguments":{"n":1.0}}}]},{"role":"tool","name":"f","tool_call_id":"a1B2c3D4e","content":[{"type":"text","text":"r"}]}]"#;
    let history = history_of(MISTRAL, body);
    assert_eq!(
        messages(&history, CHAT),
        r#"[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]},{"role":"assistant","content":"I look.","tool_calls":[{"id":"a1B2c3D4e","type":"function","function":{"name":"f","arguments":"{\"n\":1.0}"}}]},{"role":"tool","tool_call_id":"a1B2c3D4e","content":"r"}]"#
    );
    assert_eq!(
        messages(&history, CLAUDE),
        r#"[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"url","url":"https://x/y.png"}},{"type":"document","source":{"type":"url","url":"https://x/y.pdf"},"title":"y"}]},{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"a1B2c3D4e","name":"f","input":{"n":1.0}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a1B2c3D4e","content":"r"}]}]"#
    );
}

#[test]
fn case54_a_body_that_ends_in_an_answer_is_marked_as_a_prefix() {
    let asked = r#"{"role":"user","content":"q"}"#;
    let history = history_of(MISTRAL, &format!(r#"[{asked},{{"role":"assistant","content":"x"}}]"#));
    assert!(messages(&history, MISTRAL).ends_with(r#"{"role":"assistant","content":"x","prefix":true}]"#));
    // And only there: "Assistant message with prefix True must be last message".
    let body = format!(r#"[{asked},{{"role":"assistant","content":"x","prefix":true}},{asked}]"#);
    assert!(messages(&history_of(MISTRAL, &body), MISTRAL).contains(r#""prefix":false"#));
    let body = format!(r#"[{asked},{{"role":"assistant","content":"x","prefix":true}}]"#);
    assert_eq!(messages(&history_of(MISTRAL, &body), MISTRAL), body);
}

#[test]
fn r42_a_system_message_after_an_answer_becomes_a_user_message() {
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a1B2c3D4e","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a1B2c3D4e","content":"r"}"#;
    for before in [r#"{"role":"assistant","content":"x"}"#, call] {
        let body = format!(
            r#"[{{"role":"user","content":"q"}},{before},{{"role":"developer","content":"s"}},{{"role":"user","content":"?"}}]"#
        );
        let history = history_of(CHAT, &body);
        let rendered =
            render_with(&mut Renderer::default(), &history, &provider(MISTRAL, "{}"), &[], &always()).unwrap();
        let text = String::from_utf8(rendered.body).unwrap();
        assert!(text.ends_with(r#",{"role":"user","content":"s"},{"role":"user","content":"?"}]}"#), "{text}");
        assert!(rendered.report.iter().any(|finding| finding.code.as_str() == "role_order"), "{:?}", rendered.report);
        assert!(messages(&history, CHAT).contains(r#""developer""#));
    }
}

#[test]
fn r55_mistral_tools_tool_choice_and_parameters() {
    let tools = [tool("f", None)];
    let choice = |given: &str| {
        let text = head(MISTRAL, &format!(r#"{{"tool_choice":{given}}}"#), &tools).unwrap().0;
        JsonRef::parse(&text).unwrap().get("tool_choice").unwrap().as_raw().to_owned()
    };
    for (given, want) in [
        (r#""any""#, r#""any""#),
        (r#""required""#, r#""required""#),
        (r#"{"type":"any"}"#, r#""any""#),
        (r#"{"type":"tool","name":"f"}"#, r#"{"type":"function","function":{"name":"f"}}"#),
        (r#"{"type":"auto"}"#, r#""auto""#),
    ] {
        assert_eq!(choice(given), want);
    }
    let (text, found) = head(
        MISTRAL,
        r#"{"model":"m","random_seed":1,"seed":1,"stream_options":{},"max_completion_tokens":9,"system":"s","safe_prompt":true}"#,
        &[],
    )
    .unwrap();
    assert_eq!(text, r#"{"model":"m","random_seed":1,"safe_prompt":true}"#);
    assert_eq!(found.len(), 4, "{found:?}");
    let streamed = ProviderRequest { stream: true, ..provider(MISTRAL, r#"{"model":"m"}"#) };
    let history = history_of(MISTRAL, r#"[{"role":"user","content":"q"}]"#);
    let text = body(&mut Renderer::default(), &history, &streamed).0;
    assert_eq!(text, r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"q"}]}"#);
}

#[test]
fn r43_reasoning_of_a_stream_is_sent_in_the_next_request() {
    let chunk = |delta: &str, end: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}{end}}}]}}\n\n");
    let mut assembler = StreamAssembler::new(MISTRAL);
    for text in [
        chunk(r#"{"role":"assistant","content":""}"#, ""),
        chunk(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"h"}]}]}"#, ""),
        chunk(
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"m"}],"closed":true},{"type":"text","text":"I "}]}"#,
            "",
        ),
        chunk(r#"{"content":"look."}"#, ""),
        chunk(
            r#"{"tool_calls":[{"id":"a1B2c3D4e","function":{"name":"f","arguments":"{}"},"index":0},{"id":"b1B2c3D4e","function":{"name":"f","arguments":"{}"},"index":0}]}"#,
            r#","finish_reason":"tool_calls""#,
        ),
    ] {
        assembler.push(text.as_bytes(), &mut Vec::new());
    }
    let wire = assembler.finish().wire.unwrap();
    let body = format!(
        r#"[{{"role":"user","content":"q"}},{},{{"role":"tool","tool_call_id":"a1B2c3D4e","content":"1"}},{{"role":"tool","tool_call_id":"b1B2c3D4e","content":"2"}}]"#,
        wire.as_str()
    );
    let history = history_of(MISTRAL, &body);
    assert_eq!(messages(&history, MISTRAL), body);
    assert!(body.contains(r#"[{"type":"thinking","thinking":[{"type":"text","text":"hm"}],"closed":true},{"type":"text","text":"I look."}]"#), "{body}");
    let shown = history.messages()[1].parts.iter().find_map(|part| match &part.body {
        PartBody::Reasoning(text) => Some(text.decode().into_owned()),
        _ => None,
    });
    assert_eq!(shown.as_deref(), Some("hm"));
    assert!(!messages(&history, CHAT).contains("hm"), "reasoning goes when the provider changes");
}

fn mistral_wire() -> impl Strategy<Value = String> {
    let id = prop_oneof![Just("\"\""), Just("\"null\""), Just("\"a1B2c3D4e\""), Just("\"call_1\""), Just("null")];
    let arguments =
        prop_oneof![Just("\"{}\""), Just("\"\""), Just("\"{oops\""), Just("{}"), Just("{\"a\":1}"), Just("7")];
    let call = (id.clone(), arguments).prop_map(|(id, arguments)| {
        format!(r#"{{"id":{id},"function":{{"name":"f","arguments":{arguments}}},"index":0}}"#)
    });
    let chunk = prop_oneof![
        Just(r#"{"type":"text","text":""}"#),
        Just(r#"{"text":"x"}"#),
        Just(r#"{"type":"text","text":"said"}"#),
        Just(r#"{"type":"thinking","thinking":[{"type":"text","text":"t"}],"closed":true}"#),
        Just(r#"{"type":"thinking","thinking":[{"type":"text","text":"t"},{"text":"u"}]}"#),
        Just(r#"{"type":"thinking","thinking":7}"#),
        Just(r#"{"type":"image_url","image_url":"https://x/y.png"}"#),
        Just(r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="},"text":"t"}"#),
        Just(r#"{"type":"document_url","document_url":"https://x/y.pdf"}"#),
        Just(r#"{"type":"file","file_id":"f"}"#),
        Just(r#"{"type":"reference","reference_ids":[1]}"#),
        Just(r#"{"type":"tool_use","id":"a","name":"f","input":{}}"#),
        Just("7"),
    ];
    let content = prop_oneof![
        Just("null".to_owned()),
        Just("\"\"".to_owned()),
        Just("\"said\"".to_owned()),
        proptest::collection::vec(chunk, 0..3).prop_map(|chunks| format!("[{}]", chunks.join(","))),
    ];
    let more = prop_oneof![Just(""), Just(r#","prefix":true"#), Just(r#","prefix":false"#), Just(r#","name":"a b""#)];
    prop_oneof![
        (
            prop_oneof![Just("user"), Just("system"), Just("assistant"), Just("developer")],
            content.clone(),
            more.clone()
        )
            .prop_map(|(role, content, more)| format!(r#"{{"role":"{role}","content":{content}{more}}}"#)),
        (content.clone(), proptest::collection::vec(call, 0..3), more.clone()).prop_map(
            |(content, calls, more)| format!(
                r#"{{"role":"assistant","content":{content},"tool_calls":[{}]{more}}}"#,
                calls.join(",")
            )
        ),
        (id, content, more).prop_map(|(id, content, more)| format!(
            r#"{{"role":"tool","tool_call_id":{id},"content":{content}{more}}}"#
        )),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r04_r05_any_mistral_history_is_valid_in_every_dialect(list in proptest::collection::vec(mistral_wire(), 0..8), more in proptest::collection::vec(mistral_wire(), 0..3), now in 0_u64..900_000) {
        let taken = |wires: Vec<String>| -> Vec<String> {
            let is_taken = |wire: &String| decode_body(MISTRAL, JsonRef::parse(&format!("[{wire}]")).unwrap()).is_ok();
            wires.into_iter().filter(is_taken).collect()
        };
        let (list, more) = (taken(list), taken(more));
        let history = history_of(MISTRAL, &format!("[{}]", list.join(",")));
        valid_in_all(&history, None, now)?;
        let live = live_after(&history, MISTRAL, &format!("[{}]", more.join(",")));
        valid_in_all(&history, Some(&live), now)?;
    }
}
