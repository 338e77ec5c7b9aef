//! Anthropic's own blocks: what must return to it as it came, and what no other provider may see.

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const ASKED: &str = r#"{"role":"user","content":"q"}"#;

fn goes_back(content: &str) -> String {
    let body = format!(
        r#"[{ASKED},{{"role":"assistant","content":[{content}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_1","content":"r"}}]}},{{"role":"assistant","content":"x"}},{ASKED}]"#
    );
    assert_eq!(messages(&history_of(CLAUDE, &body), CLAUDE), body);
    body
}

const USE: &str = r#"{"type":"tool_use","id":"toolu_1","name":"f","input":{"n":1.0}}"#;

#[test]
fn r43_case34_case35_thinking_and_redacted_thinking_keep_bytes_and_order_around_calls() {
    let thinking = r#"{"type":"thinking","thinking":"h\u006d","signature":"EqQB+\/=="}"#;
    let redacted = r#"{"type":"redacted_thinking","data":"a+\/b=="}"#;
    let text = r#"{"type":"text","text":"I look."}"#;
    for content in [
        format!("{thinking},{USE}"),
        format!("{thinking},{redacted},{text},{USE}"),
        format!("{redacted},{text},{thinking},{USE}"),
        format!(r#"{{"type":"thinking","thinking":"","signature":"EqQB"}},{USE}"#),
        format!(r#"{{"signature":"EqQB","thinking":"hm","type":"thinking"}},{USE}"#),
    ] {
        let body = goes_back(&content);
        let told = messages(&history_of(CLAUDE, &body), CHAT);
        for secret in ["EqQB", "hm", "h\\u006d", "a+"] {
            assert!(!told.contains(secret), "{told}");
        }
    }
}

#[test]
fn r43_case36_case37_thinking_that_anthropic_did_not_sign_is_removed() {
    let body = format!(
        r#"[{ASKED},{{"role":"assistant","content":[{{"type":"thinking","thinking":"hm","signature":""}},{{"type":"text","text":"x"}}]}},{ASKED}]"#
    );
    assert!(!messages(&history_of(CLAUDE, &body), CLAUDE).contains("hm"));
    let body = format!(r#"[{ASKED},{{"role":"assistant","reasoning_content":"hm","content":"x"}},{ASKED}]"#);
    assert!(!messages(&history_of(CHAT, &body), CLAUDE).contains("hm"));
}

#[test]
fn case48_server_calls_have_their_results_in_the_message_and_are_not_invocations() {
    let search = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"},"caller":{"type":"direct"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u","title":"t","encrypted_content":"E\/r","page_age":null}]}"#;
    let code = r#"{"type":"server_tool_use","id":"srvtoolu_2","name":"bash_code_execution","input":{"command":"ls"}},{"type":"bash_code_execution_tool_result","tool_use_id":"srvtoolu_2","content":{"type":"bash_code_execution_result","stdout":"a","stderr":"","return_code":0,"content":[]}}"#;
    let mcp = r#"{"type":"mcp_tool_use","id":"mcptoolu_1","name":"ask","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"r"}]}"#;
    let cited = r#"{"type":"text","text":"It is.","citations":[{"type":"web_search_result_location","url":"u","cited_text":"c","encrypted_index":"Eo8="}]}"#;
    let upload = r#"{"type":"container_upload","file_id":"file_1"}"#;
    let summary = r#"{"type":"compaction","content":"so far","encrypted_content":"x=="}"#;
    for content in [
        format!("{search},{cited},{USE}"),
        format!("{code},{USE}"),
        format!("{mcp},{cited},{USE}"),
        format!("{search},{code},{mcp},{cited},{USE}"),
        format!("{summary},{cited},{USE}"),
        format!("{upload},{USE}"),
        // One that the client's own call comes with, and that the model wrote on behind without an answer to it.
        format!(r#"{{"type":"server_tool_use","id":"srvtoolu_3","name":"web_search","input":{{}}}},{USE}"#),
    ] {
        let body = goes_back(&content);
        let history = history_of(CLAUDE, &body);
        assert_eq!(history.invocations().len(), 1, "{content}");
        let told = messages(&history, CHAT);
        assert!(told.contains("toolu_1") && !told.contains("srvtoolu") && !told.contains("mcptoolu"), "{told}");
        assert_eq!(told.contains("It is."), content.contains("It is."));
    }
    // One that the client's own call comes with is answered behind the client's result.
    let (asks, serves) = search.split_once(r#",{"type":"web_search_tool_result""#).unwrap();
    let open = format!(
        r#"{ASKED},{{"role":"assistant","content":[{asks},{USE}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_1","content":"r"}}]}}"#
    );
    let answered = format!(
        r#"{open},{{"role":"assistant","content":[{{"type":"web_search_tool_result"{serves},{cited}]}},{ASKED}"#
    );
    for body in [format!("[{open}]"), format!("[{answered}]")] {
        assert_eq!(messages(&history_of(CLAUDE, &body), CLAUDE), body);
    }
}

#[test]
fn case31_a_result_can_contain_images_documents_and_search_results() {
    let content = r#"[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},{"type":"document","title":"d","source":{"type":"text","media_type":"text/plain","data":"words"},"citations":{"enabled":true}},{"type":"search_result","source":"u","title":"t","content":[{"type":"text","text":"found"}]}]"#;
    let body = format!(
        r#"[{ASKED},{{"role":"assistant","content":[{USE}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_1","content":{content}}}]}}]"#
    );
    let history = history_of(CLAUDE, &body);
    assert_eq!(messages(&history, CLAUDE), body);
    // Elsewhere the words stay in the result, and the picture moves behind it.
    let told = messages(&history, CHAT);
    let list: Vec<_> = JsonRef::parse(&told).unwrap().items().map(|message| message.to_owned()).collect();
    assert!(
        list[2].as_str().contains("see") && list[2].as_str().contains("found") && list[2].as_str().contains("words")
    );
    assert!(list[3].as_str().contains("data:image/png;base64,AA=="), "{told}");
}

#[test]
fn r40_a_body_keeps_the_newest_four_cache_marks() {
    let marked = |n: usize| {
        format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"q{n}","cache_control":{{"type":"ephemeral"}}}}]}}"#
        )
    };
    let plain = |n: usize| format!(r#"{{"role":"user","content":[{{"type":"text","text":"q{n}"}}]}}"#);
    let ids = CountingIds::default();
    let mut history = History::new(Seed(1));
    let mut renderer = Renderer::default();
    let claude = provider(CLAUDE, r#"{"max_tokens":9}"#);
    for n in 0..7 {
        append(&mut history, CLAUDE, &format!("[{}]", marked(n)), &ids);
        let first = (n + 1).saturating_sub(4);
        let want: Vec<String> = (0..=n).map(|at| if at < first { plain(at) } else { marked(at) }).collect();
        let (text, stable) = body(&mut renderer, &history, &claude);
        assert!(text.contains(&want.join(",")), "{text}");
        // What changes is not promised to be the same.
        assert_eq!(stable as usize, if n < 4 { n } else { 0 });
    }
    // Those of the system text count.
    let claude = provider(
        CLAUDE,
        r#"{"max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]}"#,
    );
    let (text, _) = body(&mut Renderer::default(), &history, &claude);
    assert_eq!(text.matches("cache_control").count(), 4);
    assert!(text.contains(r#""input_schema":{"type":"object"},"cache_control""#));
}

#[test]
fn r43_directions_without_text_return_unchanged() {
    for directs in [
        r#"{"role":"system","content":[],"output_config":{"effort":"low"}}"#,
        r#"{"role":"system","output_config":{"effort":"low"}}"#,
    ] {
        for body in [
            format!(r#"[{ASKED},{directs},{{"role":"assistant","content":"x"}},{ASKED}]"#),
            format!("[{directs},{ASKED}]"),
        ] {
            assert_eq!(messages(&history_of(CLAUDE, &body), CLAUDE), body);
        }
    }
}

#[test]
fn r43_a_synthesized_result_has_its_calls_toolset_name() {
    let call = USE.replace("}}", r#"},"toolset_name":"computer"}"#);
    let body = format!(r#"[{ASKED},{{"role":"assistant","content":[{call}]}}]"#);
    let sent = messages(&history_of(CLAUDE, &body), CLAUDE);
    assert!(sent.contains(r#""is_error":true,"toolset_name":"computer"}"#), "{sent}");
}

#[test]
fn r43_a_message_of_thinking_alone_is_omitted_and_reported() {
    let body = format!(
        r#"[{ASKED},{{"role":"assistant","content":[{{"type":"thinking","thinking":"hm","signature":"EqQB"}}]}},{ASKED}]"#
    );
    let history = history_of(CLAUDE, &body);
    let claude = provider(CLAUDE, r#"{"max_tokens":9}"#);
    let rendered = render_with(&mut Renderer::default(), &history, &claude, &[], &always()).unwrap();
    let codes: Vec<_> = rendered.report.iter().map(|found| (found.code.as_str(), found.action)).collect();
    assert_eq!(codes, [("orphan_reasoning", Some(crate::finding::Action::Dropped))]);
}

#[test]
fn r40_white_space_and_images_of_answers_are_not_sent_to_anthropic() {
    let body = format!(r#"[{ASKED},{{"role":"assistant","content":" \n"}},{ASKED}]"#);
    assert_eq!(messages(&history_of(CHAT, &body), CLAUDE), format!("[{ASKED},{ASKED}]"));
    let image = r#"{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}"#;
    let body = format!(r#"[{ASKED},{{"role":"assistant","content":[{image},{{"type":"text","text":"x"}}]}},{ASKED}]"#);
    assert!(!messages(&history_of(CLAUDE, &body), CLAUDE).contains("image"));
}

#[test]
fn r10_stale_results_in_one_message_are_removed_though_their_calls_are_equal() {
    let history = history_of(
        CLAUDE,
        r#"[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"one"},{"type":"tool_result","tool_use_id":"b","content":"two"},{"type":"text","text":"And now?"}]}]"#,
    );
    let (mut renderer, claude) = (Renderer::default(), provider(CLAUDE, r#"{"max_tokens":9}"#));
    let fresh = body(&mut renderer, &history, &claude).0;
    assert!(fresh.contains("one") && fresh.contains("two"), "{fresh}");
    let stale = Policy {
        call: PolicyLayer { freshness: Some(Window::Millis(0)), ..PolicyLayer::default() },
        ..Policy::default()
    };
    // The history ends with an answer in it, so that its turn is over.
    let mut history = history;
    append(
        &mut history,
        CLAUDE,
        r#"[{"role":"assistant","content":"x"},{"role":"user","content":"Then?"}]"#,
        &CountingIds::default(),
    );
    let _ = body(&mut renderer, &history, &claude);
    let rendered = render_with(&mut renderer, &history, &claude, &[], &stale).unwrap();
    let text = String::from_utf8(rendered.body).unwrap();
    assert!(!text.contains("tool_result") && text.contains("And now?"), "{text}");
    assert!(rendered.report.iter().all(|finding| finding.code.as_str() == "stale"), "{:?}", rendered.report);
}

#[test]
fn case54_a_body_that_ends_in_an_answer_lets_the_user_go_on_for_newer_models() {
    let history = history_of(CLAUDE, &format!(r#"[{ASKED},{{"role":"assistant","content":"x"}}]"#));
    let mut renderer = Renderer::default();
    let mut list_for = |model: &str| {
        let params = format!(r#"{{"model":"{model}","max_tokens":9}}"#);
        let (text, _) = body(&mut renderer, &history, &provider(CLAUDE, &params));
        JsonRef::parse(&text).unwrap().get("messages").unwrap().as_raw().to_owned()
    };
    let answer = format!(r#"{ASKED},{{"role":"assistant","content":"x"}}"#);
    let go_on = r#"{"role":"user","content":[{"type":"text","text":"Continue."}]}"#;
    assert_eq!(list_for("claude-opus-5"), format!("[{answer},{go_on}]"));
    assert_eq!(list_for("claude-opus-4-5"), format!("[{answer}]"));
    // With a question it is not said, and it is never stored.
    let asked = history_of(CLAUDE, &format!("[{answer},{ASKED}]"));
    let (text, _) = body(&mut renderer, &asked, &provider(CLAUDE, r#"{"model":"claude-opus-5","max_tokens":9}"#));
    assert!(!text.contains("Continue."), "{text}");
}
