//! Pauses between the attempts of a model call, over a kill and for hosts that sleep (R60), and what is never sent
//! again (R27).

use super::spy_store::{Fault, Spy};
use super::*;
use rethread::clock::Clock;
use rethread::run::{Effect, EffectKind, EffectReply, RunEvent, RunInput};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const SLOW_DOWN: &str = r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#;

fn limited(seconds: &'static str) -> EffectReply {
    let headers = vec![("retry-after".to_owned(), seconds.to_owned())];
    EffectReply::Response { status: 429, headers, body: SLOW_DOWN.into() }
}

fn only_effect(host: &mut Host<'_>) -> Effect {
    assert!(host.write());
    let effects = host.run.as_ref().unwrap().effects();
    assert_eq!(effects.len(), 1);
    effects[0].clone()
}

fn not_before(effect: &Effect) -> Option<u64> {
    match &effect.kind {
        EffectKind::CallModel { not_before, repeatable: true, .. } => *not_before,
        kind => panic!("{kind:?} is no call that may be repeated"),
    }
}

/// Answers the open `call_model` with a 429 and returns the `wait` that follows, in milliseconds.
fn is_limited(host: &mut Host<'_>, seconds: &'static str) -> u64 {
    let call = only_effect(host);
    not_before(&call);
    host.reply(&call.id, limited(seconds)).unwrap();
    wait(host)
}

fn wait(host: &mut Host<'_>) -> u64 {
    match only_effect(host).kind {
        EffectKind::Wait { ms } => ms,
        kind => panic!("{kind:?} is no pause"),
    }
}

fn resumed(store: &MemoryStore, at: u64) -> Host<'_> {
    let mut host = Host::open(store, "s", &format!("at {at}"));
    host.clock.advance(at - host.clock.now());
    host.resume(setup("run", CHAT, false)).unwrap();
    host
}

#[test]
fn r60_a_resumed_run_waits_for_the_rest_of_the_pause() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup("run", CHAT, false), "Go").unwrap();
    assert_eq!(is_limited(&mut host, "60"), 60_000);
    drop(host);
    let mut host = resumed(&store, 1_010_000);
    assert_eq!(wait(&mut host), 50_000);
    // Resumed once more, by a third owner, after the end of the pause.
    drop(host);
    let mut host = resumed(&store, 1_070_000);
    let outcome = host.drive(|_| Answer::Say(text("Here."))).unwrap();
    assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 1));
    assert!(host.waits.is_empty());
}

#[test]
fn r60_a_run_that_is_resumed_in_each_pause_has_no_more_attempts() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup("run", CHAT, false), "Go").unwrap();
    is_limited(&mut host, "60");
    let mut host = resumed(&store, 2_000_000);
    is_limited(&mut host, "60");
    let mut host = resumed(&store, 3_000_000);
    let outcome = host.drive(|_| Answer::Status(429, vec![], SLOW_DOWN.into())).unwrap();
    assert_eq!(outcome.status, RunStatus::Failed);
    // The user tries again: the attempts begin anew, and there is no pause.
    let mut host = resumed(&store, 3_000_001);
    assert!(host.drive(|_| Answer::Say(text("Here."))).is_some());
    assert!(host.waits.is_empty());
}

#[test]
fn r60_a_pause_between_two_rounds_keeps_the_results_over_a_kill() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup("run", CHAT, false), "Go").unwrap();
    let mut calls = 0;
    let stopped = host.drive(|body| {
        calls += 1;
        if calls == 2 { Answer::Hang } else { three_tools(body) }
    });
    assert!(stopped.is_none());
    is_limited(&mut host, "60");
    let mut host = resumed(&store, 1_020_000);
    let outcome = host.drive(three_tools).unwrap();
    assert_eq!((outcome.status, outcome.model_calls), (RunStatus::Finished, 3));
    assert_eq!(host.waits.len(), 1);
    // The tools of the first round are not run again.
    assert_eq!(host.ran.len(), 1);
}

#[test]
fn r60_a_host_that_sleeps_gets_the_time_before_which_the_request_must_not_be_sent() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup("run", CHAT, false), "Go").unwrap();
    is_limited(&mut host, "60");
    let pause = only_effect(&mut host);
    host.reply(&pause.id, EffectReply::Waited).unwrap();
    let call = only_effect(&mut host);
    assert_eq!(not_before(&call), Some(1_060_000));
    // A host that has waited is not told.
    host.clock.advance(60_000);
    host.reply(&call.id, limited("1")).unwrap();
    host.clock.advance(1_000);
    let pause = only_effect(&mut host);
    host.reply(&pause.id, EffectReply::Waited).unwrap();
    assert_eq!(not_before(&only_effect(&mut host)), None);
}

#[test]
fn r27_an_aborted_request_is_never_sent_again() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup("run", CHAT, false), "Go").unwrap();
    let call = only_effect(&mut host);
    let aborted = EffectReply::Failed { code: Some("AbortError".into()), message: "aborted".into(), sent: Some(false) };
    host.reply(&call.id, aborted).unwrap();
    host.write();
    assert_eq!(host.run.as_ref().unwrap().status(), RunStatus::Failed);
    assert!(host.waits.is_empty());
}

/// A run whose model call was refused, with the pause not written.
fn before_pause<'s>(store: &'s dyn LogStore) -> Host<'s> {
    let mut host = Host::open(store, "s", "h");
    host.start(setup("run", CHAT, false), "Go").unwrap();
    let call = only_effect(&mut host);
    host.reply(&call.id, limited("60")).unwrap();
    host
}

#[test]
fn r27_a_run_that_was_taken_over_does_not_repeat_its_request() {
    for has_waited in [false, true] {
        let store = MemoryStore::default();
        let mut host = before_pause(&store);
        let other = Host::open(&store, "s", "other");
        other.take(&other.pending()[0]).unwrap();
        if has_waited {
            let pause = host.run.as_ref().unwrap().effects()[0].id.clone();
            host.reply(&pause, EffectReply::Waited).unwrap();
            assert!(host.run.as_ref().unwrap().effects().is_empty(), "the request is sent before the pause is stored");
        }
        host.write();
        let run = host.run.as_ref().unwrap();
        let outcome = run.outcome();
        assert_eq!((outcome.status, outcome.error.unwrap().code), (RunStatus::Failed, ErrorCode::Conflict));
        assert!(run.effects().is_empty());
        assert!(other.pending()[0].failed.is_none());
    }
}

#[test]
fn r60_a_pause_that_cannot_be_stored_is_reported_and_saved_again() {
    for waits_first in [false, true] {
        let spy = Spy::default();
        let mut host = before_pause(&spy);
        *spy.faults.borrow_mut() = vec![Some(Fault::Refuses(ErrorCode::QuotaExceeded))];
        host.write();
        assert!(host.events.iter().any(|event| matches!(event, RunEvent::SaveFailed { .. })));
        if waits_first {
            assert!(host.drive(|_| panic!("the request is sent before the pause is stored")).is_none());
        }
        host.handle(RunInput::RetrySave).unwrap();
        let outcome = host.drive(|_| Answer::Say(text("Here."))).unwrap();
        assert_eq!((outcome.status, host.waits.len()), (RunStatus::Finished, 1));
    }
}
