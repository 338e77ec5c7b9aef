//! R70, R73: parameters that the model rejects, and the application's own binding of thinking.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::bound_reasoning::{Chat, causes, setup_of};
use super::scripted_host::*;
use rethread::finding::{PrefixChange, Severity};
use rethread::json::Json;
use rethread::provider::validate;
use rethread::replay::UnboundReasoning;
use rethread::store::MemoryStore;
use serde_json::{Value, json};

#[test]
fn r70_r73_a_parameter_that_the_model_rejects_is_sent_repaired_and_reported_once() {
    for thinking in [json!({ "type": "enabled", "budget_tokens": 1024 }), json!({ "type": "disabled" })] {
        for drops in [false, true] {
            let store = MemoryStore::default();
            let mut chat = Chat::new(&store, CLAUDE);
            for turn in 0..3 {
                let before = chat.made();
                let mut setup = setup_of(&format!("run{turn}"), CLAUDE);
                let choice = json!({ "type": "any", "disable_parallel_tool_use": true });
                let params = json!({ "model": "claude-opus-5-5", "max_tokens": 2048, "thinking": thinking, "tool_choice": choice });
                setup.provider.params = Json::parse(&params.to_string()).unwrap();
                setup.policy.call.unbound_reasoning = drops.then_some(UnboundReasoning::DropBlock);
                let report = chat.ask(setup);
                let found: Vec<_> = report.iter().filter_map(|found| found.path.as_deref()).collect();
                let expected: &[&str] = if turn == 0 { &["/tool_choice/type", "/thinking/type"] } else { &[] };
                assert_eq!(found, expected, "{report:?}");
                let sent = chat.sent.borrow();
                assert_eq!(sent[sent.len() - 2], before, "all reasoning goes back");
            }
            assert_eq!(chat.host.sent.len(), 6, "nothing is sent again");
            for body in &chat.host.sent {
                let errors = validate(body, CLAUDE).into_iter().filter(|found| found.severity == Severity::Error);
                assert_eq!(errors.map(|found| found.message.clone()).collect::<Vec<_>>(), [""; 0]);
                let body: Value = serde_json::from_slice(body).unwrap();
                let expected = if drops {
                    json!({ "type": "adaptive", "block_binding": { "prefix_mismatch_behavior": "drop_block" } })
                } else {
                    json!({ "type": "adaptive" })
                };
                assert_eq!(body["thinking"], expected);
                assert_eq!(body["tool_choice"], json!({ "type": "auto", "disable_parallel_tool_use": true }));
            }
        }
    }
}

#[test]
fn r70_drop_block_leaves_the_applications_own_binding_and_is_as_omit_then() {
    let store = MemoryStore::default();
    let mut chat = Chat::new(&store, CLAUDE);
    for (turn, instructions) in ["Be brief.", "Be long."].into_iter().enumerate() {
        let mut setup = setup_of(&format!("run{turn}"), CLAUDE);
        let own = json!({ "type": "adaptive", "block_binding": { "prefix_mismatch_behavior": "error" } });
        let params = json!({ "model": "claude-opus-5-5", "max_tokens": 9, "thinking": own });
        setup.provider.params = Json::parse(&params.to_string()).unwrap();
        setup.policy.call.unbound_reasoning = Some(UnboundReasoning::DropBlock);
        setup.instructions = Some(instructions.into());
        let report = chat.tell(setup);
        let expected: &[PrefixChange] = if turn == 0 { &[] } else { &[PrefixChange::Instructions] };
        assert_eq!(causes(&report), expected);
        let body: Value = serde_json::from_slice(chat.host.sent.last().unwrap()).unwrap();
        assert_eq!(body["thinking"], own);
        assert_eq!(chat.last_sent(), [""; 0]);
        assert!(!chat.host.log.borrow().head.has_dropped);
    }
}
