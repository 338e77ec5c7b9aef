//! Items of OpenAI Responses beside words and functions: calls of OpenAI's own tools, approvals, references.

use super::*;
use rethread::provider::{Dangling, RepairOptions};
use serde_json::{Value, json};

fn shell(id: &str) -> Value {
    json!({ "type": "shell_call", "call_id": id, "action": { "commands": ["ls"] }, "environment": { "type": "local" } })
}
fn shell_out(id: &str) -> Value {
    json!({ "type": "shell_call_output", "call_id": id, "output": [] })
}
fn with(mut item: Value, name: &str, value: Value) -> Value {
    item[name] = value;
    item
}
fn input(items: Vec<Value>) -> Value {
    json!({ "model": "m", "input": items })
}

#[test]
fn r40_a_call_of_openais_own_tools_needs_an_output() {
    let failed = json!([{ "stdout": "", "stderr": TEXT, "outcome": { "type": "exit", "exit_code": 1 } }]);
    let patch =
        json!({ "type": "apply_patch_call", "call_id": "a", "operation": { "type": "delete_file", "path": "p" } });
    let local = json!({ "type": "local_shell_call", "call_id": "a", "action": { "type": "exec", "command": ["ls"] } });
    let search = json!({ "type": "tool_search_call", "call_id": "a", "execution": "client", "arguments": {} });
    let found = json!({ "type": "tool_search_output", "call_id": "a", "execution": "client", "tools": [] });
    let screen = json!({ "type": "computer_call_output", "call_id": "a", "output": { "type": "computer_screenshot", "image_url": "https://x/y" } });
    let computer = json!({ "type": "computer_call", "call_id": "a", "actions": [{ "type": "screenshot" }] });
    for (call, made) in [
        (shell("a"), with(shell_out("a"), "output", failed.clone())),
        (with(shell("a"), "environment", Value::Null), with(shell_out("a"), "output", failed)),
        (patch, json!({ "type": "apply_patch_call_output", "call_id": "a", "status": "failed", "output": TEXT })),
        (local, json!({ "type": "local_shell_call_output", "call_id": "a", "output": TEXT })),
        (search.clone(), found),
    ] {
        let given = vec![user("q"), reasoning_item(), call.clone(), user("p")];
        assert_responses_repair(
            given.clone(),
            "dangling_call",
            vec![user("q"), reasoning_item(), call.clone(), made.clone(), user("p")],
        );
        assert_accepted(input(vec![user("q"), call.clone(), made.clone(), user("p")]), RESPONSES);
        // Of these it is not known that nobody may speak in between.
        assert_accepted(input(vec![user("q"), call.clone(), user("p"), made]), RESPONSES);
        // What the server holds may have the output.
        assert_accepted(with(input(vec![call]), "conversation", json!("conv_1")), RESPONSES);
        let omit = RepairOptions { dangling: Dangling::Omit, dangling_text: None };
        assert_eq!(repaired_body_with(&input(given), RESPONSES, &omit), json!([user("q"), user("p")]));
    }
    // Nobody can make up a screenshot.
    assert_responses_repair(
        vec![user("q"), reasoning_item(), computer.clone(), user("p")],
        "dangling_call",
        vec![user("q"), user("p")],
    );
    assert_accepted(input(vec![user("q"), reasoning_item(), computer, screen, user("p")]), RESPONSES);
    // What the server ran is its own business. Recorded: a function's output answers a search.
    for place in ["container_auto", "container_reference"] {
        assert_accepted(input(vec![with(shell("a"), "environment", json!({ "type": place })), user("p")]), RESPONSES);
    }
    for (name, value) in [("execution", json!("server")), ("call_id", Value::Null)] {
        assert_accepted(input(vec![with(search.clone(), name, value), user("p")]), RESPONSES);
    }
    assert_accepted(input(vec![user("q"), search, output_item("a", "1"), user("p")]), RESPONSES);
}

#[test]
fn r40_an_output_of_openais_own_tools_needs_a_call() {
    let screen = json!({ "type": "computer_call_output", "call_id": "a", "output": { "type": "computer_screenshot", "image_url": "https://x/y" } });
    for orphan in [
        shell_out("a"),
        screen,
        json!({ "type": "apply_patch_call_output", "call_id": "a", "status": "completed" }),
        json!({ "type": "local_shell_call_output", "id": "a", "output": "x" }),
    ] {
        assert_responses_repair(
            vec![user("q"), orphan.clone(), user("p")],
            "orphan_result",
            vec![user("q"), user("p")],
        );
        assert_accepted(json!({ "previous_response_id": "resp_1", "input": [orphan] }), RESPONSES);
    }
}

#[test]
fn r40_the_output_of_a_programs_call_names_the_program() {
    // SDK: `caller`.
    let caller = json!({ "type": "program", "caller_id": "p" });
    let call = with(call_item("a"), "caller", caller.clone());
    assert_responses_repair(
        vec![call.clone()],
        "dangling_call",
        vec![call, with(output_item("a", TEXT), "caller", caller)],
    );
}

#[test]
fn r41_an_id_that_is_too_long_is_shortened_in_the_call_and_its_output() {
    let long = "x".repeat(65);
    let out = repaired_body(&input(vec![shell(&long), shell_out(&long)]), RESPONSES);
    assert_eq!(out[0]["call_id"], out[1]["call_id"]);
}

#[test]
fn r40_an_approval_request_needs_a_response() {
    let asked =
        json!({ "type": "mcp_approval_request", "id": "mcpr_1", "name": "n", "server_label": "s", "arguments": "{}" });
    let answer =
        |approve: bool| json!({ "type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": approve });
    for end in [vec![], vec![user("p")]] {
        let mut given = vec![user("q"), reasoning_item(), asked.clone()];
        let mut want = [given.clone(), vec![answer(false)]].concat();
        given.extend(end.clone());
        want.extend(end);
        assert_responses_repair(given, "dangling_call", want);
    }
    assert_accepted(input(vec![user("q"), asked.clone(), answer(true), user("p")]), RESPONSES);
    assert_accepted(with(input(vec![answer(true)]), "previous_response_id", json!("resp_1")), RESPONSES);
    // An answer to what is not here is not known to be refused.
    assert_accepted(input(vec![user("q"), answer(true), answer(true)]), RESPONSES);
    assert_accepted(with(input(vec![asked]), "conversation", json!("conv_1")), RESPONSES);
    let found = json!({ "type": "tool_search_output", "call_id": "a", "execution": "client", "tools": [] });
    let output = json!({ "type": "function_call_output", "call_id": "a", "output": "r" });
    assert_accepted(input(vec![user("q"), call_item("a"), found, output, user("p")]), RESPONSES);
    // Found by a property: a call's id is no request's, though they read the same.
    let output = json!({ "type": "function_call_output", "call_id": "mcpr_1", "output": "r" });
    assert_accepted(input(vec![user("q"), call_item("mcpr_1"), answer(true), output.clone()]), RESPONSES);
    assert_accepted(input(vec![user("q"), call_item("mcpr_1"), output, answer(true)]), RESPONSES);
}

#[test]
fn r40_each_role_has_its_own_part_types() {
    let message = |role: &str, parts: Value| json!({ "role": role, "content": parts });
    let output = |parts: Value| json!({ "type": "function_call_output", "call_id": "a", "output": parts });
    let image = json!({ "type": "input_image", "image_url": "https://x/y" });
    let file = json!({ "type": "input_file", "file_id": "file-1" });
    let chat_image = json!({ "type": "image_url", "image_url": { "url": "https://x/y" } });
    let chat_file = json!({ "type": "file", "file": { "file_id": "file-1" } });
    let text = |kind: &str| json!({ "type": kind, "text": "x" });
    let new = json!({ "type": "input_new", "x": 1 });
    assert_accepted(input(vec![message("user", json!([text("input_text"), image, file, new]))]), RESPONSES);
    assert_accepted(
        input(vec![message("assistant", json!([text("output_text"), { "type": "refusal", "refusal": "no" }, new]))]),
        RESPONSES,
    );
    assert_accepted(input(vec![call_item("a"), output(json!([text("input_text"), image, file, new]))]), RESPONSES);
    let code = "unsupported_part";
    for given in [json!([text("text"), chat_image, chat_file]), json!([text("output_text"), image, chat_file])] {
        let want = json!([text("input_text"), image, file]);
        assert_responses_repair(
            vec![call_item("a"), output(given.clone())],
            code,
            vec![call_item("a"), output(want.clone())],
        );
        assert_responses_repair(vec![message("user", given)], code, vec![message("user", want)]);
    }
    let detailed = json!({ "type": "image_url", "image_url": { "url": "https://x/y", "detail": "low" } });
    let plain = json!({ "type": "image_url", "image_url": "https://x/y" });
    let low = with(image.clone(), "detail", json!("low"));
    assert_responses_repair(
        vec![message("user", json!([detailed, plain]))],
        code,
        vec![message("user", json!([low, image]))],
    );
    // A user shows what nobody else may show.
    for (role, kind) in [("system", "input_text"), ("developer", "input_text"), ("assistant", "output_text")] {
        assert_responses_repair(
            vec![message(role, json!([image, text(kind), chat_file])), user("p")],
            code,
            vec![message(role, json!([text(kind)])), message("user", json!([image, file])), user("p")],
        );
    }
    assert_responses_repair(
        vec![
            reasoning_item(),
            with(message("assistant", json!([text("output_text"), image])), "id", json!("msg_1")),
            call_item("a"),
            output_item("a", "1"),
        ],
        code,
        vec![
            reasoning_item(),
            with(message("assistant", json!([text("output_text")])), "id", json!("msg_1")),
            message("user", json!([image])),
            call_item("a"),
            output_item("a", "1"),
        ],
    );
    assert_responses_repair(
        vec![call_item("a"), message("assistant", json!([image])), output_item("a", "1")],
        code,
        vec![call_item("a"), output_item("a", "1"), message("assistant", json!([])), message("user", json!([image]))],
    );
}

#[test]
fn r40_a_text_part_needs_a_text() {
    let message = |role: &str, parts: Value| json!({ "role": role, "content": parts });
    let part = |text: Value| json!({ "type": "input_text", "text": text });
    for absent in [json!({ "type": "input_text" }), part(json!(null)), json!({ "type": "text" }), json!({})] {
        assert_responses_repair(
            vec![message("user", json!([absent, part(json!("x"))]))],
            "empty_content",
            vec![message("user", json!([part(json!("x"))]))],
        );
    }
    for (given, text) in [(json!(7), "7"), (json!({ "n": 1 }), "{\"n\":1}"), (json!([]), "[]")] {
        assert_responses_repair(
            vec![message("user", json!([part(given)]))],
            "malformed",
            vec![message("user", json!([part(json!(text))]))],
        );
    }
}

#[test]
fn r40_an_item_reference_needs_no_type() {
    for reference in [
        json!({ "id": "fc_1" }),
        json!({ "id": "fc_1", "type": null }),
        json!({ "type": "item_reference", "id": "fc_1" }),
    ] {
        assert_accepted(input(vec![user("q"), reference, output_item("a", "1"), user("p")]), RESPONSES);
    }
    assert_responses_repair(vec![user("q"), json!({ "id": "fc_1", "x": 1 })], "unknown_shape", vec![user("q")]);
    // What it refers to may be the call that an id named first.
    assert_accepted(
        input(vec![json!({ "id": "fc_1" }), output_item("a", "1"), user("p"), call_item("a"), output_item("a", "2")]),
        RESPONSES,
    );
}

#[test]
fn r40_reasoning_needs_a_summary() {
    let bare = json!({ "type": "reasoning", "encrypted_content": "e" });
    let whole = with(bare.clone(), "summary", json!([]));
    assert_responses_repair(
        vec![user("q"), bare, assistant("x")],
        "malformed",
        vec![user("q"), whole.clone(), assistant("x")],
    );
    let null = json!({ "type": "reasoning", "summary": null, "encrypted_content": "e" });
    let there = json!({ "type": "reasoning", "summary": [], "encrypted_content": "e" });
    assert_responses_repair(vec![user("q"), null, assistant("x")], "malformed", vec![user("q"), there, assistant("x")]);
    assert_accepted(input(vec![user("q"), whole, assistant("x")]), RESPONSES);
}

#[test]
fn r41_an_input_without_content_is_a_warning() {
    for silent in [json!(""), json!([])] {
        let report =
            rethread::provider::validate(json!({ "model": "m", "input": silent }).to_string().as_bytes(), RESPONSES);
        assert_eq!(codes(&report, rethread::finding::Severity::Warning), ["malformed"]);
    }
    assert_accepted(json!({ "model": "m", "input": "" }), RESPONSES);
}

#[test]
fn r40_item_ids_have_their_types_prefix_and_a_maximum_length() {
    let message = |id: &str| with(with(assistant("x"), "type", json!("message")), "id", json!(id));
    let call = |id: &str| with(call_item("a"), "id", json!(id));
    let free = |id: &str| json!({ "type": "custom_tool_call", "call_id": "a", "name": "f", "input": "x", "id": id });
    let long = "x".repeat(62);
    for (given, bare) in [
        (call("toolu_1"), call_item("a")),
        (call("ctc_1"), call_item("a")),
        (call(&format!("fc_{long}")), call_item("a")),
    ] {
        assert_responses_repair(
            vec![given.clone(), output_item("a", "1")],
            "invalid_call_id",
            vec![bare, output_item("a", "1")],
        );
        // Recorded: others have ids of their own.
        for model in ["grok-4", "deepseek-v4"] {
            assert_accepted(json!({ "model": model, "input": [given, output_item("a", "1")] }), RESPONSES);
        }
    }
    assert_eq!(errors(&input(vec![free("fc_1"), output_item("a", "1")]), RESPONSES), ["invalid_call_id"]);
    assert_accepted(input(vec![free("ctc_1"), output_item("a", "1")]), RESPONSES);
    for wrong in ["chatcmpl-1", &format!("msg_{long}")] {
        let bare = with(assistant("x"), "type", json!("message"));
        assert_responses_repair(vec![user("q"), message(wrong)], "invalid_call_id", vec![user("q"), bare.clone()]);
        // Its reasoning goes with the id.
        assert_responses_repair(
            vec![user("q"), reasoning_item(), message(wrong)],
            "orphan_reasoning",
            vec![user("q"), bare],
        );
    }
    assert_accepted(input(vec![user("q"), reasoning_item(), message("msg_1")]), RESPONSES);
}
