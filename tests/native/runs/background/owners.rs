//! Answers in the background of a service that keeps the conversation: what is picked up is acknowledged as what is
//! received.

use super::*;
use rethread::replay::Callback;
use rethread::run::RetryPolicy;
use std::rc::Rc;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn owners() -> [StateOwner; 2] {
    [StateOwner::Conversation { id: "conv_1".into() }, StateOwner::response(None)]
}

fn kept() -> BackgroundService {
    BackgroundService::new(Service::new(|_| Ok(STORY.into())).with_conversation("conv_1"))
}

#[test]
fn r23_r27_r77_an_answer_that_is_picked_up_is_acknowledged_and_nothing_is_sent_twice() {
    for owner in owners() {
        for stream in [false, true] {
            let store = MemoryStore::default();
            let mut service = kept();
            service.pace = 100;
            let mut host = Host::open(&store, "s", "first");
            host.start(owned("r1", stream, owner.clone()), "One").unwrap();
            drive(&mut host, &mut service, |_| ALL).unwrap();
            service.pace = 1;
            host.start(owned("r2", stream, owner.clone()), "Two").unwrap();
            let mut calls = 0;
            let killed = drive(&mut host, &mut service, |_| {
                calls += 1;
                Fate { events: Some(1), how: if stream || calls > 1 { How::Kill } else { How::Ends } }
            });
            assert!(killed.is_none());
            let mut host = Host::open(&store, "s", "second");
            // Nobody is asked: the service has the request, and its answer is picked up.
            host.resume(owned("r2", stream, owner.clone())).unwrap();
            service.pace = 100;
            let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            host.start(owned("r3", stream, owner.clone()), "Three").unwrap();
            drive(&mut host, &mut service, |_| ALL).unwrap();
            assert_eq!(service.posts, 3);
            for (request, input) in ["One", "Two", "Three"].iter().enumerate() {
                assert_eq!(service.kept.sent(request), [format!("user: {input}")]);
            }
            let answer = format!("assistant: {STORY}");
            let expected = ["user: One", &answer, "user: Two", &answer, "user: Three", &answer];
            assert_eq!(crate::stateful_service::words_of(service.kept.newest()), expected);
            assert_eq!(answers(&mut host), expected);
        }
    }
}

#[test]
fn r27_a_conversation_whose_answer_is_gone_is_asked_again_only_if_the_application_approves() {
    for approves in [None, Some(false), Some(true)] {
        let store = MemoryStore::default();
        let mut service = kept();
        let callback = approves.map(|_| Callback { id: 1, hook: Rc::new(()) });
        let [conversation, _] = owners();
        let setup = RunSetup {
            retry: RetryPolicy { approve_unsafe_replay: callback, ..RetryPolicy::default() },
            ..owned("run", true, conversation)
        };
        let mut host = Host::open(&store, "s", "first");
        host.start(setup.clone(), "Go").unwrap();
        assert!(drive(&mut host, &mut service, |_| Fate { events: Some(1), how: How::Kill }).is_none());
        service.forget();
        service.pace = 100;
        let mut host = Host::open(&store, "s", "second");
        host.resume(setup).unwrap();
        // The 404 may pass: the last attempt decides.
        for _ in 0..6 {
            host.write();
            let Some(effect) = host.run.as_ref().unwrap().effects().first().map(|effect| (*effect).clone()) else {
                break;
            };
            match effect.kind {
                EffectKind::CallModel { method, url, stream, .. } => {
                    let reply = service.request(method.as_str(), &url, b"");
                    receive(&mut host, &effect.id, reply, stream, ALL);
                }
                EffectKind::Wait { .. } => host.reply(&effect.id, EffectReply::Waited).unwrap(),
                EffectKind::RunTool { .. } => panic!("no tool was called"),
            }
        }
        let question = host.run.as_mut().unwrap().take_replay_question();
        assert_eq!(question.is_some(), approves.is_some());
        if let Some(approved) = approves {
            host.handle(RunInput::ReplayReply(approved)).unwrap();
        }
        let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
        if approves == Some(true) {
            assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 2));
        } else {
            assert_eq!(outcome.error.unwrap().code, ErrorCode::ReplayUnsafe);
            assert_eq!(service.posts, 1);
        }
    }
}
