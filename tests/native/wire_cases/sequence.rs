//! Cases 1 to 18: the order of messages, calls and results.

use crate::wire_cases::*;
use rethread::provider::Dangling;
use rethread::replay::DanglingCalls;
use serde_json::json;

/// Writes a conversation in which `EMPTY` stands for an empty text.
fn with_empty(dialect: Dialect, talk: &str) -> Value {
    serde_json::from_str(&write(dialect, talk).to_string().replace("EMPTY", "")).unwrap()
}

fn omit() -> RepairOptions {
    RepairOptions { dangling: Dangling::Omit, dangling_text: None }
}

/// Which steps there are, in whatever order.
fn sorted(steps: &str) -> Vec<&str> {
    let mut steps: Vec<_> = steps.split("; ").collect();
    steps.sort_unstable();
    steps
}

#[test]
fn wf_01_call_result_and_answer_are_accepted_everywhere() {
    for dialect in ALL {
        assert_accepted(write(dialect, "u q; c a; r a=1; a x; u p"), dialect);
        assert_accepted(write(dialect, "s be brief; u q; a so + c a b; r a=1 b=2; c c; r c=3; a x; u p"), dialect);
    }
    assert_converts("u q; c a; r a=1; a x; u p", "u q; c 1; r 1=1; a x; u p", &[]);
    assert_converts(
        "s be brief; u q; a so + c a b; r a=1 b=2; c c; r c=3; a x; u p",
        "s be brief; u q; a so; c 1; c 2; r 1=1; r 2=2; c 3; r 3=3; a x; u p",
        &[],
    );
}

#[test]
fn wf_02_parallel_results_in_another_order_are_kept_in_one_turn() {
    let given = "u q; c a b; r b=2 a=1; a x; u p";
    assert_converts(given, "u q; c 1; c 2; r 1=1; r 2=2; a x; u p", &[]);
    for from in ALL {
        let body = write(from, given);
        assert_accepted(body.clone(), from);
        for to in ALL {
            let out = Stored::of(from, &body).body(to);
            let turn = &out[list_name(to)][2];
            match to {
                Dialect::Anthropic | Dialect::Bedrock => {
                    assert_eq!(turn["content"].as_array().unwrap().len(), 2, "{from:?} {out}")
                }
                Dialect::Gemini => assert_eq!(turn["parts"].as_array().unwrap().len(), 2, "{from:?} {out}"),
                _ => {}
            }
        }
    }
    assert_accepted(chat(vec![user("q"), calls(&["a", "b"]), tool("b", "2"), tool("a", "1"), assistant("x")]), CHAT);
    assert_accepted(
        claude(vec![
            user_blocks(vec![text("q")]),
            assistant_blocks(vec![tool_use("a"), tool_use("b")]),
            user_blocks(vec![result("b", "2"), result("a", "1")]),
        ]),
        CLAUDE,
    );
}

#[test]
fn wf_03_a_dangling_call_before_a_user_message_is_closed_before_it() {
    assert_converts("u q; c a; u p", "u q; c 1; r 1=closed; u p", &["dangling_call"]);
    assert_converts("u q; a so + c a; u p; a x; u n", "u q; a so; c 1; r 1=closed; u p; a x; u n", &["dangling_call"]);
    assert_chat_repair(
        vec![user("q"), calls(&["a"]), user("p")],
        "dangling_call",
        vec![user("q"), calls(&["a"]), interrupted_tool("a"), user("p")],
    );
    assert_claude_repair(
        vec![user_blocks(vec![text("q")]), assistant_blocks(vec![tool_use("a")]), user_blocks(vec![text("p")])],
        "dangling_call",
        vec![
            user_blocks(vec![text("q")]),
            assistant_blocks(vec![tool_use("a")]),
            user_blocks(vec![interrupted_result("a"), text("p")]),
        ],
    );
    // A text that is no list yet becomes one.
    assert_claude_repair(
        vec![user("q"), assistant_blocks(vec![tool_use("a")]), user("p")],
        "dangling_call",
        vec![user("q"), assistant_blocks(vec![tool_use("a")]), user_blocks(vec![interrupted_result("a"), text("p")])],
    );
    let q = || user_parts(vec![text_part("q")]);
    assert_gemini_repair(
        vec![q(), model_parts(vec![function_call("f")]), user_parts(vec![text_part("p")])],
        "dangling_call",
        vec![
            q(),
            model_parts(vec![function_call("f")]),
            user_parts(vec![interrupted_response("f")]),
            user_parts(vec![text_part("p")]),
        ],
    );
    assert_responses_repair(
        vec![user("q"), call_item("a"), user("p")],
        "dangling_call",
        vec![user("q"), call_item("a"), output_item("a", TEXT), user("p")],
    );
}

#[test]
fn wf_04_a_dangling_call_at_the_end_is_closed_and_reported() {
    assert_converts("u q; c a", "u q; c 1; r 1=closed", &["dangling_call"]);
    assert_converts("u q; c a b", "u q; c 1; c 2; r 1=closed; r 2=closed", &["dangling_call"]);
    assert_chat_repair(
        vec![user("q"), calls(&["a"])],
        "dangling_call",
        vec![user("q"), calls(&["a"]), interrupted_tool("a")],
    );
    assert_claude_repair(
        vec![user("q"), assistant_blocks(vec![tool_use("a")])],
        "dangling_call",
        vec![user("q"), assistant_blocks(vec![tool_use("a")]), user_blocks(vec![interrupted_result("a")])],
    );
    let q = || user_parts(vec![text_part("q")]);
    assert_gemini_repair(
        vec![q(), model_parts(vec![function_call("f")])],
        "dangling_call",
        vec![q(), model_parts(vec![function_call("f")]), user_parts(vec![interrupted_response("f")])],
    );
}

#[test]
fn wf_04_a_dangling_call_is_omitted_by_option() {
    let policy = Policy {
        call: PolicyLayer { dangling_calls: Some(DanglingCalls::Omit), ..always().call },
        ..Policy::default()
    };
    for from in ALL {
        for (given, want) in [
            ("u q; c a", "u q"),
            ("u q; a so + c a; u p", "u q; a so; u p"),
            ("u q; c a b; r b=2; u p", "u q; c 1; r 1=2; u p"),
        ] {
            let body = write(from, given);
            let out = json!({ list_name(from): repaired_body_with(&body, from, &omit()) });
            assert_eq!(read(from, &out), want, "{from:?} {out}");
            for to in ALL {
                let (text, report) = Stored::of(from, &body).bytes_by(&request(to), &[], &policy);
                assert_eq!(read(to, &serde_json::from_str(&text).unwrap()), want, "{from:?} {to:?} {text}");
                assert!(has(&report, &["dangling_call"]));
                let out = convert(body.to_string().as_bytes(), from, to, &omit()).unwrap().0;
                assert_eq!(read(to, &serde_json::from_slice(&out).unwrap()), want, "{from:?} {to:?}");
            }
        }
    }
    let omit = RepairOptions { dangling: Dangling::Omit, dangling_text: None };
    let body = chat(vec![user("q"), calls(&["a"]), calls(&["b", "c"]), tool("b", "1")]);
    assert_eq!(repaired_body_with(&body, CHAT, &omit), json!([user("q"), calls(&["b"]), tool("b", "1")]));
    let body = claude(vec![
        user("q"),
        assistant_blocks(vec![text("let me"), tool_use("a")]),
        user("p"),
        assistant_blocks(vec![tool_use("b")]),
    ]);
    assert_eq!(
        repaired_body_with(&body, CLAUDE, &omit),
        json!([user("q"), assistant_blocks(vec![text("let me")]), user("p")])
    );
}

#[test]
fn wf_04_a_dangling_call_is_closed_with_a_custom_text() {
    let options = RepairOptions { dangling: Dangling::Synthesize, dangling_text: Some("gone".into()) };
    for from in ALL {
        let out = json!({ list_name(from): repaired_body_with(&write(from, "u q; c a"), from, &options) });
        assert_eq!(read(from, &out), "u q; c 1; r 1=gone", "{from:?}");
    }
    assert_eq!(
        repaired_body_with(&chat(vec![calls(&["a"])]), CHAT, &options),
        json!([calls(&["a"]), tool("a", "gone")])
    );
}

#[test]
fn wf_05_only_the_missing_one_of_two_results_is_synthesized() {
    let codes = ["missing_parallel_result", "dangling_call"];
    assert_converts("u q; c a b; r b=2; u p", "u q; c 1; c 2; r 1=closed; r 2=2; u p", &codes);
    assert_converts("u q; c a b; r a=1", "u q; c 1; c 2; r 1=1; r 2=closed", &codes);
    assert_chat_repair(
        vec![calls(&["a", "b"]), tool("b", "2"), user("p")],
        "missing_parallel_result",
        vec![calls(&["a", "b"]), tool("b", "2"), interrupted_tool("a"), user("p")],
    );
    assert_claude_repair(
        vec![assistant_blocks(vec![tool_use("a"), tool_use("b")]), user_blocks(vec![result("b", "2"), text("p")])],
        "missing_parallel_result",
        vec![
            assistant_blocks(vec![tool_use("a"), tool_use("b")]),
            user_blocks(vec![result("b", "2"), interrupted_result("a"), text("p")]),
        ],
    );
    let q = || user_parts(vec![text_part("q")]);
    assert_gemini_repair(
        vec![
            q(),
            model_parts(vec![function_call("f"), function_call("g")]),
            user_parts(vec![function_response("g", "2")]),
        ],
        "missing_parallel_result",
        vec![
            q(),
            model_parts(vec![function_call("f"), function_call("g")]),
            user_parts(vec![function_response("g", "2"), interrupted_response("f")]),
        ],
    );
    assert_responses_repair(
        vec![call_item("a"), call_item("b"), output_item("b", "2")],
        "missing_parallel_result",
        vec![call_item("a"), call_item("b"), output_item("b", "2"), output_item("a", TEXT)],
    );
}

#[test]
fn wf_06_an_orphan_result_is_removed_and_reported() {
    assert_converts("u q; r z=9; a x; u p", "u q; a x; u p", &["orphan_result"]);
    assert_converts("u q; c a; r a=1; a x; r z=9; u p", "u q; c 1; r 1=1; a x; u p", &["orphan_result"]);
    assert_chat_repair(
        vec![user("q"), tool("a", "1"), assistant("x")],
        "orphan_result",
        vec![user("q"), assistant("x")],
    );
    assert_claude_repair(
        vec![user("q"), user_blocks(vec![result("a", "1")]), assistant_blocks(vec![text("x")])],
        "orphan_result",
        vec![user("q"), assistant_blocks(vec![text("x")])],
    );
    let report = validate(chat(vec![tool("a", "1")]).to_string().as_bytes(), CHAT);
    assert_eq!(
        (report[0].path.as_deref(), report[0].call_id.as_deref(), report[0].action),
        (Some("/messages/0"), Some("a"), None)
    );
    assert!(report[0].message.contains("must be a response to a preceeding message with 'tool_calls'"));
    let q = || user_parts(vec![text_part("q")]);
    assert_gemini_repair(vec![q(), user_parts(vec![function_response("f", "1")])], "orphan_result", vec![q()]);
    assert_responses_repair(vec![user("q"), output_item("a", "1")], "orphan_result", vec![user("q")]);
}

#[test]
fn wf_07_an_orphan_inside_a_valid_block_is_removed_alone() {
    assert_converts("u q; c a b; r a=1 z=9 b=2; u p", "u q; c 1; c 2; r 1=1; r 2=2; u p", &["orphan_result"]);
    assert_chat_repair(
        vec![calls(&["a", "b"]), tool("a", "1"), tool("z", "9"), tool("b", "2")],
        "orphan_result",
        vec![calls(&["a", "b"]), tool("a", "1"), tool("b", "2")],
    );
    assert_claude_repair(
        vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("z", "9"), result("a", "1"), text("p")])],
        "orphan_result",
        vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1"), text("p")])],
    );
}

#[test]
fn wf_08_a_result_before_its_call_is_moved_after_it() {
    assert_converts("u q; r a=1; c a; u p", "u q; c 1; r 1=1; u p", &["result_before_call"]);
    assert_converts("u q; r a=1; c a b; r b=2; u p", "u q; c 1; c 2; r 1=1; r 2=2; u p", &["result_before_call"]);
    assert_chat_repair(
        vec![user("q"), tool("a", "1"), calls(&["a"]), assistant("x")],
        "result_before_call",
        vec![user("q"), calls(&["a"]), tool("a", "1"), assistant("x")],
    );
    assert_claude_repair(
        vec![user_blocks(vec![text("q"), result("a", "1")]), assistant_blocks(vec![tool_use("a")])],
        "result_before_call",
        vec![user_blocks(vec![text("q")]), assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1")])],
    );
    assert_responses_repair(
        vec![user("q"), output_item("a", "1"), call_item("a")],
        "result_before_call",
        vec![user("q"), call_item("a"), output_item("a", "1")],
    );
}

#[test]
fn wf_09_user_text_between_call_and_result_is_moved_after_the_result() {
    let want = "u q; c 1; r 1=1; u wait; a x; u p";
    assert_converts("u q; c a; u wait; r a=1; a x; u p", want, &["interposed_message"]);
    assert_chat_repair(
        vec![calls(&["a"]), user("wait"), tool("a", "1"), assistant("x")],
        "interposed_message",
        vec![calls(&["a"]), tool("a", "1"), user("wait"), assistant("x")],
    );
    assert_claude_repair(
        vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![text("wait"), result("a", "1")])],
        "interposed_message",
        vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1"), text("wait")])],
    );
    assert_claude_repair(
        vec![assistant_blocks(vec![tool_use("a")]), user("wait"), user_blocks(vec![result("a", "1")])],
        "interposed_message",
        vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1"), text("wait")])],
    );
    let q = || user_parts(vec![text_part("q")]);
    assert_gemini_repair(
        vec![
            q(),
            model_parts(vec![function_call("f")]),
            user_parts(vec![text_part("p")]),
            user_parts(vec![function_response("f", "1")]),
        ],
        "interposed_message",
        vec![
            q(),
            model_parts(vec![function_call("f")]),
            user_parts(vec![function_response("f", "1")]),
            user_parts(vec![text_part("p")]),
        ],
    );
    assert_responses_repair(
        vec![call_item("a"), user("p"), output_item("a", "1")],
        "interposed_message",
        vec![call_item("a"), output_item("a", "1"), user("p")],
    );
}

#[test]
fn wf_10_system_text_between_call_and_result_is_moved_after_the_result() {
    // Gemini has no place for it but beside the list; Mistral takes none there that is a system's.
    let more = |dialect| if dialect == MISTRAL { "u more; " } else { "s more; " };
    for from in [CHAT, Dialect::OpenAiResponses, CLAUDE, MISTRAL] {
        let body = write(from, "u q; c a; s more; r a=1; a x; u p");
        let (out, report) = repaired(&body, from);
        assert_eq!(read(from, &out), format!("u q; c 1; r 1=1; {}a x; u p", more(from)), "{from:?} {out}");
        assert!(has(&report, &["interposed_message"]), "{report:?}");
        for to in ALL {
            for out in [Stored::of(from, &body).body(to), converted(&body, from, to).0] {
                let said = read(to, &out);
                // Converted from Mistral, it is repaired first.
                let own = [more(from), more(to)].into_iter().find(|more| said.contains(more)).unwrap_or("?");
                assert!(said.contains("c 1; r 1=1"), "{from:?} {to:?} {said} {out}");
                assert_eq!(said.replace(own, ""), "u q; c 1; r 1=1; a x; u p", "{from:?} {to:?} {said} {out}");
            }
        }
    }
    assert_chat_repair(
        vec![calls(&["a"]), system("s"), tool("a", "1")],
        "interposed_message",
        vec![calls(&["a"]), tool("a", "1"), system("s")],
    );
    assert_claude_repair(
        vec![
            assistant_blocks(vec![tool_use("a")]),
            system("s"),
            user_blocks(vec![result("a", "1")]),
            assistant_blocks(vec![text("x")]),
        ],
        "interposed_message",
        vec![
            assistant_blocks(vec![tool_use("a")]),
            user_blocks(vec![result("a", "1")]),
            system("s"),
            assistant_blocks(vec![text("x")]),
        ],
    );
}

#[test]
fn wf_11_of_two_results_the_first_real_one_is_kept() {
    let want = "u q; c 1; r 1=1; u p";
    assert_converts("u q; c a; r a=1; r a=2; u p", want, &["duplicate_result"]);
    assert_converts("u q; c a; r a=1 a=2; u p", want, &["duplicate_result"]);
    assert_converts("u q; c a; r a=1; a x; u p; r a=2; u n", "u q; c 1; r 1=1; a x; u p; u n", &["duplicate_result"]);
    assert_chat_repair(
        vec![calls(&["a"]), tool("a", "1"), tool("a", "2")],
        "duplicate_result",
        vec![calls(&["a"]), tool("a", "1")],
    );
    assert_chat_repair(
        vec![calls(&["a"]), interrupted_tool("a"), user("p"), tool("a", "late")],
        "duplicate_result",
        vec![calls(&["a"]), tool("a", "late"), user("p")],
    );
    assert_chat_repair(
        vec![calls(&["a"]), tool("a", "1"), interrupted_tool("a")],
        "duplicate_result",
        vec![calls(&["a"]), tool("a", "1")],
    );
    assert_claude_repair(
        vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1"), result("a", "2")])],
        "duplicate_result",
        vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1")])],
    );
    assert_claude_repair(
        vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![interrupted_result("a"), result("a", "real")])],
        "duplicate_result",
        vec![assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "real")])],
    );
    assert_responses_repair(
        vec![call_item("a"), output_item("a", "1"), output_item("a", "2")],
        "duplicate_result",
        vec![call_item("a"), output_item("a", "1")],
    );
    let q = || user_parts(vec![text_part("q")]);
    assert_gemini_repair(
        vec![
            q(),
            model_parts(vec![function_call("f")]),
            user_parts(vec![function_response("f", "1"), function_response("f", "1")]),
        ],
        "duplicate_result",
        vec![q(), model_parts(vec![function_call("f")]), user_parts(vec![function_response("f", "1")])],
    );
}

#[test]
fn wf_12_the_second_of_two_calls_with_one_id_is_renamed_with_its_result() {
    let (given, want) = ("u q; c a a; r a=1 a=2; u p", "u q; c 1; c 2; r 1=1; r 2=2; u p");
    assert_converts(given, want, &["duplicate_call_id"]);
    for from in ALL {
        let stored = Stored::of(from, &write(from, "u q; c a a b; r a=1 a=2 b=3; u p"));
        for to in [CHAT, MISTRAL, CLAUDE, Dialect::OpenAiResponses] {
            let out = stored.body(to);
            let mut ids = ids_of(to, &out);
            assert_eq!(ids.len(), 3, "{out}");
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), 3, "{from:?} {to:?} {out}");
        }
    }
    assert_chat_repair(
        vec![calls(&["a", "a"]), tool("a", "1"), tool("a", "2")],
        "duplicate_call_id",
        vec![calls(&["a", "a_2"]), tool("a", "1"), tool("a_2", "2")],
    );
    assert_chat_repair(
        vec![calls(&["a", "a_2", "a"]), tool("a_2", "0"), tool("a", "1")],
        "duplicate_call_id",
        vec![calls(&["a", "a_2", "a_3"]), tool("a_2", "0"), tool("a", "1"), interrupted_tool("a_3")],
    );
    assert_claude_repair(
        vec![
            assistant_blocks(vec![tool_use("a")]),
            assistant_blocks(vec![tool_use("a")]),
            user_blocks(vec![result("a", "1"), result("a", "2")]),
        ],
        "duplicate_call_id",
        vec![
            assistant_blocks(vec![tool_use("a")]),
            assistant_blocks(vec![tool_use("a_2")]),
            user_blocks(vec![result("a", "1"), result("a_2", "2")]),
        ],
    );
    assert_responses_repair(
        vec![call_item("a"), call_item("a"), output_item("a", "1"), output_item("a", "2")],
        "duplicate_call_id",
        vec![call_item("a"), call_item("a_2"), output_item("a", "1"), output_item("a_2", "2")],
    );
}

#[test]
fn wf_13_an_id_reused_in_a_later_turn_is_a_warning() {
    let given = "u q; c a; r a=1; a x; u p; c a; r a=2; a y; u n";
    assert_converts(given, "u q; c 1; r 1=1; a x; u p; c 2; r 2=2; a y; u n", &[]);
    for dialect in ALL {
        let body = write(dialect, given);
        assert_accepted(body.clone(), dialect);
        // Gemini's ids are optional, and its order counts.
        let found = codes(&validate(body.to_string().as_bytes(), dialect), Severity::Warning);
        assert!(dialect == Dialect::Gemini || found.contains(&"duplicate_call_id"), "{dialect:?} {found:?}");
    }
    let body = chat(vec![calls(&["a"]), tool("a", "1"), user("p"), calls(&["a"]), tool("a", "2")]);
    assert_accepted(body.clone(), CHAT);
    assert_eq!(codes(&validate(body.to_string().as_bytes(), CHAT), Severity::Warning), ["duplicate_call_id"]);
    assert_accepted(
        claude(vec![
            assistant_blocks(vec![tool_use("a")]),
            user_blocks(vec![result("a", "1")]),
            assistant_blocks(vec![tool_use("a")]),
            user_blocks(vec![result("a", "2")]),
        ]),
        CLAUDE,
    );
    // A second, open call that reuses an answered id is closed in its own turn.
    assert_chat_repair(
        vec![calls(&["a"]), tool("a", "1"), calls(&["a"]), user("p")],
        "dangling_call",
        vec![calls(&["a"]), tool("a", "1"), calls(&["a"]), interrupted_tool("a"), user("p")],
    );
    assert_accepted(
        json!({ "input": [call_item("a"), output_item("a", "1"), user("p"), call_item("a"), output_item("a", "2")] }),
        RESPONSES,
    );
}

#[test]
fn wf_14_text_after_a_call_in_one_turn_keeps_the_pair() {
    for from in [CLAUDE, Dialect::Gemini, Dialect::OpenAiResponses] {
        for given in ["u q; c a + a so; r a=1; u p", "u q; c a + a so + c b; r a=1 b=2; u p"] {
            let body = write(from, given);
            assert_accepted(body.clone(), from);
            for to in ALL {
                for out in [Stored::of(from, &body).body(to), converted(&body, from, to).0] {
                    let said = read(to, &out);
                    let pairs = if given.contains("b=2") { "c 1; c 2; r 1=1; r 2=2" } else { "c 1; r 1=1" };
                    assert_eq!(sorted(&said), sorted(&format!("u q; a so; {pairs}; u p")), "{from:?} {to:?} {out}");
                }
            }
        }
    }
    assert_accepted(
        claude(vec![user("q"), assistant_blocks(vec![tool_use("a"), text("so")]), user_blocks(vec![result("a", "1")])]),
        CLAUDE,
    );
    assert_chat_repair(
        vec![calls(&["a"]), assistant("so"), tool("a", "1")],
        "interposed_message",
        vec![calls(&["a"]), tool("a", "1"), assistant("so")],
    );
    let body = json!({ "model": "m", "input": [user("q"), call_item("a"), assistant("so"), call_item("b"), output_item("a", "1"), output_item("b", "2")] });
    assert_accepted(body.clone(), RESPONSES);
    // Recorded: DeepSeek alone refuses it.
    let mut body = body;
    body["model"] = json!("deepseek-chat");
    assert_eq!(errors(&body, RESPONSES), ["interposed_message"]);
    assert_eq!(
        repaired_body(&body, RESPONSES),
        json!([
            user("q"),
            call_item("a"),
            output_item("a", "1"),
            assistant("so"),
            call_item("b"),
            output_item("b", "2")
        ])
    );
}

#[test]
fn wf_15_text_and_call_form_one_assistant_message() {
    let given = "u q; a so + c a; r a=1; a x; u p";
    assert_converts(given, "u q; a so; c 1; r 1=1; a x; u p", &[]);
    for from in ALL {
        let body = write(from, given);
        assert_accepted(body.clone(), from);
        for to in ALL {
            let out = Stored::of(from, &body).body(to);
            let spoke = |item: &&Value| {
                item["role"] == "assistant" || item["role"] == "model" || item["type"] == "model_output"
            };
            // Items of Responses are one answer as long as they follow one another.
            let has_steps = matches!(to, Dialect::OpenAiResponses | Dialect::GeminiInteractions);
            let expected = if has_steps { "function_call" } else { "" };
            let list = out[list_name(to)].as_array().unwrap();
            assert_eq!(list.iter().filter(spoke).count(), 2, "{from:?} {to:?} {out}");
            assert_eq!(list[2]["type"].as_str().filter(|_| !expected.is_empty()).unwrap_or(""), expected, "{out}");
        }
    }
    assert_accepted(
        chat(vec![json!({ "role": "assistant", "content": "so", "tool_calls": [call("a")] }), tool("a", "1")]),
        CHAT,
    );
}

#[test]
fn wf_16_an_empty_text_beside_a_call_is_not_sent_as_a_block() {
    for from in ALL {
        let body = with_empty(from, "u q; a EMPTY + c a; r a=1; a x; u p");
        let (out, _) = repaired(&body, from);
        assert_eq!(read(from, &out), "u q; c 1; r 1=1; a x; u p", "{from:?} {out}");
        for to in ALL {
            for out in [Stored::of(from, &body).body(to), converted(&body, from, to).0] {
                assert_eq!(read(to, &out), "u q; c 1; r 1=1; a x; u p", "{from:?} {to:?} {out}");
                assert!(to != CLAUDE || !out.to_string().contains(r#""text":"""#), "{from:?} {out}");
            }
        }
    }
    assert_claude_repair(
        vec![user("q"), assistant_blocks(vec![text(""), tool_use("a")]), user_blocks(vec![result("a", "1")])],
        "empty_content",
        vec![user("q"), assistant_blocks(vec![tool_use("a")]), user_blocks(vec![result("a", "1")])],
    );
    assert_accepted(
        chat(vec![json!({ "role": "assistant", "content": "", "tool_calls": [call("a")] }), tool("a", "")]),
        CHAT,
    );
    assert_accepted(chat(vec![json!({ "role": "assistant", "tool_calls": [call("a")] }), tool("a", "1")]), CHAT);
}

#[test]
fn wf_17_an_empty_assistant_message_is_omitted() {
    for from in ALL {
        let body = with_empty(from, "u q; a EMPTY; u p; a x; u n");
        let (out, _) = repaired(&body, from);
        assert_eq!(read(from, &out), "u q; u p; a x; u n", "{from:?} {out}");
        if from == Dialect::Bedrock {
            // Its messages alternate, so these two of the user are one, with two texts.
            assert_eq!(out["messages"][0]["content"].as_array().unwrap().len(), 2);
            continue;
        }
        for to in ALL.into_iter().filter(|to| *to != from) {
            for out in [Stored::of(from, &body).body(to), converted(&body, from, to).0] {
                assert_eq!(read(to, &out), "u q; u p; a x; u n", "{from:?} {to:?} {out}");
                let speaks = |item: &&Value| {
                    matches!(item["role"].as_str(), Some("assistant" | "model")) || item["type"] == "model_output"
                };
                let count = out[list_name(to)].as_array().unwrap().iter().filter(speaks).count();
                assert_eq!(count, 1, "{from:?} {to:?} {out}");
            }
        }
    }
    for nothing in [
        json!({ "role": "assistant" }),
        json!({ "role": "assistant", "content": null }),
        json!({ "role": "assistant", "content": [] }),
    ] {
        assert_chat_repair(vec![user("q"), nothing, user("p")], "empty_content", vec![user("q"), user("p")]);
    }
    for nothing in
        [json!({ "role": "assistant" }), assistant(""), assistant_blocks(vec![]), assistant_blocks(vec![text("")])]
    {
        assert_claude_repair(vec![user("q"), nothing, user("p")], "empty_content", vec![user("q"), user("p")]);
    }
    // The final one may be empty.
    assert_accepted(claude(vec![user("q"), assistant("")]), CLAUDE);
}

#[test]
fn wf_18_without_calls_no_list_of_calls_is_sent() {
    let omit = Policy {
        call: PolicyLayer { dangling_calls: Some(DanglingCalls::Omit), ..always().call },
        ..Policy::default()
    };
    for from in ALL {
        for given in ["u q; a x; u p", "u q; a so + c a; u p"] {
            for to in [CHAT, MISTRAL] {
                let (text, _) = Stored::of(from, &write(from, given)).bytes_by(&request(to), &[], &omit);
                assert!(!text.contains("tool_calls"), "{from:?} {to:?} {text}");
            }
        }
    }
    for none in [json!([]), Value::Null] {
        assert_chat_repair(
            vec![user("q"), json!({ "role": "assistant", "content": "x", "tool_calls": none })],
            "empty_tool_calls",
            vec![user("q"), assistant("x")],
        );
    }
    assert_accepted(
        chat(vec![user("q"), json!({ "role": "assistant", "content": "x", "tool_calls": [] }), user("p")]),
        MISTRAL,
    );
}

/// The ids of a body's calls.
fn ids_of(dialect: Dialect, body: &Value) -> Vec<String> {
    let mut ids = Vec::new();
    let mut add = |id: &Value| ids.push(id.as_str().unwrap().to_owned());
    for item in body[list_name(dialect)].as_array().unwrap() {
        item["tool_calls"].as_array().into_iter().flatten().for_each(|call| add(&call["id"]));
        if item["type"] == "function_call" {
            add(&item["call_id"]);
        }
        let blocks = item["content"].as_array().into_iter().flatten();
        blocks.filter(|block| block["type"] == "tool_use").for_each(|block| add(&block["id"]));
    }
    ids
}
