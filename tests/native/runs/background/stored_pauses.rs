//! The pause before an answer is picked up again, where nothing is picked up (R27).

use super::failures::code_of;
use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn r18_r27_a_pause_before_a_get_permits_no_request() {
    for has_passed in [false, true] {
        let store = MemoryStore::default();
        let mut service = BackgroundService::new(Service::new(|_| Ok(STORY.into())).with_conversation("conv_1"));
        let setup = || owned("run", true, StateOwner::Conversation { id: "conv_1".into() });
        let mut host = Host::open(&store, "s", "first");
        host.start(setup(), "Go").unwrap();
        assert!(drive(&mut host, &mut service, |_| Fate { events: Some(1), how: How::Kill }).is_none());
        let mut host = Host::open(&store, "s", "second");
        host.resume(setup()).unwrap();
        let mut calls = 0;
        let killed = drive(&mut host, &mut service, |_| {
            calls += 1;
            Fate { events: None, how: if calls > 1 { How::Kill } else { How::Unreachable } }
        });
        assert!(killed.is_none());
        // The address has changed, so nothing is picked up there; the conversation may have the request.
        let mut elsewhere = setup();
        elsewhere.provider.url = "https://other.example/v1/responses".into();
        let mut host = Host::open(&store, "s", "third");
        if has_passed {
            host.clock.advance(10_000);
        }
        host.resume(elsewhere).unwrap();
        let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
        assert_eq!((outcome.status, code_of(&outcome)), (RunStatus::Failed, ErrorCode::ReplayUnsafe), "{has_passed}");
        assert_eq!((service.posts, host.waits.len()), (1, 0));
    }
}
