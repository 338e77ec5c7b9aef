//! Interactions in the background: Google works on them when nobody reads, and they are picked up by their id.

use super::*;
use crate::interaction_service::{InteractionService, words_of};
use rethread::run::OnStop;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const INTERACTIONS: Dialect = Dialect::GeminiInteractions;

fn in_background(id: &str, stream: bool, owner: &StateOwner) -> RunSetup {
    let mut setup = RunSetup { owner: owner.clone(), ..setup(id, INTERACTIONS, stream) };
    setup.provider.url = "https://model.example/v1beta/interactions?alt=7".into();
    setup.provider.params = Json::parse(r#"{"model":"m","background":true}"#).unwrap();
    setup
}

fn variants() -> Vec<(StateOwner, bool)> {
    let owners = [StateOwner::Session, StateOwner::response(None)];
    owners.into_iter().flat_map(|owner| [(owner.clone(), false), (owner, true)]).collect()
}

fn story() -> InteractionService {
    InteractionService::new(|_| Ok(STORY.into()))
}

/// What the session would send, in words.
fn history_of(host: &mut Host<'_>) -> Vec<String> {
    let body: serde_json::Value = serde_json::from_slice(&host.render(INTERACTIONS).body).unwrap();
    words_of(body["input"].as_array().unwrap())
}

/// Drives a run whose process is killed after so many events of its answer.
fn killed_in_background(store: &MemoryStore, service: &mut InteractionService, setup: RunSetup, events: usize) {
    let mut host = Host::open(store, "s", "first");
    let stream = setup.provider.stream;
    host.start(setup, "One").unwrap();
    let mut calls = 0;
    let killed = drive(&mut host, service, |_| {
        calls += 1;
        // What is no stream names the answer with the first response, and then is asked for.
        Fate { events: Some(events), how: if stream || calls > 1 { How::Kill } else { How::Ends } }
    });
    assert!(killed.is_none());
}

fn texts() -> [String; 2] {
    ["user: One".into(), format!("model: {STORY}")]
}

#[test]
fn r18_r20_r77_an_interaction_in_the_background_of_a_killed_run_is_picked_up_and_not_asked_for_again() {
    for (owner, stream) in variants() {
        for events in 1..5 {
            let store = MemoryStore::default();
            let mut service = story();
            service.works.pace = 1;
            killed_in_background(&store, &mut service, in_background("r1", stream, &owner), events);
            let mut host = Host::open(&store, "s", "second");
            host.resume(in_background("r1", stream, &owner)).unwrap();
            service.works.pace = 100;
            let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            assert_eq!((&*outcome.text.decode(), outcome.model_calls, service.requests.len()), (STORY, 1, 1));
            assert_eq!((history_of(&mut host), text_of(&host)), (texts().to_vec(), STORY.to_owned()));
            assert!(service.requests[0]["store"] == true && service.requests[0]["background"] == true);
            let query = if stream { "?alt=7&stream=true" } else { "?alt=7" };
            let address = format!("https://model.example/v1beta/interactions/v1_1{query}");
            assert_eq!(service.works.gets.first(), Some(&address));
            // A stream that ended too early is not read again, where it has brought any step.
            let whole = "https://model.example/v1beta/interactions/v1_1?alt=7";
            assert!(service.works.gets.iter().all(|get| *get == address || get == whole));
            // The conversation goes on from it.
            host.start(in_background("r2", stream, &owner), "Two").unwrap();
            let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            let continues = if owner == StateOwner::Session { "none" } else { "v1_1" };
            assert_eq!(service.chain(), ["none", continues]);
            assert!(service.refused.is_empty() && service.invalid.is_empty());
        }
    }
}

#[test]
fn r18_r77_a_stream_of_an_interaction_that_breaks_is_completed_from_the_whole_one() {
    for (owner, _) in variants() {
        for events in 1..6 {
            let store = MemoryStore::default();
            let mut service = story();
            service.works.pace = 2;
            let mut host = Host::open(&store, "s", "h");
            host.start(in_background("r1", true, &owner), "One").unwrap();
            let mut calls = 0;
            let outcome = drive(&mut host, &mut service, |service| {
                calls += 1;
                service.works.pace = 1;
                Fate { events: Some(events), how: if calls == 1 { How::Breaks } else { How::Ends } }
            });
            let outcome = outcome.unwrap();
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            assert_eq!((text_of(&host), service.requests.len()), (STORY.to_owned(), 1), "{events}");
            assert_eq!(outcome.text.decode(), STORY, "{events}");
            assert_eq!(history_of(&mut host), texts());
        }
    }
}

#[test]
fn r18_r77_an_interaction_that_failed_without_its_steps_keeps_what_was_streamed_of_it() {
    const CANCELLED: &str = r#"{"id":"v1_1","status":"cancelled","model":"m"}"#;
    const FAILED: &str = r#"{"id":"v1_1","status":"failed","model":"m","steps":[],"error":{"code":13,"message":"x"}}"#;
    const CUT: &str = r#"{"id":"v1_1","status":"incomplete","model":"m"}"#;
    for (owner, _) in variants() {
        for said in [CANCELLED, FAILED, CUT] {
            let store = MemoryStore::default();
            let mut service = story();
            service.works.pace = 4;
            let mut host = Host::open(&store, "s", "h");
            host.start(RunSetup { on_stop: OnStop::Keep, ..in_background("r1", true, &owner) }, "One").unwrap();
            let mut calls = 0;
            let outcome = drive(&mut host, &mut service, |_| {
                calls += 1;
                match calls {
                    1 => ALL,
                    2 => Fate { events: Some(4), how: How::Breaks },
                    _ => Fate { events: None, how: How::Says(said) },
                }
            });
            let outcome = outcome.unwrap();
            let status = if said == CUT { RunStatus::Finished } else { RunStatus::Failed };
            assert_eq!(outcome.status, status, "{said}");
            let shown = text_of(&host);
            assert!(!shown.is_empty() && STORY.starts_with(&shown));
            assert_eq!(history_of(&mut host).last(), Some(&format!("model: {shown}")), "{said} {owner:?}");
        }
    }
}

#[test]
fn r18_r77_calls_of_an_interaction_that_was_picked_up_run_once() {
    for (owner, stream) in variants() {
        let store = MemoryStore::default();
        let mut service = InteractionService::new(crate::interaction_service::rounds(1));
        service.works.pace = 1;
        killed_in_background(&store, &mut service, in_background("r1", stream, &owner), 1);
        let mut host = Host::open(&store, "s", "second");
        host.resume(in_background("r1", stream, &owner)).unwrap();
        let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert_eq!((host.ran.len(), service.requests.len(), service.refused.len()), (1, 2, 0));
        let ended = ["user: One", "call call_1", "result call_1: found", "model: answer 1 after 1"];
        assert_eq!(history_of(&mut host), ended);
    }
}

/// A stream that is read again begins with what was received of it.
#[test]
fn r16_r77_calls_of_an_interaction_run_once_wherever_its_stream_breaks() {
    for (owner, _) in variants() {
        for events in 1..9 {
            let store = MemoryStore::default();
            let mut service = InteractionService::new(crate::interaction_service::rounds(1));
            service.works.pace = 9;
            let mut host = Host::open(&store, "s", "h");
            host.start(in_background("r1", true, &owner), "One").unwrap();
            let mut calls = 0;
            let outcome = drive(&mut host, &mut service, |_| {
                calls += 1;
                // The first response has the events so far, the second one all of them.
                if calls == 2 { Fate { events: Some(events), how: How::Breaks } } else { ALL }
            });
            let outcome = outcome.unwrap();
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            assert_eq!((host.ran.len(), service.requests.len(), service.refused.len()), (1, 2, 0), "{events}");
            let ended = ["user: One", "call call_1", "result call_1: found", "model: answer 1 after 1"];
            assert_eq!(history_of(&mut host), ended, "{events}");
        }
    }
}

/// An answer that is whole and has nothing of what was streamed of it is not the answer.
#[test]
fn r18_r77_a_whole_interaction_without_its_steps_is_asked_for_again() {
    const EMPTY: &str = r#"{"id":"v1_1","status":"completed","model":"m"}"#;
    let store = MemoryStore::default();
    let mut service = story();
    service.works.pace = 4;
    let mut host = Host::open(&store, "s", "h");
    host.start(in_background("r1", true, &StateOwner::Session), "One").unwrap();
    let mut calls = 0;
    let outcome = drive(&mut host, &mut service, |service| {
        calls += 1;
        service.works.pace = 9;
        match calls {
            2 => Fate { events: Some(4), how: How::Breaks },
            3 => Fate { events: None, how: How::Says(EMPTY) },
            _ => ALL,
        }
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.status, text_of(&host)), (RunStatus::Finished, STORY.to_owned()), "{:?}", outcome.error);
    assert!(calls > 3);
}

#[test]
fn r18_r77_an_interaction_that_is_gone_is_asked_for_again() {
    for (owner, stream) in variants() {
        let store = MemoryStore::default();
        let mut service = story();
        service.works.pace = 1;
        killed_in_background(&store, &mut service, in_background("r1", stream, &owner), 1);
        service.works.by_id.clear();
        let mut host = Host::open(&store, "s", "second");
        host.resume(in_background("r1", stream, &owner)).unwrap();
        service.works.pace = 100;
        let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert!(outcome.report.iter().any(|finding| finding.code.as_str() == "interrupted"));
        assert_eq!((service.chain(), history_of(&mut host)), (vec!["none", "none"], texts().to_vec()));
    }
}

#[test]
fn r18_r77_an_interaction_that_nobody_asked_for_in_the_background_is_not_picked_up() {
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = Host::open(&store, "s", "first");
    let owner = StateOwner::response(None);
    let mut setup = in_background("r1", true, &owner);
    setup.provider.params = Json::parse(r#"{"model":"m"}"#).unwrap();
    host.start(setup.clone(), "One").unwrap();
    let fate = |_: &mut InteractionService| Fate { events: Some(2), how: How::Kill };
    assert!(drive(&mut host, &mut service, fate).is_none());
    let mut host = Host::open(&store, "s", "second");
    host.resume(setup).unwrap();
    let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert_eq!((service.works.gets.len(), service.requests.len()), (0, 2));
}
