//! The id of an answer whose save failed is stored later (R18).

use super::*;
use crate::spy_store::{Fault, Spy};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn r18_the_id_of_an_answer_that_could_not_be_stored_is_stored_with_the_next_attempt() {
    for stream in [false, true] {
        for failures in 1..3 {
            let store = Spy::default();
            let mut service = story();
            service.pace = 2;
            let mut host = Host::open(&store, "s", "first");
            host.start(in_background("run", stream), "Go").unwrap();
            assert!(host.write());
            store.faults.replace(vec![Some(Fault::Refuses(ErrorCode::StoreError)); failures]);
            let mut calls = 0;
            let killed = drive(&mut host, &mut service, |_| {
                calls += 1;
                let how = if calls > 3 { How::Kill } else { How::Ends };
                Fate { events: Some(2), how }
            });
            assert!(killed.is_none());
            let text = "could not be stored";
            let is_warning =
                |event: &&RunEvent| matches!(event, RunEvent::Warning(found) if found.message.contains(text));
            assert_eq!(host.events.iter().filter(is_warning).count(), 1, "{stream} {failures}");
            service.pace = 100;
            let mut host = Host::open(&store, "s", "second");
            host.resume(in_background("run", stream)).unwrap();
            let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
            assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1), "{stream} {failures}");
        }
    }
}
