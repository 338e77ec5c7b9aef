//! Bodies of the status 200 that are no response: the answer is still there (R18).

use super::failures::{code_of, resumed};
use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const GARBLED: [&str; 5] = [
    "",
    "<html><body>One moment</body></html>",
    r#"{"id":"resp_1","status":"completed","output":[{"type":"message","role":"assis"#,
    "{}",
    r#"{"error":{"message":"upstream","code":"proxy"}}"#,
];

#[test]
fn r18_r27_a_body_that_is_no_response_is_asked_for_again_and_the_answer_is_kept() {
    for said in GARBLED {
        for stream in [false, true] {
            let store = MemoryStore::default();
            let mut service = story();
            let mut host = resumed(&store, &mut service, stream, in_background("run", stream));
            let mut calls = 0;
            let outcome = drive(&mut host, &mut service, |_| {
                calls += 1;
                Fate { events: None, how: if calls > 2 { How::Ends } else { How::Says(said) } }
            })
            .unwrap();
            assert_eq!(
                (outcome.status, service.posts),
                (RunStatus::Finished, 1),
                "{said} {stream}: {:?}",
                outcome.error
            );
            assert_eq!(answers(&mut host), ["user: Go", &format!("assistant: {STORY}")]);
            // One that stays garbled fails the run, and a resume asks for nothing new.
            let store = MemoryStore::default();
            let mut service = story();
            let mut host = resumed(&store, &mut service, stream, in_background("run", stream));
            let outcome = drive(&mut host, &mut service, |_| Fate { events: None, how: How::Says(said) }).unwrap();
            assert_eq!((outcome.status, code_of(&outcome)), (RunStatus::Failed, ErrorCode::ModelError));
            assert_eq!(host.waits[host.waits.len() - 2..], [100, 200], "{said} {stream}: {:?}", host.waits);
            host.resume(in_background("run", stream)).unwrap();
            let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
            assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1), "{said} {stream}");
            assert_eq!(answers(&mut host), ["user: Go", &format!("assistant: {STORY}")]);
        }
    }
}

#[test]
fn r18_what_is_no_response_after_a_poll_is_not_polled_for_ever() {
    for said in GARBLED {
        let store = MemoryStore::default();
        let mut service = story();
        let mut host = Host::open(&store, "s", "h");
        host.start(in_background("run", true), "Go").unwrap();
        service.pace = 3;
        let mut calls = 0;
        let outcome = drive(&mut host, &mut service, |service| {
            calls += 1;
            service.pace = if calls == 1 { 5 } else { 0 };
            if calls > 1 {
                service.grow_old();
            }
            // A stream, a refused stream, a whole answer that is not ready.
            if calls > 3 { Fate { events: None, how: How::Says(said) } } else { ALL }
        })
        .unwrap();
        assert_eq!((outcome.status, code_of(&outcome)), (RunStatus::Failed, ErrorCode::ModelError), "{said}");
        assert_eq!(host.waits, [100, 2_000, 100, 200], "{said}");
        service.work(100);
        host.resume(in_background("run", true)).unwrap();
        let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
        assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1), "{said}");
    }
}

#[test]
fn r18_a_response_without_a_list_of_items_says_what_became_of_the_answer() {
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = resumed(&store, &mut service, false, in_background("run", false));
    let mut calls = 0;
    let outcome = drive(&mut host, &mut service, |_| {
        calls += 1;
        let said = match calls {
            1 => r#"{"object":"response","id":"resp_1","status":"queued"}"#,
            _ => r#"{"object":"response","id":"resp_1","status":"failed","error":{"code":"server_error","message":"It broke."}}"#,
        };
        Fate { events: None, how: How::Says(said) }
    })
    .unwrap();
    assert_eq!(
        (outcome.status, code_of(&outcome), host.waits.clone()),
        (RunStatus::Failed, ErrorCode::ModelError, vec![2_000])
    );
    assert!(outcome.error.unwrap().message.contains("It broke."));
    // It has failed, so another one is asked for.
    host.resume(in_background("run", false)).unwrap();
    service.pace = 100;
    let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
    assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 2));
}
