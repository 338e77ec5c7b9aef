//! The limit of a response's size (R62).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::WAYS;
use super::failures::goes_on;
use super::scripted_host::*;
use rethread::error::ErrorCode;
use rethread::run::{EffectReply, RunInput, RunSetup, RunStatus};
use rethread::store::MemoryStore;

#[test]
fn r62_a_response_above_its_limit_fails_the_run_while_it_arrives() {
    for (dialect, stream) in WAYS {
        for length in [None, Some("101")] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            host.start(RunSetup { max_response_bytes: 100, ..setup("run", dialect, stream) }, "Go").unwrap();
            host.write();
            let effect = host.run.as_ref().unwrap().effects()[0].id.clone();
            let headers = length.map(|length| ("content-length".to_owned(), length.to_owned())).into_iter().collect();
            host.reply(&effect, EffectReply::ResponseStarted { status: 200, headers }).unwrap();
            for _ in 0..10 {
                host.handle(RunInput::Bytes { effect: effect.clone(), bytes: vec![b' '; 20] }).unwrap();
            }
            assert!(host.run.as_ref().unwrap().effects().is_empty(), "the host may stop reading");
            host.write();
            let outcome = host.run.as_ref().unwrap().outcome();
            assert_eq!((outcome.status, outcome.error.unwrap().code), (RunStatus::Failed, ErrorCode::TooLarge));
            assert_eq!(host.pending()[0].failed.as_ref().unwrap().0, "too_large");
            assert!(host.waits.is_empty(), "the same request is not sent again");
            goes_on(&mut host, dialect);
        }
    }
}

#[test]
fn r62_a_response_of_exactly_its_limit_is_accepted() {
    let body = text("Fine.").body(CHAT);
    for (more, status) in [(0, RunStatus::Finished), (1, RunStatus::Failed)] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let limit = body.len() as u64 - more;
        host.start(RunSetup { max_response_bytes: limit, ..setup("run", CHAT, false) }, "Go").unwrap();
        host.write();
        let effect = host.run.as_ref().unwrap().effects()[0].id.clone();
        host.reply(&effect, EffectReply::Response { status: 200, headers: Vec::new(), body: body.clone() }).unwrap();
        host.write();
        assert_eq!(host.run.as_ref().unwrap().outcome().status, status);
    }
}
