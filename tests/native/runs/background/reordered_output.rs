//! A whole answer that has other items than the stream that broke off (R18, R20).

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn r18_r20_a_whole_answer_with_other_items_than_its_stream_is_stored_whole() {
    for at in 3..crate::background_service::EVENTS - 1 {
        let store = MemoryStore::default();
        let mut service = story();
        service.earlier_items = vec![json!({ "type": "reasoning", "id": "rs_1", "summary": [] })];
        let mut host = Host::open(&store, "s", "h");
        host.start(in_background("run", true), "Go").unwrap();
        let mut calls = 0;
        let outcome = drive(&mut host, &mut service, |service| {
            calls += 1;
            service.pace = if calls == 1 { at - 1 } else { 100 };
            if calls > 1 {
                service.grow_old();
            }
            ALL
        })
        .unwrap();
        assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1), "{at}: {:?}", outcome.error);
        assert_eq!((outcome.text.decode().as_ref(), text_of(&host).as_str()), (STORY, STORY), "{at}");
        let shown = answers(&mut host);
        assert_eq!(shown.last(), Some(&format!("assistant: {STORY}")), "{at}");
    }
}
