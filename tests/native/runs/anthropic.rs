//! What only Anthropic's answers do to a run.

use crate::runs::{CLAUDE, roles};
use crate::scripted_host::*;
use rethread::json::Json;
use rethread::message::Role;
use rethread::run::RunStatus;
use rethread::store::MemoryStore;
use serde_json::{Value, json};

fn stream(blocks: &[Value], reason: &str) -> Answer {
    let mut text = String::new();
    let mut event = |value: Value| text += &format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap());
    event(
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
    );
    for (index, block) in blocks.iter().enumerate() {
        event(json!({"type": "content_block_start", "index": index, "content_block": block}));
        event(json!({"type": "content_block_stop", "index": index}));
    }
    event(
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 2}}),
    );
    event(json!({"type": "message_stop"}));
    Answer::Bytes(text.into_bytes())
}

#[test]
fn r43_case49_a_turn_paused_by_server_tools_continues_with_every_block_unchanged() {
    let first = [
        json!({"type": "thinking", "thinking": "hm", "signature": "EqQB+/=="}),
        json!({"type": "text", "text": "I search. "}),
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}),
    ];
    let second = [
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "E=="}]}),
        json!({"type": "text", "text": "Found.", "citations": [{"type": "web_search_result_location", "url": "u", "cited_text": "c", "encrypted_index": "Eo8="}]}),
    ];
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut asked = 0;
    let thinking = |id: &str| {
        let mut setup = setup(id, CLAUDE, true);
        setup.provider.params = Json::parse(r#"{"max_tokens":9,"thinking":{"type":"adaptive"}}"#).unwrap();
        setup
    };
    let outcome = host.ask(thinking("run"), "Search", |_| {
        asked += 1;
        if asked == 1 { stream(&first, "pause_turn") } else { stream(&second, "end_turn") }
    });
    assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 2), "{:?}", outcome.error);
    assert_eq!(host.asked[1]["messages"].as_array().unwrap().last().unwrap()["content"], json!(first));
    assert_eq!(roles(&host), [Role::User, Role::Assistant, Role::Assistant]);
    // And in every later turn, the server's result behind its call.
    let outcome = host.ask(thinking("next"), "And?", |_| stream(&second[1..], "end_turn"));
    assert_eq!(outcome.status, RunStatus::Finished);
    let sent = host.asked.last().unwrap()["messages"].as_array().unwrap();
    let blocks: Vec<&Value> = sent
        .iter()
        .filter(|message| message["role"] == "assistant")
        .flat_map(|message| message["content"].as_array().unwrap())
        .collect();
    assert_eq!(blocks, first.iter().chain(&second).collect::<Vec<_>>());
}

#[test]
fn r43_a_call_from_a_code_container_is_answered_in_that_container() {
    let container = json!({"id": "container_1", "expires_at": "2026-06-30T23:59:10Z"});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}, "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}});
    let code =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "look()"}});
    let whole = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [code, call], "container": container,
        "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 2}});
    let streamed = {
        let Answer::Bytes(bytes) = stream(&[code.clone(), call.clone()], "tool_use") else { unreachable!() };
        let text = String::from_utf8(bytes).unwrap();
        text.replace(r#""stop_reason":"tool_use""#, &format!(r#""container":{container},"stop_reason":"tool_use""#))
    };
    for as_stream in [false, true] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut bodies = Vec::new();
        let outcome = host.ask(setup("run", CLAUDE, as_stream), "Go", |body| {
            bodies.push(body.clone());
            match (bodies.len(), as_stream) {
                (1, false) => Answer::Status(200, vec![], whole.to_string()),
                (1, true) => Answer::Bytes(streamed.clone().into_bytes()),
                _ => Answer::Say(text("Done.")),
            }
        });
        assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 2), "{:?}", outcome.error);
        assert!(bodies[0].get("container").is_none());
        assert_eq!(bodies[1]["container"], "container_1");
        assert_eq!(bodies[1]["messages"][1]["content"], json!([code, call]));
        // A new turn begins without: the container may be gone by then.
        host.ask(setup("next", CLAUDE, as_stream), "And?", |_| Answer::Say(text("Well.")));
        assert!(host.asked.last().unwrap().get("container").is_none());
    }
}

#[test]
fn r60_a_turn_that_is_paused_forever_is_stopped() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut asked = 0;
    let block = json!({"type": "text", "text": "I wait."});
    let outcome = host.ask(setup("run", CLAUDE, true), "Go", |_| {
        asked += 1;
        stream(std::slice::from_ref(&block), "pause_turn")
    });
    assert_eq!(outcome.status, RunStatus::Failed);
    assert!(asked > 1 && asked < 100, "{asked}");
}

#[test]
fn r43_an_answer_paused_after_its_compaction_continues() {
    let summary = json!({"type": "compaction", "content": "So far.", "encrypted_content": null});
    for (params, turns) in [
        (
            json!({"max_tokens": 9, "context_management": {"edits": [{"type": "compact_20260112", "pause_after_compaction": true}]}}),
            2,
        ),
        // Asked for alone, the summary is the answer.
        (json!({"max_tokens": 9, "compaction": {"type": "summarize"}}), 1),
    ] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut setup = setup("run", CLAUDE, true);
        setup.provider.params = Json::parse(&params.to_string()).unwrap();
        let mut asked = 0;
        let outcome = host.ask(setup, "Go", |_| {
            asked += 1;
            if asked == 1 { stream(std::slice::from_ref(&summary), "compaction") } else { Answer::Say(text("Done.")) }
        });
        assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, turns), "{:?}", outcome.error);
        assert!(outcome.report.iter().all(|finding| finding.code.as_str() != "interrupted"), "{:?}", outcome.report);
        if turns == 2 {
            assert_eq!(host.asked[1]["messages"].as_array().unwrap().last().unwrap()["content"], json!([summary]));
        }
    }
}
