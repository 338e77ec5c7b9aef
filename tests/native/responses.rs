//! OpenAI Responses through a history: what came in it goes out as it was, what came in others is said in its items.

mod properties;
mod remedies;

use rethread::finding::{Report, Severity};
use rethread::history::{
    History, Incoming, JoinBase, MessageFormat, MessageWriter, NO_ALTERNATIVES, NewItem, Origin, join, join_new,
};
use rethread::id::{CountingIds, Seed};
use rethread::json::{Json, JsonRef, ObjectWriter};
use rethread::message::{Dialect, PartBody, Role};
use rethread::provider::{
    ProviderRequest, RepairOptions, Settings, ToolDefinition, decode_answer, decode_body, read_response, repair,
    validate,
};
use rethread::render::{RenderRequest, Renderer};
use rethread::replay::{DanglingCalls, OnStale, Policy, PolicyLayer};
use rethread::tool::Window;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const OWN: Dialect = Dialect::OpenAiResponses;
const CHAT: Dialect = Dialect::OpenAiChat;
const CLAUDE: Dialect = Dialect::Anthropic;

/// A history and what gives its ids.
struct Session {
    history: History,
    ids: CountingIds,
}

impl Session {
    fn new() -> Self {
        Self { history: History::new(Seed(3)), ids: CountingIds::default() }
    }

    fn of(dialect: Dialect, body: &Value) -> Self {
        Self::new().append(dialect, body)
    }

    fn append(self, dialect: Dialect, body: &Value) -> Self {
        let items = decode_body(dialect, JsonRef::parse(&body.to_string()).unwrap()).unwrap();
        self.join(items, None)
    }

    fn join(mut self, items: Vec<Incoming>, run_id: Option<&str>) -> Self {
        let origin = Origin { at: 1_000, run_id: run_id.map(str::to_owned), ..Origin::default() };
        for entry in join(JoinBase::history(&self.history), items, &origin, &self.ids).entries {
            self.history.apply(entry);
        }
        self
    }

    /// Of one dialect, with results of the tool "old" too old, all others fresh.
    fn render(&self, dialect: Dialect, instructions: Option<&str>, layer: PolicyLayer) -> (Value, Report, u32) {
        let provider = provider(dialect, r#"{"model":"m","max_tokens":9}"#);
        let policy = Policy { call: layer, ..Policy::default() };
        let request = RenderRequest { provider: &provider, instructions, tools: &[], policy: &policy };
        let mut renderer = Renderer::default();
        renderer.render(&self.history, None, &request, 2_000_000).unwrap();
        let rendered = renderer.render(&self.history, None, &request, 2_000_000).unwrap();
        let errors: Vec<_> =
            validate(&rendered.body, dialect).into_iter().filter(|found| found.severity == Severity::Error).collect();
        assert!(errors.is_empty(), "{errors:?} {}", String::from_utf8_lossy(&rendered.body));
        (serde_json::from_slice(&rendered.body).unwrap(), rendered.report, rendered.stable_prefix)
    }

    fn input(&self) -> Value {
        self.render(OWN, None, always()).0["input"].clone()
    }
}

fn provider(dialect: Dialect, params: &str) -> ProviderRequest {
    ProviderRequest {
        dialect,
        url: "https://model.example/v1".into(),
        params: Json::parse(params).unwrap(),
        stream: false,
        headers: Vec::new(),
        settings: Settings::default(),
    }
}

fn always() -> PolicyLayer {
    PolicyLayer { freshness: Some(Window::Always), ..PolicyLayer::default() }
}

/// All but the results of the tool "old".
fn but_old(on_stale: OnStale) -> PolicyLayer {
    let mut tool_freshness = BTreeMap::default();
    tool_freshness.insert("old".to_owned(), Window::Millis(0));
    PolicyLayer { tool_freshness, on_stale: Some(on_stale), ..always() }
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn reasoning(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": format!("e-{id}")})
}

fn call(id: &str, name: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": "{\"n\":1}", "status": "completed"})
}

fn output(id: &str, text: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": text})
}

fn said(id: &str, text: &str) -> Value {
    json!({"id": id, "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]})
}

fn codes(report: &Report) -> Vec<&str> {
    report.iter().map(|found| found.code.as_str()).collect()
}

/// Every kind of item that the endpoint takes.
fn everything() -> Value {
    json!([
        {"type": "message", "role": "developer", "content": "Be brief."},
        {"role": "system", "content": [{"type": "input_text", "text": "And kind."}]},
        {"content": [{"type": "input_text", "text": "Look:"}, {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AA=="},
            {"type": "input_image", "file_id": "file-1"}, {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
            {"type": "input_file", "file_url": "https://x/y.pdf"}, {"type": "input_new", "x": 1}], "role": "user"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}, {"text": "b", "type": "summary_text"}], "encrypted_content": "e1", "status": null},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "reasoning", "summary": [], "encrypted_content": "e2"},
        {"type": "reasoning", "id": "rs_3", "summary": [], "content": [{"type": "reasoning_text", "text": "thought"}], "encrypted_content": null},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary", "content": [
            {"type": "output_text", "text": "one", "annotations": [{"type": "url_citation", "url": "u"}]}, {"type": "refusal", "refusal": "two"}, {"type": "later", "y": 2}]},
        {"name": "f", "type": "function_call", "namespace": "n", "call_id": "c1", "arguments": "{\"a\": 1.50}"},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "sql", "input": "SELECT \"x\"\n"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_image", "image_url": "https://x/y.png"}], "status": "completed"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "1 row"},
        {"type": "computer_call", "id": "cu_1", "call_id": "c3", "action": {"type": "click", "x": 1, "y": 2}, "pending_safety_checks": [], "status": "completed"},
        {"type": "computer_call_output", "call_id": "c3", "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA=="}},
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c4", "action": {"type": "exec", "command": ["ls"]}, "status": "completed"},
        {"type": "local_shell_call_output", "call_id": "c4", "output": "a b"},
        {"type": "shell_call", "call_id": "c5", "action": {"commands": ["ls"]}, "environment": {"type": "container_reference", "container_id": "x"}},
        {"type": "shell_call_output", "call_id": "c5", "output": [{"stdout": "", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
        {"type": "apply_patch_call", "call_id": "c6", "operation": {"type": "delete_file", "path": "a"}, "status": "completed"},
        {"type": "apply_patch_call_output", "call_id": "c6", "status": "failed"},
        {"type": "tool_search_call", "call_id": null, "execution": "server", "arguments": {"queries": ["q"]}},
        {"type": "tool_search_output", "call_id": null, "execution": "server", "tools": []},
        {"type": "tool_search_call", "call_id": "ts", "execution": "client", "arguments": {}},
        {"type": "function_call_output", "call_id": "ts", "output": "recorded"},
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "x", "server_label": "s", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true},
        {"type": "image_generation_call", "id": "ig_1", "result": "AA=="},
        {"type": "additional_tools", "role": "developer", "tools": []},
        {"role": "assistant", "content": "short"},
        {"role": "assistant", "content": ""},
        {"type": "message", "role": "assistant", "content": []},
        user(""),
        {"type": "compaction", "encrypted_content": "c"},
        user("And?"),
    ])
}

#[test]
fn r43_r45_every_item_type_returns_in_its_position() {
    let given = everything();
    assert_eq!(Session::of(OWN, &json!({ "input": given })).input().to_string(), given.to_string());
    let with_reference = json!([user("Hi"), {"type": "item_reference", "id": "msg_9"}, user("Go on")]);
    assert_eq!(Session::of(OWN, &with_reference).input(), with_reference);
    // The call may be what is referred to; its type need not be said.
    for reference in
        [json!({"type": "item_reference", "id": "fc_1"}), json!({"id": "fc_1"}), json!({"type": null, "id": "fc_1"})]
    {
        let body = json!([user("Hi"), reference, output("c", "1"), call("a", "f"), output("a", "1"), user("Go on")]);
        assert_eq!(Session::of(OWN, &body).input().to_string(), body.to_string());
    }
}

#[test]
fn r02_consecutive_items_of_the_model_are_one_message() {
    let body = json!([
        user("Hi"),
        reasoning("rs_1"),
        said("msg_1", "I look."),
        call("a", "f"),
        call("b", "f"),
        output("b", "2"),
        output("a", "1"),
        said("msg_2", "Done.")
    ]);
    let session = Session::of(OWN, &body);
    let roles: Vec<Role> = session.history.messages().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Assistant]);
    let kinds: Vec<&str> = session.history.messages()[1]
        .parts
        .iter()
        .map(|part| match part.body {
            PartBody::Reasoning(_) => "reasoning",
            PartBody::Text(_) => "text",
            PartBody::ToolCall { .. } => "call",
            _ => "other",
        })
        .collect();
    assert_eq!(kinds, ["reasoning", "text", "call", "call"]);
    let calls: Vec<(u32, u32)> = session.history.invocations().iter().map(|call| (call.round, call.place)).collect();
    assert_eq!(calls, [(0, 0), (0, 1)]);
    // Outputs stand in the order of their calls.
    let input = session.input();
    assert_eq!((&input[5], &input[6]), (&output("a", "1"), &output("b", "2")));
}

#[test]
fn r20_an_answers_items_are_one_message_and_are_sent_unchanged() {
    let items = json!([reasoning("rs_1"), {"type": "shell_call", "call_id": "s", "action": {}, "environment": {"type": "container_auto"}},
        {"type": "shell_call_output", "call_id": "s", "output": []}, said("msg_1", "Look:"), call("a", "f"),
        {"type": "custom_tool_call", "call_id": "b", "name": "sql", "input": "SELECT 1"}]);
    let response = json!({"id": "resp_1", "status": "completed", "output": items}).to_string();
    let wire = read_response(OWN, response.as_bytes()).wire.unwrap();
    assert_eq!(wire.as_str(), items.to_string());
    let answer = decode_answer(OWN, wire.view()).unwrap();
    assert_eq!(answer.parts.len(), 6);
    let session = Session::of(OWN, &json!([user("Hi")])).join(vec![Incoming::Message(answer)], Some("run-1"));
    let session = session
        .append(OWN, &json!([output("a", "1"), {"type": "custom_tool_call_output", "call_id": "b", "output": "2"}]));
    let input = session.input();
    assert_eq!(Value::from(input.as_array().unwrap()[1..7].to_vec()), items);
    assert_eq!(input[8]["type"], "custom_tool_call_output");
}

#[test]
fn case44_reasoning_is_dropped_with_the_item_that_followed_it() {
    let body = json!([
        user("Hi"),
        reasoning("rs_1"),
        call("a", "old"),
        output("a", "1"),
        reasoning("rs_2"),
        said("msg_1", "Done."),
        user("And?")
    ]);
    let (out, report, _) = Session::of(OWN, &body).render(OWN, None, but_old(OnStale::Omit));
    assert_eq!(out["input"], json!([user("Hi"), reasoning("rs_2"), said("msg_1", "Done."), user("And?")]));
    assert!(!codes(&report).is_empty());
    // In one answer with other things: each has its own.
    let body = json!([
        user("Hi"),
        reasoning("rs_1"),
        call("a", "old"),
        reasoning("rs_2"),
        said("msg_1", "Done."),
        output("a", "1"),
        user("And?")
    ]);
    let (out, report, _) = Session::of(OWN, &body).render(OWN, None, but_old(OnStale::Omit));
    assert_eq!(out["input"], json!([user("Hi"), reasoning("rs_2"), said("msg_1", "Done."), user("And?")]));
    assert!(codes(&report).contains(&"orphan_reasoning"), "{report:?}");
}

#[test]
fn case43_reasoning_shared_by_parallel_calls_is_kept_with_the_remaining_one() {
    let body = json!([
        user("Hi"),
        reasoning("rs_1"),
        call("a", "old"),
        call("b", "f"),
        output("a", "1"),
        output("b", "2"),
        user("And?")
    ]);
    let (out, ..) = Session::of(OWN, &body).render(OWN, None, but_old(OnStale::Omit));
    assert_eq!(out["input"], json!([user("Hi"), reasoning("rs_1"), call("b", "f"), output("b", "2"), user("And?")]));
}

#[test]
fn r43_reasoning_at_the_end_or_before_the_user_is_left_out() {
    let body = json!([user("Hi"), said("msg_1", "Yes."), reasoning("rs_1"), user("And?"), reasoning("rs_2")]);
    assert_eq!(Session::of(OWN, &body).input(), json!([user("Hi"), said("msg_1", "Yes."), user("And?")]));
}

#[test]
fn case45_an_item_without_its_reasoning_loses_its_item_id_but_not_its_call_id() {
    let mut short = said("msg_1", "I look.");
    short.as_object_mut().unwrap().shift_remove("id");
    let body = json!([user("Hi"), reasoning("rs_1"), short, call("a", "f"), output("a", "1")]);
    let (out, report, _) = Session::of(OWN, &body).render(OWN, None, always());
    let mut bare = call("a", "f");
    bare.as_object_mut().unwrap().shift_remove("id");
    assert_eq!(out["input"], json!([user("Hi"), short, bare, output("a", "1")]));
    assert!(codes(&report).contains(&"orphan_reasoning"));
}

#[test]
fn case46_a_call_id_is_never_sent_as_an_items_id() {
    let mut wrong = call("a", "f");
    wrong["id"] = json!("call_a");
    let out = Session::of(OWN, &json!([user("Hi"), wrong, output("a", "1")])).input();
    assert!(out[1].get("id").is_none() && out[1]["call_id"] == "a");
}

#[test]
fn r43_reasoning_without_id_or_encrypted_content_is_not_sent() {
    let bare = json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]});
    let items =
        json!([bare, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}]);
    let answer = decode_answer(OWN, JsonRef::parse(&items.to_string()).unwrap()).unwrap();
    let session = Session::of(OWN, &json!([user("Hi")])).join(vec![Incoming::Message(answer)], Some("run-1"));
    assert_eq!(session.input(), json!([user("Hi"), items[1]]));
    // It is still there to be read.
    assert!(
        matches!(&session.history.messages()[1].parts[0].body, PartBody::Reasoning(text) if &*text.decode() == "hm")
    );
}

#[test]
fn case36_reasoning_and_server_items_are_dropped_when_the_provider_changes() {
    let session = Session::of(OWN, &json!({ "input": everything() }));
    for dialect in [CHAT, CLAUDE] {
        let (out, ..) = session.render(dialect, None, always());
        let text = out.to_string();
        for gone in ["encrypted_content", "rs_1", "ws_1", "fc_", "mcpr_1", "compaction", "additional_tools"] {
            assert!(!text.contains(gone), "{gone} in {text}");
        }
        for kept in [
            "Be brief.",
            "And kind.",
            "Look:",
            "one",
            "two",
            "SELECT",
            "1 row",
            "short",
            "And?",
            "computer",
            "local_shell",
        ] {
            assert!(text.contains(kept), "no {kept} in {text}");
        }
    }
}

#[test]
fn r45_the_input_of_a_custom_tool_is_free_text() {
    let custom = json!({"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "SELECT '\u{e9}'\n"});
    let body = json!([user("Hi"), custom, {"type": "custom_tool_call_output", "call_id": "a", "output": "1"}]);
    let session = Session::of(OWN, &body);
    assert_eq!(session.input(), body);
    // A tool is given the text as a JSON value; other dialects get it as one.
    let arguments = session.history.invocations()[0].arguments.text().into_owned();
    assert_eq!(serde_json::from_str::<String>(&arguments).unwrap(), "SELECT '\u{e9}'\n");
    let (chat, ..) = session.render(CHAT, None, always());
    assert_eq!(chat["messages"][1]["tool_calls"][0]["function"]["arguments"], json!(arguments));
    let (claude, ..) = session.render(CLAUDE, None, always());
    assert_eq!(claude["messages"][1]["content"][0]["input"], json!({"value": "SELECT '\u{e9}'\n"}));
    // One that has no output gets one of its own kind.
    let (out, ..) = Session::of(OWN, &json!([user("Hi"), custom])).render(OWN, None, always());
    assert_eq!(out["input"][2]["type"], "custom_tool_call_output");
}

#[test]
fn r04_calls_of_openais_own_tools_are_paired_with_their_outputs() {
    let shell = json!({"type": "local_shell_call", "id": "lsh_1", "call_id": "a", "action": {"type": "exec", "command": ["ls"]}, "status": "completed"});
    let shown = json!({"type": "local_shell_call_output", "call_id": "a", "output": "x"});
    let computer = json!({"type": "computer_call", "call_id": "b", "action": {"type": "screenshot"}});
    let screen = json!({"type": "computer_call_output", "call_id": "b", "output": {"type": "computer_screenshot", "image_url": "https://x/y.png"}});
    let body = json!([user("Hi"), shell, shown, computer, screen, user("And?")]);
    let session = Session::of(OWN, &body);
    let calls: Vec<&str> = session.history.invocations().iter().map(|call| call.name.as_str()).collect();
    assert_eq!(calls, ["local_shell", "computer"]);
    assert_eq!(session.input(), body);
    // A note can stand for a text, and not for a screenshot.
    let mut layer = PolicyLayer { on_stale: Some(OnStale::Placeholder), ..PolicyLayer::default() };
    layer.freshness = Some(Window::Millis(0));
    let (out, report, _) = session.render(OWN, None, layer);
    let input = out["input"].as_array().unwrap();
    assert_eq!((input.len(), &input[1], &input[2]["type"]), (4, &shell, &shown["type"]));
    assert!(input[2]["output"].is_string() && codes(&report).contains(&"unsupported_part"));
    // What is answered later, by items that know how, is kept as it came.
    let apart = Session::of(OWN, &json!([user("Hi"), shell])).append(OWN, &json!([shown]));
    assert_eq!((apart.history.invocations().len(), apart.input()), (0, json!([user("Hi"), shell, shown])));
    // The screenshot is a picture elsewhere.
    let (claude, ..) = Session::of(OWN, &json!([user("Hi"), computer, screen])).render(CLAUDE, None, always());
    assert_eq!(claude["messages"][2]["content"][0]["content"][0]["type"], "image", "{claude}");
}

#[test]
fn r04_open_calls_of_openais_own_tools_are_closed() {
    let shell = json!({"type": "shell_call", "id": "sh_1", "call_id": "a", "action": {"commands": ["ls"]}, "environment": null, "status": "completed"});
    let shown = json!({"type": "shell_call_output", "call_id": "a", "output": []});
    let computer = json!({"type": "computer_call", "call_id": "a", "actions": [{"type": "screenshot"}]});
    let asked =
        json!({"type": "mcp_approval_request", "id": "mcpr_1", "name": "n", "server_label": "s", "arguments": "{}"});
    let approved = json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true});
    let ended = |item: &Value, run: Option<&str>| {
        let answer =
            decode_answer(OWN, JsonRef::parse(&json!([reasoning("rs_1"), item]).to_string()).unwrap()).unwrap();
        Session::of(OWN, &json!([user("Hi")])).join(vec![Incoming::Message(answer)], run)
    };
    for run in [None, Some("run-1")] {
        let types = |item: &Value| {
            let session = ended(item, run).append(OWN, &json!([user("And?")]));
            let input = session.input();
            input.as_array().unwrap()[1..]
                .iter()
                .map(|item| item["type"].as_str().unwrap_or("").to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(types(&shell), ["reasoning", "shell_call", "shell_call_output", ""]);
        assert_eq!(types(&asked), ["reasoning", "mcp_approval_request", "mcp_approval_response", ""]);
        assert_eq!(types(&computer), [""]);
        // What is answered later goes out as it came.
        for (item, answer) in [(&shell, &shown), (&asked, &approved)] {
            let session = ended(item, run).append(OWN, &json!([answer, user("And?")]));
            assert_eq!(session.input(), json!([user("Hi"), reasoning("rs_1"), item, answer, user("And?")]));
        }
    }
}

#[test]
fn r45_a_computer_call_can_have_several_actions() {
    let screen = json!({"type": "computer_call_output", "call_id": "b", "output": {"type": "computer_screenshot", "image_url": "https://x/y.png"}});
    let actions = json!([{"type": "click", "x": 1, "y": 2}, {"type": "screenshot"}]);
    for call in [
        json!({"type": "computer_call", "id": "cu_1", "call_id": "b", "status": "completed", "pending_safety_checks": [], "actions": actions}),
        json!({"type": "computer_call", "id": "cu_1", "call_id": "b", "action": null, "actions": actions}),
    ] {
        let body = json!([user("Hi"), call, screen, user("And?")]);
        let session = Session::of(OWN, &body);
        assert_eq!(session.input().to_string(), body.to_string());
        assert_eq!(session.history.invocations()[0].arguments.text(), actions.to_string());
        let (chat, ..) = session.render(CHAT, None, always());
        assert_eq!(chat["messages"][1]["tool_calls"][0]["function"]["arguments"], json!(actions.to_string()));
    }
    // One that asks nothing gets no member that it did not have.
    let body = json!([user("Hi"), {"type": "computer_call", "call_id": "b", "action": null}, screen]);
    assert_eq!(Session::of(OWN, &body).input(), body);
}

#[test]
fn r40_a_body_can_be_text_or_instructions_alone() {
    let session = Session::of(OWN, &json!({"instructions": "Be brief.", "input": "Hi"}));
    let (out, ..) = session.render(OWN, None, always());
    assert_eq!((&out["instructions"], &out["input"]), (&json!("Be brief."), &json!([user("Hi")])));
    let (out, ..) = session.render(OWN, Some("Speak French."), always());
    assert_eq!(out["instructions"], "Speak French.\n\nBe brief.");
    let (out, ..) = session.render(CHAT, None, always());
    assert_eq!(out["messages"][0], json!({"role": "system", "content": "Be brief."}));
    // A system message of a history stays where it is.
    let session = Session::of(
        CHAT,
        &json!([{"role": "system", "content": "A"}, user("Hi"), {"role": "developer", "content": "B"}]),
    );
    let (out, ..) = session.render(OWN, Some("C"), always());
    assert_eq!(out["instructions"], "C");
    assert_eq!(
        out["input"],
        json!([{"role": "system", "content": "A"}, user("Hi"), {"role": "developer", "content": "B"}])
    );
    assert!(decode_body(OWN, JsonRef::parse(r#"{"input":7}"#).unwrap()).is_err());
}

#[test]
fn r42_messages_of_another_dialect_are_encoded_as_items() {
    let body = json!([
        user("Hi"),
        {"role": "assistant", "content": [{"type": "text", "text": "First "}, {"type": "text", "text": "this."}, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"n": 1}},
            {"type": "text", "text": "Then that."}, {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "see"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "bad", "is_error": true},
            {"type": "text", "text": "Go on"}, {"type": "document", "title": "a.pdf", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}]},
    ]);
    let (out, ..) = Session::of(CLAUDE, &body).render(OWN, None, always());
    let want = json!([
        user("Hi"),
        {"role": "assistant", "content": "First this.\n\nThen that."},
        {"type": "function_call", "call_id": "toolu_1", "name": "f", "arguments": "{\"n\":1}"},
        {"type": "function_call", "call_id": "toolu_2", "name": "g", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "toolu_1", "output": [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,AA=="}]},
        {"type": "function_call_output", "call_id": "toolu_2", "output": "Error: bad"},
        {"role": "user", "content": [{"type": "input_text", "text": "Go on"}, {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}]},
    ]);
    assert_eq!(out["input"], want);
}

#[test]
fn case50_a_refusal_stays_a_refusal() {
    let body = json!([user("Hi"), {"role": "assistant", "content": null, "refusal": "No."}, user("Please")]);
    let (out, ..) = Session::of(CHAT, &body).render(OWN, None, always());
    assert_eq!(out["input"][1], json!({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}));
}

#[test]
fn case22_a_long_id_is_shortened_in_call_and_result() {
    let long = format!("call_{}", "x".repeat(78));
    let body = json!([user("Hi"), {"role": "assistant", "tool_calls": [{"id": long, "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": long, "content": "1"}]);
    let (out, ..) = Session::of(CHAT, &body).render(OWN, None, always());
    let id = out["input"][1]["call_id"].as_str().unwrap();
    assert!(id.len() <= 64 && id != long);
    assert_eq!((&out["input"][2]["call_id"], &out["input"][1]["arguments"]), (&json!(id), &json!("{}")));
}

#[test]
fn case04_a_call_without_an_output_is_closed_or_omitted() {
    let session = Session::of(OWN, &json!([user("Hi"), reasoning("rs_1"), call("a", "f"), user("Well?")]));
    let input = session.input();
    assert_eq!((&input[3]["type"], &input[3]["call_id"]), (&json!("function_call_output"), &json!("a")));
    let omit = PolicyLayer { dangling_calls: Some(DanglingCalls::Omit), ..always() };
    assert_eq!(session.render(OWN, None, omit).0["input"], json!([user("Hi"), user("Well?")]));
}

fn head(params: &str, tools: &[ToolDefinition]) -> (Value, Report) {
    let provider = provider(OWN, params);
    provider.check().unwrap();
    let session = Session::of(OWN, &json!([user("Hi")]));
    let request = RenderRequest { provider: &provider, instructions: None, tools, policy: &Policy::default() };
    let rendered = Renderer::default().render(&session.history, None, &request, 1).unwrap();
    (serde_json::from_slice(&rendered.body).unwrap(), rendered.report)
}

#[test]
fn r55_tools_and_their_choice_are_flat() {
    let tool = ToolDefinition {
        name: "f".into(),
        description: Some("d".into()),
        parameters: None,
        strict: false,
        is_async: false,
    };
    for choice in [
        r#"{"type":"function","function":{"name":"f"}}"#,
        r#"{"type":"tool","name":"f"}"#,
        r#"{"type":"function","name":"f"}"#,
    ] {
        let (body, _) = head(
            &format!(r#"{{"tools":[{{"type":"web_search"}}],"tool_choice":{choice}}}"#),
            std::slice::from_ref(&tool),
        );
        assert_eq!(body["tool_choice"], json!({"type": "function", "name": "f"}));
        let own = json!({"type": "function", "name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}, "strict": false});
        assert_eq!(body["tools"], json!([{"type": "web_search"}, own]));
    }
    for (choice, word) in [
        (r#""any""#, json!("required")),
        (r#"{"type":"auto"}"#, json!("auto")),
        (r#"{"type":"allowed_tools","tools":[]}"#, json!({"type": "allowed_tools", "tools": []})),
    ] {
        assert_eq!(head(&format!(r#"{{"tool_choice":{choice}}}"#), std::slice::from_ref(&tool)).0["tool_choice"], word);
    }
}

#[test]
fn r55_parameters_of_other_endpoints_are_removed_and_reported() {
    let (body, report) = head(
        r#"{"model":"m","max_tokens":5,"stop":["x"],"n":1,"stream_options":{"include_usage":true},"max_output_tokens":7,"include":["reasoning.encrypted_content"],"store":false}"#,
        &[],
    );
    assert_eq!(
        body,
        json!({"model": "m", "max_output_tokens": 7, "include": ["reasoning.encrypted_content"], "store": false, "input": [user("Hi")]})
    );
    assert_eq!(codes(&report), ["unsupported_key"; 4]);
    assert_eq!(
        head(r#"{"stream_options":{"include_obfuscation":false}}"#, &[]).0["stream_options"],
        json!({"include_obfuscation": false})
    );
}

#[test]
fn r22_params_that_refer_to_server_side_history_are_rejected() {
    for (member, code) in [
        ("input", "config_invalid"),
        ("instructions", "config_invalid"),
        ("previous_response_id", "state_owner_conflict"),
        ("conversation", "state_owner_conflict"),
    ] {
        let error = provider(OWN, &format!(r#"{{"{member}":"x"}}"#)).check().unwrap_err();
        assert_eq!(error.code.as_str(), code, "{member}");
    }
}

#[test]
fn case13_an_id_reused_after_its_output_belongs_to_another_response() {
    let body =
        json!({"input": [user("Hi"), call("a", "f"), output("a", "1"), call("a", "f"), output("a", "2")]}).to_string();
    let found = validate(body.as_bytes(), OWN);
    assert!(found.iter().all(|found| found.severity != Severity::Error), "{found:?}");
    let (out, _) = repair(body.as_bytes(), OWN, &RepairOptions::default()).unwrap();
    assert_eq!(out, body.as_bytes());
    let both =
        json!({"input": [user("Hi"), call("a", "f"), call("a", "f"), output("a", "1"), output("a", "2")]}).to_string();
    assert!(validate(both.as_bytes(), OWN).iter().any(|found| found.code.as_str() == "duplicate_call_id"));
}

#[test]
fn r40_an_item_id_in_another_servers_form_is_not_sent() {
    let own = "75873264-3611-4961-a7d5-2aaeb9ba4102";
    let session = Session::of(OWN, &json!([user("Hi"), said(own, "Yes."), user("And?")]));
    let policy = Policy { call: always(), ..Policy::default() };
    let mut renderer = Renderer::default();
    let mut render = |model: &str| {
        let provider = provider(OWN, &json!({ "model": model }).to_string());
        let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
        renderer.render(&session.history, None, &request, 0).unwrap();
        let rendered = renderer.render(&session.history, None, &request, 0).unwrap();
        let body: Value = serde_json::from_slice(&rendered.body).unwrap();
        (body["input"][1]["id"].clone(), rendered.stable_prefix)
    };
    assert_eq!(render("deepseek-v4"), (json!(own), 3));
    assert_eq!(render("gpt-5"), (Value::Null, 1));
    assert_eq!(render("deepseek-v4"), (json!(own), 3));
}

#[test]
fn r02_an_output_beside_references_answers_the_stored_call() {
    let reference = json!({"type": "item_reference", "id": "msg_1"});
    let session =
        Session::of(OWN, &json!([user("Hi"), call("a", "f")])).append(OWN, &json!([reference, output("a", "1")]));
    assert_eq!(session.input(), json!([user("Hi"), call("a", "f"), output("a", "1"), reference]));
}

/// The messages of a history as an application reads them.
fn shown(history: &History) -> Value {
    let write = |message| {
        let writer =
            MessageWriter { history, session: "s", format: MessageFormat::Stored, alternatives: &NO_ALTERNATIVES };
        let json = ObjectWriter::build(|out| writer.write(out, message, None));
        serde_json::from_str(json.as_str()).unwrap()
    };
    Value::Array(history.messages().iter().map(write).collect())
}

/// A message of the model with a phase, and the call that it comments.
fn with_phases() -> Value {
    let mut comment = said("msg_1", "I look.");
    comment["phase"] = json!("commentary");
    let mut answer = said("msg_2", "Sunny.");
    answer["phase"] = json!("final_answer");
    answer["content"].as_array_mut().unwrap().push(json!({"type": "refusal", "refusal": "No more."}));
    let mut newer = said("msg_3", "Hm.");
    newer["phase"] = json!("afterthought");
    json!([user("Weather?"), comment, call("c", "look"), output("c", "sun"), answer, newer])
}

#[test]
fn r73_the_phase_of_a_text_is_shown_and_goes_back() {
    let session = Session::of(OWN, &with_phases());
    let messages = shown(&session.history);
    assert_eq!(messages[1]["parts"][0], json!({"type": "text", "text": "I look.", "phase": "commentary"}));
    let texts = &messages[2]["parts"];
    assert_eq!(texts[0], json!({"type": "text", "text": "Sunny.", "phase": "final_answer"}));
    assert_eq!(texts[1], json!({"type": "refusal", "text": "No more.", "phase": "final_answer"}));
    // One that is not known stays where it is.
    assert_eq!(texts[2], json!({"type": "text", "text": "Hm."}));
    let (body, _, _) = session.render(OWN, None, always());
    assert_eq!(body["input"], with_phases());
}

#[test]
fn r73_phases_of_appended_messages_are_sent() {
    let parts = json!([
        {"type": "text", "text": "I ", "phase": "commentary"}, {"type": "text", "text": "look.", "phase": "commentary"},
        {"type": "tool", "callId": "c", "name": "look", "arguments": {}, "result": "sun"},
        {"type": "text", "text": "And", "phase": "commentary"}, {"type": "text", "text": "Sunny.", "phase": "final_answer"},
        {"type": "refusal", "text": "No more.", "phase": "final_answer"}, {"type": "text", "text": "Bye."}]);
    let messages = json!([{"role": "user", "parts": [{"type": "text", "text": "Weather?"}]}, {"role": "assistant", "parts": parts}]);
    let mut session = Session::new();
    let items = NewItem::read_all(JsonRef::parse(&messages.to_string()).unwrap()).unwrap();
    let joined = join_new(&session.history, items, &Origin::default(), &session.ids).unwrap();
    joined.entries.into_iter().for_each(|entry| session.history.apply(entry));
    let (body, _, _) = session.render(OWN, None, always());
    let sent: Vec<_> = body["input"].as_array().unwrap().iter().filter(|item| item["role"] == "assistant").collect();
    let refusal = json!([{"type": "refusal", "refusal": "No more."}]);
    assert_eq!(
        json!(sent),
        json!([
            {"role": "assistant", "phase": "commentary", "content": "I look."},
            {"role": "assistant", "phase": "commentary", "content": "And"},
            {"role": "assistant", "phase": "final_answer", "content": "Sunny."},
            {"role": "assistant", "phase": "final_answer", "content": refusal},
            {"role": "assistant", "content": "Bye."},
        ])
    );
    assert!(validate(body.to_string().as_bytes(), OWN).is_empty());
    // Elsewhere they have no place.
    let (body, _, _) = session.render(CHAT, None, always());
    assert!(!body.to_string().contains("phase"), "{body}");
}

/// An output that names its tool and no call.
fn named_output(name: &str, text: &str) -> Value {
    json!({"type": "function_call_output", "call_id": null, "name": name, "output": text})
}

#[test]
fn r73_an_output_that_names_its_tool_alone_answers_its_newest_open_call() {
    let (first, second) = (call("a", "look"), call("b", "look"));
    let session = Session::of(OWN, &json!([user("Hi"), first, call("c", "other"), second]));
    let session = session.append(OWN, &json!([output("c", "0"), output("b", "2"), named_output("look", "1")]));
    let results: Vec<_> = session
        .history
        .invocations()
        .iter()
        .map(|call| (call.call_id.as_str(), call.result.as_ref().map(|result| result.content.as_str())))
        .collect();
    assert_eq!(results, [("a", Some("\"1\"")), ("c", Some("\"0\"")), ("b", Some("\"2\""))]);
    let (body, _, _) = session.render(OWN, None, always());
    let sent = body["input"].as_array().unwrap();
    let answer = sent.iter().find(|item| item["output"] == "1").unwrap();
    assert_eq!((&answer["call_id"], &answer["name"]), (&json!("a"), &json!("look")));
    // In another dialect it is a result like any other.
    let (body, _, _) = session.render(CHAT, None, always());
    let results = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    assert_eq!(results.map(|result| &result["tool_call_id"]).collect::<Vec<_>>(), ["a", "c", "b"]);
}

#[test]
fn r73_an_output_that_names_its_tool_alone_answers_a_call_before_it_in_the_same_body() {
    let given = json!([user("Hi"), call("a", "look"), named_output("look", "1"), said("msg_1", "Ok.")]);
    let session = Session::of(OWN, &given);
    let result = session.history.invocations()[0].result.as_ref().map(|result| result.content.as_str());
    assert_eq!(result, Some("\"1\""));
    let is_error = |list: Value| {
        let body = json!({ "input": list }).to_string();
        validate(body.as_bytes(), OWN).iter().any(|found| found.severity == Severity::Error)
    };
    assert!(!is_error(given));
    // It is no answer to a call that comes after it.
    assert!(is_error(json!([user("Hi"), named_output("look", "1"), call("a", "look"), said("msg_1", "Ok.")])));
}

#[test]
fn r73_an_output_that_names_its_tool_alone_and_answers_no_call_goes_back_in_its_place() {
    let feed = json!({"type": "function_call_output", "call_id": null, "name": "news", "namespace": "feeds", "output": "None."});
    let given = json!([user("Hi"), call("a", "look"), output("a", "1"), said("msg_1", "Ok."), user("News?"), feed]);
    let session = Session::of(OWN, &given);
    let (body, _, _) = session.render(OWN, None, always());
    assert_eq!(body["input"], given);
    let (body, _, _) = session.render(CHAT, None, always());
    assert!(!body.to_string().contains("None."), "{body}");
}

#[test]
fn r41_an_invented_output_does_not_pass_an_output_that_names_its_tool_alone() {
    let request = json!({"type": "mcp_approval_request", "id": "a", "name": "n"});
    let response = json!({"type": "mcp_approval_response", "approval_request_id": "a", "approve": false});
    let feed = named_output("feed", "None.");
    let given = json!({"input": [user("Both."), request, feed, request, response]});
    let (repaired, _) = repair(given.to_string().as_bytes(), OWN, &RepairOptions::default()).unwrap();
    let repaired: Value = serde_json::from_slice(&repaired).unwrap();
    assert_eq!(repaired["input"], json!([user("Both."), request, feed, response, request, response]));
    assert!(validate(repaired.to_string().as_bytes(), OWN).iter().all(|found| found.severity != Severity::Error));
}

#[test]
fn r04_r05_an_opaque_output_at_the_beginning_is_not_counted_to_a_later_call_of_the_same_id() {
    let list = json!([
        {"type": "tool_search_call", "call_id": "c", "action": {"type": "x"}},
        output("c", "one"),
        {"type": "function_call_output", "call_id": "", "output": "one"},
        call("c", "f"),
    ]);
    for dialect in Dialect::ALL {
        Session::new().append(OWN, &list).render(dialect, None, always());
    }
}

#[test]
fn r41_r75_a_late_output_in_its_received_form_is_checked_like_any_other() {
    let mut open = call("c1", "f");
    open["async"] = json!(true);
    let late =
        json!({"type": "function_call_output", "call_id": "c1", "output": [{"type": "output_text", "text": "seen"}]});
    let session = Session::of(OWN, &json!({"input": [user("q"), open, user("p")]}));
    let input = session.append(OWN, &json!({"input": [late]})).input();
    let outputs: Vec<_> = input.as_array().unwrap().iter().filter(|item| item["call_id"] == "c1").collect();
    assert_eq!(outputs.len(), 2, "{input}");
    assert_eq!(outputs[1]["output"], json!([{"type": "input_text", "text": "seen"}]));
}
