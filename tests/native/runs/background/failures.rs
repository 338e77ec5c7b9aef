//! What a service answers when its answer cannot be picked up, or has failed.

use super::*;
use crate::scripted_host::provider;
use crate::spy_store::{Fault, Spy};
use rethread::message::MessageStatus;
use rethread::run::RetryPolicy;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

/// A run that was killed when it had received so many events, in another process.
pub(super) fn resumed<'s>(
    store: &'s MemoryStore,
    service: &mut BackgroundService,
    stream: bool,
    setup: RunSetup,
) -> Host<'s> {
    let mut host = Host::open(store, "s", "first");
    host.start(in_background("run", stream), "Go").unwrap();
    let mut calls = 0;
    let killed = drive(&mut host, service, |service| {
        calls += 1;
        service.pace = if stream { 4 } else { 1 };
        Fate { events: Some(4), how: if stream || calls > 1 { How::Kill } else { How::Ends } }
    });
    assert!(killed.is_none());
    service.pace = 0;
    service.work(100);
    let mut host = Host::open(store, "s", "second");
    host.resume(setup).unwrap();
    host
}

pub(super) fn code_of(outcome: &RunOutcome) -> ErrorCode {
    outcome.error.as_ref().unwrap().code
}

#[test]
fn r18_a_stream_that_the_service_refuses_is_polled_for() {
    for in_process in [true, false] {
        let store = MemoryStore::default();
        let mut service = story();
        let mut host = if in_process {
            let mut host = Host::open(&store, "s", "h");
            host.start(in_background("run", true), "Go").unwrap();
            host
        } else {
            resumed(&store, &mut service, true, in_background("run", true))
        };
        let mut calls = 0;
        let outcome = drive(&mut host, &mut service, |service| {
            calls += 1;
            service.pace = 4;
            if calls > 1 || !in_process {
                service.grow_old();
            }
            Fate { events: Some(5), how: How::Breaks }
        });
        // The whole answer does not arrive either, for ever.
        let outcome = outcome.unwrap();
        assert_eq!((outcome.status, code_of(&outcome)), (RunStatus::Failed, ErrorCode::ModelError));
        host.resume(in_background("run", true)).unwrap();
        let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
        assert_eq!(outcome.status, RunStatus::Finished);
        assert_eq!((service.posts, answers(&mut host)), (1, vec!["user: Go".into(), format!("assistant: {STORY}")]));
        assert!(service.gets.iter().any(|url| url.ends_with("/resp_1?api-version=7")), "{:?}", service.gets);
    }
}

#[test]
fn r20_the_rest_of_a_stream_that_is_too_old_comes_whole_and_no_text_comes_twice() {
    for at in 1..crate::background_service::EVENTS {
        let store = MemoryStore::default();
        let mut service = story();
        let mut host = Host::open(&store, "s", "h");
        host.start(in_background("run", true), "Go").unwrap();
        let mut calls = 0;
        let outcome = drive(&mut host, &mut service, |service| {
            calls += 1;
            service.pace = if calls == 1 { at - 1 } else { 4 };
            service.is_unnumbered = at % 2 == 0;
            if calls > 1 {
                service.grow_old();
            }
            ALL
        })
        .unwrap();
        assert_eq!(outcome.status, RunStatus::Finished, "{at}");
        assert_eq!((text_of(&host).as_str(), service.posts), (STORY, 1), "{at}");
        assert_eq!(answers(&mut host), ["user: Go", &format!("assistant: {STORY}")]);
    }
}

#[test]
fn r27_an_answer_that_the_service_does_not_have_any_more_is_asked_for_again_once_and_reported() {
    for stream in [false, true] {
        let store = MemoryStore::default();
        let mut service = story();
        let mut host = resumed(&store, &mut service, stream, in_background("run", stream));
        service.forget();
        service.pace = 100;
        let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
        assert_eq!((outcome.status, service.posts, outcome.model_calls), (RunStatus::Finished, 2, 1));
        let findings = outcome.report.iter().filter(|finding| finding.message.contains("not have the answer any more"));
        assert_eq!(findings.count(), 1);
        assert_eq!(answers(&mut host), ["user: Go", &format!("assistant: {STORY}")]);
    }
    // A gateway that has no answers to pick up: the attempts are those of a request.
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = Host::open(&store, "s", "h");
    host.start(in_background("run", false), "Go").unwrap();
    let outcome = drive(&mut host, &mut service, |service| {
        service.forget();
        ALL
    })
    .unwrap();
    assert_eq!((outcome.status, service.posts), (RunStatus::Failed, 3));
}

#[test]
fn r27_an_answer_of_which_a_part_was_shown_is_not_asked_for_again_by_the_run() {
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = Host::open(&store, "s", "h");
    host.start(in_background("run", true), "Go").unwrap();
    let mut calls = 0;
    let outcome = drive(&mut host, &mut service, |service| {
        calls += 1;
        service.pace = 5;
        if calls > 1 {
            service.forget();
        }
        Fate { events: Some(6), how: How::Breaks }
    })
    .unwrap();
    assert_eq!((outcome.status, service.posts), (RunStatus::Failed, 1));
    assert!(!outcome.text.is_empty() && STORY.starts_with(&*outcome.text.decode()));
    // The application resumes it, and a new answer is asked for.
    host.resume(in_background("run", true)).unwrap();
    service.pace = 100;
    let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
    assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 2));
}

#[test]
fn r18_an_answer_that_failed_is_not_picked_up_twice() {
    for end in ["failed", "cancelled"] {
        for stream in [false, true] {
            let store = MemoryStore::default();
            let mut service = story();
            service.end = end;
            let mut host = resumed(&store, &mut service, stream, in_background("run", stream));
            let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
            assert_eq!(
                (outcome.status, code_of(&outcome), service.posts),
                (RunStatus::Failed, ErrorCode::ModelError, 1)
            );
            service.end = "completed";
            host.resume(in_background("run", stream)).unwrap();
            service.pace = 100;
            let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
            assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 2), "{end} {stream}");
        }
    }
    // One that was cut is stored as one.
    let store = MemoryStore::default();
    let mut service = story();
    service.end = "incomplete";
    let mut host = resumed(&store, &mut service, true, in_background("run", true));
    let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
    assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1));
    assert_eq!(host.log.borrow().history.messages()[1].status, MessageStatus::Truncated);
}

#[test]
fn r18_r27_what_picks_an_answer_up_is_repeated_as_any_request_and_changes_nothing() {
    for (how, waits, ends) in [
        (How::Refused(429), vec![100, 200], RunStatus::Failed),
        (How::Refused(503), vec![100, 200], RunStatus::Failed),
        (How::Unreachable, vec![100, 200], RunStatus::Failed),
        (How::Refused(401), vec![], RunStatus::Failed),
        (How::Refused(403), vec![], RunStatus::Failed),
    ] {
        for owner in [StateOwner::Session, StateOwner::Conversation { id: "conv_1".into() }] {
            let store = MemoryStore::default();
            let mut service = story();
            service.kept = Service::new(|_| Ok(STORY.into())).with_conversation("conv_1");
            let setup = RunSetup { owner, ..in_background("run", true) };
            let mut host = Host::open(&store, "s", "h");
            host.start(setup.clone(), "Go").unwrap();
            drive(&mut host, &mut service, |_| Fate { events: Some(1), how: How::Kill });
            service.work(100);
            let mut host = Host::open(&store, "s", "second");
            host.resume(setup.clone()).unwrap();
            let outcome = drive(&mut host, &mut service, |_| Fate { events: None, how }).unwrap();
            assert_eq!((outcome.status, &host.waits), (ends, &waits), "{how:?}");
            assert_eq!(code_of(&outcome), ErrorCode::ModelError);
            // The answer is still there.
            host.resume(setup).unwrap();
            let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
            assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1), "{how:?}");
        }
    }
}

#[test]
fn r18_a_pause_before_an_answer_is_picked_up_outlives_the_process() {
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = resumed(&store, &mut service, true, in_background("run", true));
    host.write();
    let effect = host.run.as_ref().unwrap().effects()[0].clone();
    let headers = vec![("retry-after".to_owned(), "600".to_owned())];
    host.reply(&effect.id, EffectReply::Response { status: 429, headers, body: b"{}".to_vec() }).unwrap();
    host.write();
    let mut third = Host::open(&store, "s", "third");
    third.clock.advance(200_000);
    third.resume(in_background("run", true)).unwrap();
    let outcome = drive(&mut third, &mut service, |_| ALL).unwrap();
    assert_eq!((outcome.status, service.posts, third.waits.clone()), (RunStatus::Finished, 1, vec![400_000]));
    // A host that sleeps instead answers at once.
    let effect = host.run.as_ref().unwrap().effects()[0].clone();
    host.reply(&effect.id, EffectReply::Waited).unwrap();
    let effect = host.run.as_ref().unwrap().effects()[0].clone();
    let EffectKind::CallModel { not_before, repeatable, body, .. } = effect.kind else { panic!("no call") };
    assert_eq!((not_before, repeatable, body.len()), (Some(host.clock.now() + 600_000), true, 0));
}

#[test]
fn r18_r68_another_service_gets_no_answer_of_the_first_one() {
    let elsewhere = |url: &str| {
        let mut setup = in_background("run", false);
        setup.provider.url = url.into();
        setup
    };
    for setup in [elsewhere("https://other.example/v1/responses"), {
        let mut setup = in_background("run", false);
        setup.provider = provider(CHAT, false);
        setup
    }] {
        let store = MemoryStore::default();
        let mut service = story();
        let mut host = resumed(&store, &mut service, false, setup.clone());
        host.write();
        let effect = host.run.as_ref().unwrap().effects()[0].clone();
        let EffectKind::CallModel { method, url, .. } = effect.kind else { panic!("no call") };
        assert_eq!((method.as_str(), url), ("POST", setup.provider.url));
    }
    // Another version of the API is the same service.
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = resumed(&store, &mut service, false, elsewhere("https://model.example/v1/responses?api-version=8"));
    drive(&mut host, &mut service, |_| ALL).unwrap();
    assert_eq!(service.gets.last().unwrap(), "https://model.example/v1/responses/resp_1?api-version=8");
}

#[test]
fn r18_a_stream_that_brings_nothing_is_polled_for_after_the_usual_attempts() {
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = Host::open(&store, "s", "h");
    let retry = RetryPolicy { attempts: 3, ..in_background("run", true).retry };
    host.start(RunSetup { retry, ..in_background("run", true) }, "Go").unwrap();
    let outcome = drive(&mut host, &mut service, |service| {
        service.pace = usize::from(service.gets.len() > 4) * 100;
        ALL
    })
    .unwrap();
    assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1));
    assert_eq!(host.waits[..4], [100, 200, 2_000, 2_000]);
}

#[test]
fn r18_a_service_that_keeps_no_answers_in_the_background_refuses_the_request() {
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = Host::open(&store, "s", "h");
    let mut setup = in_background("run", true);
    setup.provider.params = Json::parse(r#"{"model":"m","background":true,"store":false}"#).unwrap();
    host.start(setup, "Go").unwrap();
    let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
    assert_eq!((outcome.status, code_of(&outcome), service.posts), (RunStatus::Failed, ErrorCode::ModelError, 0));
}

#[test]
fn r18_an_id_that_cannot_be_stored_is_reported_and_the_run_goes_on() {
    let store = Spy::default();
    let mut service = story();
    let mut host = Host::open(&store, "s", "h");
    host.start(in_background("run", true), "Go").unwrap();
    assert!(host.write());
    store.faults.replace(vec![Some(Fault::Refuses(ErrorCode::StoreError))]);
    service.pace = 100;
    let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
    assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1));
    let warnings = outcome.report.iter().filter(|finding| finding.message.contains("could not be stored"));
    assert_eq!(warnings.count(), 1);
}
