//! Services and gateways that refuse to give an answer to be picked up (R18, R27).

use super::failures::{code_of, resumed};
use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn r18_r27_an_answer_that_is_missing_for_a_moment_is_not_asked_for_again() {
    for status in [404, 410, 400] {
        for (stream, waits) in [(false, vec![100, 200]), (true, vec![100])] {
            let store = MemoryStore::default();
            let mut service = story();
            let mut host = resumed(&store, &mut service, stream, in_background("run", stream));
            let mut calls = 0;
            let outcome = drive(&mut host, &mut service, |_| {
                calls += 1;
                Fate { events: None, how: if calls > 2 { How::Ends } else { How::Refused(status) } }
            })
            .unwrap();
            assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1), "{status} {stream}");
            assert_eq!(host.waits, waits, "{status}");
            assert!(!outcome.report.iter().any(|finding| finding.message.contains("not have the answer any more")));
        }
    }
}

#[test]
fn r18_r27_a_gateway_that_takes_no_get_fails_the_run_and_the_answer_is_kept() {
    for status in [400, 405] {
        for stream in [false, true] {
            let store = MemoryStore::default();
            let mut service = story();
            service.pace = 3;
            let mut host = Host::open(&store, "s", "first");
            host.start(in_background("run", stream), "Go").unwrap();
            let outcome = drive(&mut host, &mut service, |service| {
                let how = if service.is_picking_up { How::Refused(status) } else { How::Ends };
                Fate { events: Some(3), how }
            })
            .unwrap();
            assert_eq!((outcome.status, code_of(&outcome)), (RunStatus::Failed, ErrorCode::ModelError), "{status}");
            assert!(outcome.error.unwrap().message.contains("takes no `GET`"));
            assert_eq!(service.posts, 1);
            // A process that reaches the service picks the answer up.
            service.work(100);
            let mut host = Host::open(&store, "s", "second");
            host.resume(in_background("run", stream)).unwrap();
            let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
            assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1), "{status} {stream}");
        }
    }
}

#[test]
fn r27_an_abort_of_the_host_in_the_middle_of_a_stream_is_final() {
    let store = MemoryStore::default();
    let mut service = story();
    service.pace = 5;
    let mut host = Host::open(&store, "s", "h");
    host.start(in_background("run", true), "Go").unwrap();
    let outcome = drive(&mut host, &mut service, |_| Fate { events: Some(5), how: How::Aborts }).unwrap();
    assert_eq!((outcome.status, code_of(&outcome)), (RunStatus::Failed, ErrorCode::ModelError));
    assert_eq!((service.gets.len(), host.waits.len()), (0, 0));
    assert!(!outcome.text.is_empty() && STORY.starts_with(&*outcome.text.decode()));
    service.work(100);
    host.resume(in_background("run", true)).unwrap();
    let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
    assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1));
}
