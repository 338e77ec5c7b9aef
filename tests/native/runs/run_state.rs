//! The rules of `state-ownership.md` about interrupted and repeated runs, by the number of their case or by "run state"
//! (its section 6).

use super::snapshots::{MODES, in_mode, resume, snapshot, texts, with_history};
use super::*;
use bytes::Bytes;
use rethread::json::Json;
use rethread::run::{EffectKind, EffectReply, Persistence, RunSnapshot};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

/// Drives a run of three rounds up to its model call number `calls`, which stays open.
fn until_call(host: &mut Host<'_>, calls: usize, mode: Persistence) {
    host.start(in_mode(mode), "Go").unwrap();
    let mut count = 0;
    host.drive(|body| {
        count += 1;
        if count == calls { Answer::Hang } else { three_tools(body) }
    });
    host.asked.clear();
    host.ran.clear();
}

const WHOLE: [&str; 6] = ["User:1", "Assistant:1", "User:1", "Assistant:3", "Assistant:1", "Assistant:1"];

#[test]
fn so_22_a_network_retry_stores_the_turn_once() {
    for mode in MODES {
        let store = MemoryStore::default();
        let mut host = with_history(&store, "h");
        let mut count = 0;
        let outcome = host.ask(in_mode(mode), "Go", |body| {
            count += 1;
            if count % 2 == 1 { Answer::Unreachable } else { three_tools(body) }
        });
        assert_eq!((outcome.status, outcome.model_calls, count), (RunStatus::Finished, 3, 6));
        assert_eq!(texts(&host), WHOLE);
    }
}

#[test]
fn so_25_a_request_that_failed_is_resumed_with_its_input_once() {
    for mode in MODES {
        let (store, other) = (MemoryStore::default(), MemoryStore::default());
        let mut host = with_history(&store, "h");
        let mut failing = in_mode(mode);
        failing.retry.attempts = 1;
        let outcome = host.ask(failing, "Go", |_| Answer::Unreachable);
        assert_eq!(outcome.status, RunStatus::Failed);
        let bytes = snapshot(&mut host).unwrap();
        for store in [&store, &other] {
            let mut next = Host::open(store, "s", "next");
            resume(&mut next, &bytes, in_mode(mode)).unwrap();
            assert_eq!(next.drive(three_tools).unwrap().status, RunStatus::Finished);
            let inputs = |body: &serde_json::Value| {
                body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user").count()
            };
            assert!(next.asked.iter().all(|body| inputs(body) == 2));
            assert_eq!(texts(&next), WHOLE);
        }
    }
}

#[test]
fn so_26_an_acknowledged_answer_is_not_requested_again_and_its_tools_run_once() {
    for mode in MODES {
        let (store, other) = (MemoryStore::default(), MemoryStore::default());
        let mut host = with_history(&store, "h");
        until_call(&mut host, 2, mode);
        let bytes = snapshot(&mut host).unwrap();
        for store in [&store, &other] {
            let mut next = Host::open(store, "s", "next");
            resume(&mut next, &bytes, in_mode(mode)).unwrap();
            next.drive(three_tools).unwrap();
            // The first round is not asked for, and its two tools do not run.
            assert_eq!((next.asked.len(), next.ran.len()), (2, 1));
            assert_eq!(texts(&next), WHOLE);
        }
    }
}

#[test]
fn so_run_state_a_turn_is_counted_when_the_model_is_called_and_a_resume_costs_none() {
    let store = MemoryStore::default();
    let mut host = with_history(&store, "h");
    until_call(&mut host, 3, Persistence::Run);
    for owner in 0..5 {
        let bytes = snapshot(&mut host).unwrap();
        host = Host::open(&store, "s", &format!("h{owner}"));
        let mut setup = in_mode(Persistence::Run);
        setup.max_turns = 3;
        resume(&mut host, &bytes, setup).unwrap();
        let stored = RunSnapshot::open(&bytes, "s").unwrap().read_run(SEED).unwrap();
        assert_eq!(stored.model_calls, 2, "an answer was counted twice, or a call without an answer");
    }
    // After five resumes the third of three turns is left.
    let outcome = host.drive(three_tools).unwrap();
    assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 3));
}

#[test]
fn so_run_state_a_started_tool_without_a_result_is_not_run_again_unless_its_tool_says_so() {
    for (on_interrupted, runs) in [(OnInterrupted::Report, 1), (OnInterrupted::Rerun, 3)] {
        let (store, other) = (MemoryStore::default(), MemoryStore::default());
        let mut host = with_history(&store, "h");
        host.start(in_mode(Persistence::Run), "Go").unwrap();
        host.write();
        let call = host.run.as_ref().unwrap().effects()[0].clone();
        let body = calls(&[("call_a", "look", "{}"), ("call_b", "find", "{}")]).body(CHAT);
        host.reply(&call.id, EffectReply::Response { status: 200, headers: Vec::new(), body }).unwrap();
        host.write();
        for effect in host.run.as_ref().unwrap().effects().into_iter().cloned().collect::<Vec<_>>() {
            assert!(matches!(effect.kind, EffectKind::RunTool { .. }));
            host.reply(&effect.id, EffectReply::Started).unwrap();
        }
        host.write();
        let bytes = snapshot(&mut host).unwrap();
        let mut next = Host::open(&other, "s", "next");
        let mut setup = in_mode(Persistence::Run);
        for settings in setup.tool_settings.values_mut() {
            settings.on_interrupted = on_interrupted;
        }
        resume(&mut next, &bytes, setup).unwrap();
        next.drive(three_tools).unwrap();
        assert_eq!(next.ran.len(), runs);
        let results = next.log.borrow().history.invocations().iter().filter(|call| call.result.is_some()).count();
        assert_eq!(results, 3, "a call stays without a result");
    }
}

#[test]
fn so_run_state_a_snapshot_is_not_changed_by_the_run_that_it_continues() {
    let (store, other) = (MemoryStore::default(), MemoryStore::default());
    let mut host = with_history(&store, "h");
    until_call(&mut host, 2, Persistence::Call);
    let bytes = snapshot(&mut host).unwrap();
    let copy = Bytes::copy_from_slice(&bytes);
    let mut next = Host::open(&other, "s", "next");
    resume(&mut next, &bytes, in_mode(Persistence::Call)).unwrap();
    next.drive(three_tools).unwrap();
    assert_eq!(bytes, copy);
    // The run that goes on elsewhere is not touched either.
    assert_eq!(snapshot(&mut host).unwrap(), copy);
    let content = Json::parse("1").unwrap();
    assert!(host.reply("e99", EffectReply::ToolResult { content, is_error: false }).is_err());
}

#[test]
fn so_run_state_unknown_versions_are_refused_and_nothing_is_stored() {
    let (store, other) = (MemoryStore::default(), MemoryStore::default());
    let mut host = with_history(&store, "h");
    until_call(&mut host, 2, Persistence::Run);
    let mut bytes = snapshot(&mut host).unwrap().to_vec();
    bytes[b"rethread run\n".len()] = 77;
    let mut next = Host::open(&other, "s", "next");
    let refused = resume(&mut next, &Bytes::from(bytes), in_mode(Persistence::Run)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::UnsupportedVersion);
    assert_eq!((next.log.borrow().revision, next.pending().len()), (0, 0));
}
