//! Answers in the background that are larger than a response may be (R62).

use super::failures::code_of;
use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn r18_r62_an_answer_that_is_too_large_is_kept_for_a_resume_with_a_higher_limit() {
    for stream in [false, true] {
        let store = MemoryStore::default();
        let mut service = story();
        service.pace = 100;
        let mut host = Host::open(&store, "s", "h");
        let limited = RunSetup { max_response_bytes: 600, ..in_background("run", stream) };
        host.start(limited.clone(), "Go").unwrap();
        let outcome = drive(&mut host, &mut service, |service| {
            // The whole answer has all its text when it is polled for.
            service.earlier_items = vec![json!({ "type": "reasoning", "id": "rs_1", "summary": ["x".repeat(600)] })];
            service.pace = if stream { 100 } else { 0 };
            if service.is_picking_up {
                service.work(100);
            }
            ALL
        })
        .unwrap();
        assert_eq!((outcome.status, code_of(&outcome)), (RunStatus::Failed, ErrorCode::TooLarge), "{stream}");
        // Another try is free.
        host.resume(limited).unwrap();
        let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
        assert_eq!((outcome.status, code_of(&outcome)), (RunStatus::Failed, ErrorCode::TooLarge), "{stream}");
        service.earlier_items.clear();
        host.resume(in_background("run", stream)).unwrap();
        let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
        assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1), "{stream}: {:?}", outcome.error);
    }
}

#[test]
fn r62_the_limit_of_a_response_is_that_of_each_connection() {
    let mut whole = story();
    whole.pace = 100;
    let body = br#"{"stream":true,"background":true,"input":[{"role":"user","content":"Go"}]}"#;
    let total: usize =
        whole.request("POST", "https://model.example/v1/responses", body).events.iter().map(Vec::len).sum();
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = Host::open(&store, "s", "h");
    let limit = total as u64 * 2 / 3;
    host.start(RunSetup { max_response_bytes: limit, ..in_background("run", true) }, "Go").unwrap();
    let outcome = drive(&mut host, &mut service, |service| {
        service.pace = 3;
        Fate { events: Some(3), how: How::Ends }
    })
    .unwrap();
    assert_eq!((outcome.status, text_of(&host).as_str()), (RunStatus::Finished, STORY), "{:?}", outcome.error);
}
