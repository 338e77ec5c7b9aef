//! The conformance cases that concern the repair of a body, and what other libraries do with broken histories.

use crate::*;
use rethread::provider::Dangling;

#[test]
fn case02_results_in_another_order_stay() {
    takes(chat(vec![user("q"), calls(&["a", "b"]), tool("b", "2"), tool("a", "1"), says("x")]), CHAT);
    takes(
        claude(vec![
            human(vec![text("q")]),
            model(vec![use_("a"), use_("b")]),
            human(vec![result("b", "2"), result("a", "1")]),
        ]),
        CLAUDE,
    );
}

#[test]
fn case03_a_dangling_call_before_a_user_message_is_closed_before_it() {
    mends(
        vec![user("q"), calls(&["a"]), user("p")],
        "dangling_call",
        vec![user("q"), calls(&["a"]), closed("a"), user("p")],
    );
    mends_claude(
        vec![human(vec![text("q")]), model(vec![use_("a")]), human(vec![text("p")])],
        "dangling_call",
        vec![human(vec![text("q")]), model(vec![use_("a")]), human(vec![cut("a"), text("p")])],
    );
    // A text that is no list yet becomes one.
    mends_claude(
        vec![user("q"), model(vec![use_("a")]), user("p")],
        "dangling_call",
        vec![user("q"), model(vec![use_("a")]), human(vec![cut("a"), text("p")])],
    );
}

#[test]
fn case04_a_dangling_call_at_the_tail_is_closed() {
    mends(vec![user("q"), calls(&["a"])], "dangling_call", vec![user("q"), calls(&["a"]), closed("a")]);
    mends_claude(
        vec![user("q"), model(vec![use_("a")])],
        "dangling_call",
        vec![user("q"), model(vec![use_("a")]), human(vec![cut("a")])],
    );
}

#[test]
fn case04_or_omitted_by_option() {
    let omit = RepairOptions { dangling: Dangling::Omit, dangling_text: None };
    let body = chat(vec![user("q"), calls(&["a"]), calls(&["b", "c"]), tool("b", "1")]);
    assert_eq!(mended_with(&body, CHAT, &omit), json!([user("q"), calls(&["b"]), tool("b", "1")]));
    let body = claude(vec![user("q"), model(vec![text("let me"), use_("a")]), user("p"), model(vec![use_("b")])]);
    assert_eq!(mended_with(&body, CLAUDE, &omit), json!([user("q"), model(vec![text("let me")]), user("p")]));
}

#[test]
fn case04_with_a_text_of_ones_own() {
    let options = RepairOptions { dangling: Dangling::Synthesize, dangling_text: Some("gone".into()) };
    assert_eq!(mended_with(&chat(vec![calls(&["a"])]), CHAT, &options), json!([calls(&["a"]), tool("a", "gone")]));
}

#[test]
fn case05_only_the_missing_one_of_two_results_is_made() {
    mends(
        vec![calls(&["a", "b"]), tool("b", "2"), user("p")],
        "missing_parallel_result",
        vec![calls(&["a", "b"]), tool("b", "2"), closed("a"), user("p")],
    );
    mends_claude(
        vec![model(vec![use_("a"), use_("b")]), human(vec![result("b", "2"), text("p")])],
        "missing_parallel_result",
        vec![model(vec![use_("a"), use_("b")]), human(vec![result("b", "2"), cut("a"), text("p")])],
    );
}

#[test]
fn case06_an_orphan_result_goes() {
    mends(vec![user("q"), tool("a", "1"), says("x")], "orphan_result", vec![user("q"), says("x")]);
    mends_claude(
        vec![user("q"), human(vec![result("a", "1")]), model(vec![text("x")])],
        "orphan_result",
        vec![user("q"), model(vec![text("x")])],
    );
    let report = validate(chat(vec![tool("a", "1")]).to_string().as_bytes(), CHAT);
    assert_eq!(
        (report[0].path.as_deref(), report[0].call_id.as_deref(), report[0].action),
        (Some("/messages/0"), Some("a"), None)
    );
    assert!(report[0].message.contains("must be a response to a preceeding message with 'tool_calls'"));
}

#[test]
fn case07_an_orphan_inside_a_valid_block_goes_alone() {
    mends(
        vec![calls(&["a", "b"]), tool("a", "1"), tool("z", "9"), tool("b", "2")],
        "orphan_result",
        vec![calls(&["a", "b"]), tool("a", "1"), tool("b", "2")],
    );
    mends_claude(
        vec![model(vec![use_("a")]), human(vec![result("z", "9"), result("a", "1"), text("p")])],
        "orphan_result",
        vec![model(vec![use_("a")]), human(vec![result("a", "1"), text("p")])],
    );
}

#[test]
fn case08_a_result_before_its_call_moves_behind_it() {
    mends(
        vec![user("q"), tool("a", "1"), calls(&["a"]), says("x")],
        "result_before_call",
        vec![user("q"), calls(&["a"]), tool("a", "1"), says("x")],
    );
    mends_claude(
        vec![human(vec![text("q"), result("a", "1")]), model(vec![use_("a")])],
        "result_before_call",
        vec![human(vec![text("q")]), model(vec![use_("a")]), human(vec![result("a", "1")])],
    );
}

#[test]
fn case09_user_text_between_call_and_result_moves_behind() {
    mends(
        vec![calls(&["a"]), user("wait"), tool("a", "1"), says("x")],
        "interposed_message",
        vec![calls(&["a"]), tool("a", "1"), user("wait"), says("x")],
    );
    mends_claude(
        vec![model(vec![use_("a")]), human(vec![text("wait"), result("a", "1")])],
        "interposed_message",
        vec![model(vec![use_("a")]), human(vec![result("a", "1"), text("wait")])],
    );
    mends_claude(
        vec![model(vec![use_("a")]), user("wait"), human(vec![result("a", "1")])],
        "interposed_message",
        vec![model(vec![use_("a")]), human(vec![result("a", "1"), text("wait")])],
    );
}

#[test]
fn case10_system_text_between_call_and_result_moves_behind() {
    mends(
        vec![calls(&["a"]), system("s"), tool("a", "1")],
        "interposed_message",
        vec![calls(&["a"]), tool("a", "1"), system("s")],
    );
    mends_claude(
        vec![model(vec![use_("a")]), system("s"), human(vec![result("a", "1")]), model(vec![text("x")])],
        "interposed_message",
        vec![model(vec![use_("a")]), human(vec![result("a", "1")]), system("s"), model(vec![text("x")])],
    );
}

#[test]
fn case11_of_two_results_the_first_real_one_stays() {
    mends(vec![calls(&["a"]), tool("a", "1"), tool("a", "2")], "duplicate_result", vec![calls(&["a"]), tool("a", "1")]);
    mends(
        vec![calls(&["a"]), closed("a"), user("p"), tool("a", "late")],
        "duplicate_result",
        vec![calls(&["a"]), tool("a", "late"), user("p")],
    );
    mends(vec![calls(&["a"]), tool("a", "1"), closed("a")], "duplicate_result", vec![calls(&["a"]), tool("a", "1")]);
    mends_claude(
        vec![model(vec![use_("a")]), human(vec![result("a", "1"), result("a", "2")])],
        "duplicate_result",
        vec![model(vec![use_("a")]), human(vec![result("a", "1")])],
    );
    mends_claude(
        vec![model(vec![use_("a")]), human(vec![cut("a"), result("a", "real")])],
        "duplicate_result",
        vec![model(vec![use_("a")]), human(vec![result("a", "real")])],
    );
}

#[test]
fn case12_the_second_of_two_calls_with_one_id_is_renamed_with_its_result() {
    mends(
        vec![calls(&["a", "a"]), tool("a", "1"), tool("a", "2")],
        "duplicate_call_id",
        vec![calls(&["a", "a_2"]), tool("a", "1"), tool("a_2", "2")],
    );
    mends(
        vec![calls(&["a", "a_2", "a"]), tool("a_2", "0"), tool("a", "1")],
        "duplicate_call_id",
        vec![calls(&["a", "a_2", "a_3"]), tool("a_2", "0"), tool("a", "1"), closed("a_3")],
    );
    mends_claude(
        vec![model(vec![use_("a")]), model(vec![use_("a")]), human(vec![result("a", "1"), result("a", "2")])],
        "duplicate_call_id",
        vec![model(vec![use_("a")]), model(vec![use_("a_2")]), human(vec![result("a", "1"), result("a_2", "2")])],
    );
}

#[test]
fn case13_an_id_that_comes_again_in_a_later_turn_is_a_warning() {
    let body = chat(vec![calls(&["a"]), tool("a", "1"), user("p"), calls(&["a"]), tool("a", "2")]);
    takes(body.clone(), CHAT);
    assert_eq!(codes(&validate(body.to_string().as_bytes(), CHAT), Severity::Warning), ["duplicate_call_id"]);
    takes(
        claude(vec![
            model(vec![use_("a")]),
            human(vec![result("a", "1")]),
            model(vec![use_("a")]),
            human(vec![result("a", "2")]),
        ]),
        CLAUDE,
    );
    // A second, open call that reuses an answered id is closed in its own turn.
    mends(
        vec![calls(&["a"]), tool("a", "1"), calls(&["a"]), user("p")],
        "dangling_call",
        vec![calls(&["a"]), tool("a", "1"), calls(&["a"]), closed("a"), user("p")],
    );
}

#[test]
fn case14_text_behind_a_call_in_one_turn_keeps_the_pair() {
    takes(claude(vec![user("q"), model(vec![use_("a"), text("so")]), human(vec![result("a", "1")])]), CLAUDE);
    mends(
        vec![calls(&["a"]), says("so"), tool("a", "1")],
        "interposed_message",
        vec![calls(&["a"]), tool("a", "1"), says("so")],
    );
}

#[test]
fn case15_text_and_call_in_one_message_are_taken() {
    takes(chat(vec![json!({ "role": "assistant", "content": "so", "tool_calls": [call("a")] }), tool("a", "1")]), CHAT);
}

#[test]
fn case16_an_empty_text_block_goes() {
    mends_claude(
        vec![user("q"), model(vec![text(""), use_("a")]), human(vec![result("a", "1")])],
        "empty_content",
        vec![user("q"), model(vec![use_("a")]), human(vec![result("a", "1")])],
    );
    takes(chat(vec![json!({ "role": "assistant", "content": "", "tool_calls": [call("a")] }), tool("a", "")]), CHAT);
    takes(chat(vec![json!({ "role": "assistant", "tool_calls": [call("a")] }), tool("a", "1")]), CHAT);
}

#[test]
fn case17_an_assistant_with_nothing_goes() {
    for nothing in [
        json!({ "role": "assistant" }),
        json!({ "role": "assistant", "content": null }),
        json!({ "role": "assistant", "content": [] }),
    ] {
        mends(vec![user("q"), nothing, user("p")], "empty_content", vec![user("q"), user("p")]);
    }
    for nothing in [json!({ "role": "assistant" }), says(""), model(vec![]), model(vec![text("")])] {
        mends_claude(vec![user("q"), nothing, user("p")], "empty_content", vec![user("q"), user("p")]);
    }
    // The final one may be empty.
    takes(claude(vec![user("q"), says("")]), CLAUDE);
}

#[test]
fn case18_an_empty_list_of_calls_goes() {
    for none in [json!([]), Value::Null] {
        mends(
            vec![user("q"), json!({ "role": "assistant", "content": "x", "tool_calls": none })],
            "empty_tool_calls",
            vec![user("q"), says("x")],
        );
    }
    takes(chat(vec![user("q"), json!({ "role": "assistant", "content": "x", "tool_calls": [] }), user("p")]), MISTRAL);
}

#[test]
fn case29_and_30_an_error_result_says_something() {
    for given in [json!(""), json!([]), json!([{ "type": "text", "text": "" }])] {
        let result = json!({ "type": "tool_result", "tool_use_id": "a", "content": given, "is_error": true });
        let body = claude(vec![model(vec![use_("a")]), human(vec![result])]);
        assert!(errors(&body, CLAUDE).contains(&"empty_content"));
        assert!(!mended(&body, CLAUDE)[1]["content"][0]["content"].as_str().unwrap().is_empty());
    }
    takes(claude(vec![model(vec![use_("a")]), human(vec![result("a", "")])]), CLAUDE);
    mends(
        vec![calls(&["a"]), json!({ "role": "tool", "tool_call_id": "a", "content": null })],
        "empty_content",
        vec![calls(&["a"]), tool("a", "")],
    );
}

#[test]
fn case31_an_image_result_moves_to_a_user_message_on_chat() {
    let image = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } });
    let given = json!({ "role": "tool", "tool_call_id": "a", "content": [{ "type": "text", "text": "see" }, image] });
    mends(
        vec![calls(&["a", "b"]), given, tool("b", "2"), says("x")],
        "unsupported_part",
        vec![
            calls(&["a", "b"]),
            json!({ "role": "tool", "tool_call_id": "a", "content": [{ "type": "text", "text": "see" }] }),
            tool("b", "2"),
            human(vec![image.clone()]),
            says("x"),
        ],
    );
    let only = chat(vec![calls(&["a"]), json!({ "role": "tool", "tool_call_id": "a", "content": [image] })]);
    assert_eq!(mended(&only, CHAT)[1]["content"][0]["type"], "text");
    let png = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } });
    takes(
        claude(vec![
            model(vec![use_("a")]),
            human(vec![json!({ "type": "tool_result", "tool_use_id": "a", "content": [png] })]),
        ]),
        CLAUDE,
    );
}

fn signed() -> Value {
    json!({ "type": "thinking", "thinking": "t", "signature": "s" })
}

#[test]
fn case34_and_35_signed_thinking_is_left_alone() {
    let redacted = json!({ "type": "redacted_thinking", "data": "d" });
    takes(
        claude(vec![user("q"), model(vec![signed(), redacted.clone(), use_("a")]), human(vec![result("a", "1")])]),
        CLAUDE,
    );
    mends_claude(
        vec![user("q"), model(vec![signed(), redacted.clone(), use_("a")])],
        "dangling_call",
        vec![user("q"), model(vec![signed(), redacted, use_("a")]), human(vec![cut("a")])],
    );
}

#[test]
fn case36_and_37_unsigned_thinking_goes() {
    for unsigned in [
        json!({ "type": "thinking", "thinking": "t" }),
        json!({ "type": "thinking", "thinking": "t", "signature": "" }),
        json!({ "type": "redacted_thinking" }),
    ] {
        mends_claude(
            vec![user("q"), model(vec![unsigned, text("x")]), user("p")],
            "unsigned_thinking",
            vec![user("q"), model(vec![text("x")]), user("p")],
        );
    }
}

#[test]
fn a_running_tool_loop_begins_with_thinking_or_goes_without() {
    let mut body = claude(vec![user("q"), model(vec![signed(), use_("a")]), human(vec![result("a", "1")])]);
    body["thinking"] = json!({ "type": "enabled", "budget_tokens": 5 });
    takes(body.clone(), CLAUDE);
    body["messages"][1] = model(vec![use_("a")]);
    assert_eq!(errors(&body, CLAUDE), ["unsigned_thinking"]);
    let out: Value =
        serde_json::from_slice(&repair(body.to_string().as_bytes(), CLAUDE, &RepairOptions::default()).0).unwrap();
    assert_eq!((&out["thinking"], &out["messages"]), (&json!({ "type": "disabled" }), &body["messages"]));
    // Thinking that is off may not stand at the end, and may in the middle.
    takes(claude(vec![user("q"), model(vec![signed(), text("x")]), user("p")]), CLAUDE);
    mends_claude(
        vec![user("q"), model(vec![signed(), text("x")])],
        "orphan_reasoning",
        vec![user("q"), model(vec![text("x")])],
    );
}

#[test]
fn case42_a_list_cut_inside_a_block_is_mended_at_its_boundary() {
    mends(vec![tool("b", "2"), says("x"), user("p")], "orphan_result", vec![says("x"), user("p")]);
    mends_claude(
        vec![human(vec![result("b", "2"), text("p")]), model(vec![text("x")])],
        "orphan_result",
        vec![human(vec![text("p")]), model(vec![text("x")])],
    );
}

#[test]
fn case48_server_calls_are_no_client_calls() {
    let (served, found) = (
        json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} }),
        json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": [] }),
    );
    takes(claude(vec![user("q"), model(vec![served.clone(), found.clone(), text("x")]), user("p")]), CLAUDE);
    takes(claude(vec![user("q"), model(vec![served, use_("a")]), human(vec![result("a", "1")])]), CLAUDE);
    mends_claude(
        vec![user("q"), model(vec![found, text("x")]), user("p")],
        "orphan_result",
        vec![user("q"), model(vec![text("x")]), user("p")],
    );
}

#[test]
fn case49_a_paused_turn_is_sent_again_as_it_is() {
    let served = json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} });
    takes(claude(vec![user("q"), model(vec![text("so"), served])]), CLAUDE);
}

#[test]
fn case54_a_history_that_ends_in_an_assistant_message() {
    takes(chat(vec![user("q"), says("x")]), CHAT);
    takes(claude(vec![user("q"), says("x")]), CLAUDE);
    mends_claude(vec![user("q"), says("x \n\u{a0}")], "empty_content", vec![user("q"), says("x")]);
    mends_claude(
        vec![user("q"), model(vec![text("x"), text(" \n")])],
        "empty_content",
        vec![user("q"), model(vec![text("x")])],
    );
    let out = mended(&chat(vec![user("q"), says("x")]), MISTRAL);
    assert_eq!(out[1]["prefix"], json!(true));
}

#[test]
fn case55_tools_pass_untouched() {
    let mut body = chat(vec![calls(&["a"]), tool("a", "1")]);
    body["tools"] = json!([{ "type": "function", "function": { "name": "other" } }]);
    takes(body, CHAT);
}

#[test]
fn an_odd_role_is_mended_and_its_text_kept() {
    mends(
        vec![
            json!({ "role": "model", "content": "x" }),
            json!({ "role": 1, "content": "y" }),
            json!({ "content": "z" }),
        ],
        "role_order",
        vec![says("x"), user("y"), json!({ "content": "z", "role": "user" })],
    );
    mends_claude(vec![json!({ "role": "tool", "content": "x" })], "role_order", vec![user("x")]);
    // A call in a user's message is the assistant's; its answer stays.
    mends_claude(
        vec![human(vec![text("q"), use_("a")]), human(vec![result("a", "1")])],
        "role_order",
        vec![human(vec![text("q")]), model(vec![use_("a")]), human(vec![result("a", "1")])],
    );
    mends_claude(
        vec![model(vec![use_("a"), result("a", "1"), text("x")])],
        "interposed_message",
        vec![model(vec![use_("a"), text("x")]), human(vec![result("a", "1")])],
    );
}

#[test]
fn what_models_refuse_by_name() {
    let mut body = chat(vec![json!({ "role": "developer", "content": "d" }), user("q")]);
    takes(body.clone(), CHAT);
    body["model"] = json!("o1-mini");
    assert_eq!(errors(&body, CHAT), ["role_order"]);
    let mut body = chat(vec![
        json!({ "role": "user", "content": [{ "type": "input_audio", "input_audio": { "data": "AAAA", "format": "mp3" } }] }),
    ]);
    takes(body.clone(), CHAT);
    body["model"] = json!("gpt-5-mini");
    assert_eq!(errors(&body, CHAT), ["unsupported_part"]);
    body["model"] = json!("gpt-4o-audio-preview");
    takes(body, CHAT);
}

/// Rows of what four libraries do with broken histories: thrown, dropped, run again, invented, or sent as they are.
#[test]
fn r41_what_other_libraries_get_wrong() {
    mends(
        vec![user("q"), calls(&["a"]), user("p")],
        "dangling_call",
        vec![user("q"), calls(&["a"]), closed("a"), user("p")],
    );
    mends(
        vec![user("q"), calls(&["a", "b"]), tool("a", "1")],
        "missing_parallel_result",
        vec![user("q"), calls(&["a", "b"]), tool("a", "1"), closed("b")],
    );
    mends(vec![user("q"), tool("a", "1")], "orphan_result", vec![user("q")]);
    mends(
        vec![user("q"), calls(&["a"]), user("p"), tool("a", "1")],
        "interposed_message",
        vec![user("q"), calls(&["a"]), tool("a", "1"), user("p")],
    );
    takes(chat(vec![user("q"), calls(&["a", "b"]), tool("b", "2"), tool("a", "1")]), CHAT);
    takes(chat(vec![user("q"), calls(&["a"]), tool("a", "1"), user("p"), calls(&["a"]), tool("a", "2")]), CHAT);
    mends(
        vec![user("q"), calls(&["a"]), tool("a", "1"), tool("a", "1")],
        "duplicate_result",
        vec![user("q"), calls(&["a"]), tool("a", "1")],
    );
}

#[test]
fn r40_findings_carry_place_call_and_the_providers_words() {
    let report =
        validate(chat(vec![user("q"), calls(&["a", "b"]), tool("a", "1"), user("p")]).to_string().as_bytes(), CHAT);
    let found = &report[0];
    assert_eq!(
        (found.code, found.path.as_deref(), found.call_id.as_deref()),
        ("missing_parallel_result", Some("/messages/1/tool_calls/1"), Some("b"))
    );
    assert!(found.message.starts_with(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    ));
    let report = validate(claude(vec![user("q"), model(vec![text("x"), use_("a")])]).to_string().as_bytes(), CLAUDE);
    assert_eq!(
        (report[0].code, report[0].path.as_deref(), report[0].call_id.as_deref()),
        ("dangling_call", Some("/messages/1/content/1"), Some("a"))
    );
    assert!(report[0].message.contains("ids were found without `tool_result` blocks immediately after: a."));
}
