//! An answer that is picked up belongs to the agent that its request was made for (R31).

use super::*;
use rethread::run::Handoff;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

/// An agent without the tool "look".
fn billing() -> Handoff {
    Handoff { name: "billing".into(), instructions: Some("You are billing.".into()), ..Handoff::default() }
}

#[test]
fn r18_r31_an_answer_that_is_picked_up_is_run_by_the_agent_of_its_request() {
    let store = MemoryStore::default();
    let mut service = BackgroundService::new(Service::new(rounds(2)));
    service.pace = 100;
    let mut host = Host::open(&store, "s", "first");
    host.handoff_of_tool = Box::new(|_| Some(billing()));
    host.start(in_background("run", true), "Go").unwrap();
    let mut calls = 0;
    let killed = drive(&mut host, &mut service, |_| {
        calls += 1;
        if calls > 1 { Fate { events: Some(1), how: How::Kill } } else { ALL }
    });
    assert!(killed.is_none());
    assert_eq!((service.posts, host.ran.len()), (2, 1));
    let mut host = Host::open(&store, "s", "second");
    host.resume_handoffs = vec![billing()];
    host.resume(in_background("run", true)).unwrap();
    assert_eq!(host.run.as_ref().unwrap().handoff_count(), 1);
    let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
    assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 3), "{:?}", outcome.error);
    // The agent's answer calls a tool that only the former agent has.
    assert_eq!(host.ran, []);
    let log = host.log.borrow();
    let answers = log.history.messages().iter().filter(|message| message.role == rethread::message::Role::Assistant);
    let agents: Vec<_> =
        answers.map(|message| message.answer.as_ref().and_then(|answer| answer.agent.clone())).collect();
    assert_eq!(agents, [None, Some("billing".to_owned()), Some("billing".to_owned())]);
}
