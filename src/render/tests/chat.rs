//! What servers of OpenAI's format have beside words and calls.

use super::*;
use crate::finding::FindingCode;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const MISTRAL: Dialect = Dialect::Mistral;

/// An answer between two questions.
fn between(answer: &str) -> String {
    format!(r#"[{{"role":"user","content":"q"}},{{"role":"assistant",{answer}}},{{"role":"user","content":"?"}}]"#)
}

/// What a body says in a dialect, and the codes of what was found.
fn shown(history: &History, dialect: Dialect, policy: &Policy, settings: Settings) -> (String, Vec<&'static str>) {
    let params = if dialect == CLAUDE { r#"{"max_tokens":9}"# } else { "{}" };
    let provider = ProviderRequest { settings, ..provider(dialect, params) };
    let rendered = render_with(&mut Renderer::default(), history, &provider, &[], policy).unwrap();
    let codes = rendered.report.iter().map(|finding| finding.code.as_str()).collect();
    (String::from_utf8(rendered.body).unwrap(), codes)
}

#[test]
fn r43_an_answer_of_provider_specific_content_alone_returns_unchanged() {
    let cases = [
        (CHAT, r#""audio":{"id":"audio_1"}"#),
        (CHAT, r#""content":null,"audio":{"id":"audio_1"}"#),
        (CHAT, r#""content":"","audio":{"id":"audio_1"}"#),
        (CHAT, r#""content":"","images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]"#),
        (CHAT, r#""content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"x","index":0}]"#),
        (CHAT, r#""content":"","reasoning_content":"hm""#),
        (CHAT, r#""content":"","prefix":true,"reasoning":"hm","name":"n""#),
        (MISTRAL, r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]"#),
        (MISTRAL, r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}],"closed":false}]"#),
    ];
    for (own, answer) in cases {
        let body = between(answer);
        let history = history_of(own, &body);
        for dialect in Dialect::ALL {
            let (text, codes) = shown(&history, dialect, &always(), Settings::default());
            if dialect == own {
                assert_eq!(messages(&history, own), body);
                assert!(codes.is_empty(), "{codes:?}");
            } else {
                assert_eq!(codes, ["unsupported_part"], "{dialect:?} of {answer}");
                assert!(!text.contains("hm") && !text.contains(r#""assistant""#), "{text}");
            }
        }
    }
}

#[test]
fn r43_an_empty_answer_is_omitted() {
    for (dialect, answer) in [
        (CHAT, r#""content":"""#),
        (
            CHAT,
            r#""content":"","id":"msg_1","index":0,"annotations":[],"audio":{},"reasoning_content":"","refusal":null"#,
        ),
        (MISTRAL, r#""content":[]"#),
        (MISTRAL, r#""content":"","tool_calls":[]"#),
        (MISTRAL, r#""content":[{"type":"text","text":""}]"#),
    ] {
        let history = history_of(dialect, &between(answer));
        assert!(!messages(&history, dialect).contains("assistant"), "{answer}");
    }
}

#[test]
fn r11_reasoning_is_dropped_with_its_calls() {
    let body = r#"[{"role":"user","content":"q"},{"role":"assistant","content":"","reasoning_content":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"r"},{"role":"assistant","content":"x"},{"role":"user","content":"?"}]"#;
    let history = history_of(CHAT, body);
    let (text, _) = shown(&history, CHAT, &Policy::default(), Settings::default());
    assert!(!text.contains("hm") && text.contains(r#""content":"x""#), "{text}");
    assert!(messages(&history, CHAT).contains("hm"));
}

#[test]
fn r43_a_message_of_unsendable_reasoning_is_omitted() {
    let drop = Settings { reasoning: ReasoningField::Drop, ..Settings::default() };
    let history = history_of(CHAT, &between(r#""content":"","reasoning_content":"hm","reasoning_details":[{"a":1}]"#));
    let (text, _) = shown(&history, CHAT, &always(), drop);
    assert!(!text.contains("assistant"), "{text}");
    let history = history_of(CHAT, &between(r#""content":"","reasoning_content":"hm","audio":{"id":"a"}"#));
    let (text, _) = shown(&history, CHAT, &always(), drop);
    assert!(text.contains(r#"{"role":"assistant","content":"","audio":{"id":"a"}}"#), "{text}");
}

#[test]
fn r43_a_servers_reasoning_requirements_apply_to_its_own_answers() {
    let cases = [
        // As it came, dropped, under a name.
        (r#""content":"y","reasoning_content":null"#, r#""content":"y""#, r#""content":"y","reasoning_content":null"#),
        (r#""reasoning_content":"","content":"y""#, r#""content":"y""#, r#""reasoning_content":"","content":"y""#),
        (r#""content":"y","reasoning":"R""#, r#""content":"y""#, r#""content":"y","reasoning_content":"R""#),
        (r#""reasoning":null,"content":"y""#, r#""content":"y""#, r#""content":"y""#),
        (
            r#""content":"y","reasoning":"R","reasoning_content":"R","reasoning_details":[{"a":1}]"#,
            r#""content":"y""#,
            r#""content":"y","reasoning_content":"R","reasoning_details":[{"a":1}]"#,
        ),
    ];
    for (came, dropped, named) in cases {
        let history = history_of(CHAT, &between(came));
        for (reasoning, want) in [
            (ReasoningField::AsCame, came),
            (ReasoningField::Drop, dropped),
            (ReasoningField::Named("reasoning_content"), named),
        ] {
            let (text, _) = shown(&history, CHAT, &always(), Settings { reasoning, ..Settings::default() });
            assert_eq!(text, format!(r#"{{"messages":{}}}"#, between(want)), "{reasoning:?}");
        }
    }
}

#[test]
fn r43_members_documented_by_compatible_servers_return_unchanged() {
    let call = r#""content":"","tool_calls":[{"id":"a","type":"builtin_function","function":{"name":"$web_search","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"{}","name":"$web_search""#;
    for answer in [
        call,
        r#""content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm","signature":"s"}]},{"type":"text","text":"x"}]"#,
        r#""content":[{"type":"thinking","thinking":"hm","closed":true}]"#,
    ] {
        let body = between(answer);
        let history = history_of(CHAT, &body);
        assert_eq!(messages(&history, CHAT), body);
        let (text, _) = shown(&history, MISTRAL, &always(), Settings::default());
        assert!(!text.contains("hm") && !text.contains('$') && !text.contains("builtin"), "{text}");
    }
}

#[test]
fn r73_a_request_reports_the_reasoning_that_its_model_misses() {
    let call = r#"{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let result = r#"{"role":"tool","tool_call_id":"a","content":"r"}"#;
    let thought = call.replace(r#""content":"""#, r#""content":"","reasoning_content":"hm""#);
    let question = r#"{"role":"user","content":"q"}"#;
    let missing = |body: &str, params: &str| {
        let history = history_of(CHAT, body);
        let rendered =
            render_with(&mut Renderer::default(), &history, &provider(CHAT, params), &[], &always()).unwrap();
        let findings = rendered.report.into_iter().filter(|finding| finding.code == FindingCode::MissingReasoning);
        findings.map(|finding| finding.message_id.clone().unwrap()).collect::<Vec<_>>()
    };
    let history = history_of(CHAT, &format!("[{question},{call},{result}]"));
    let expected = vec![history.messages()[1].id.clone()];
    for params in [r#"{"model":"deepseek-v4-pro"}"#, r#"{"model":"qwen3.7-max","enable_thinking":true}"#] {
        assert_eq!(missing(&format!("[{question},{call},{result}]"), params), expected, "{params}");
        assert!(missing(&format!("[{question},{thought},{result}]"), params).is_empty(), "{params}");
        assert!(missing(&format!("[{question},{call},{result},{question}]"), params).is_empty(), "{params}");
    }
    for params in [r#"{"model":"gpt-6"}"#, r#"{"model":"deepseek-v4-pro","thinking":{"type":"disabled"}}"#] {
        assert!(missing(&format!("[{question},{call},{result}]"), params).is_empty(), "{params}");
    }
}
