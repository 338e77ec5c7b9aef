//! R59: what goes to a service after a message was erased here.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::stateful_service::{Service, rounds};
use super::{ask, automatic, conversation, owned};
use rethread::render::Renderer;
use rethread::store::{Erasure, MemoryStore, erase_messages};

#[test]
fn r59_a_chain_of_responses_begins_anew_after_an_erasure_and_a_conversation_goes_on() {
    for owner in [automatic(), conversation()] {
        let is_chain = owner == automatic();
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = Service::new(rounds(0));
        if !is_chain {
            service = service.with_conversation("conv_1");
        }
        ask(&mut host, &mut service, owned("r1", owner.clone()), "Secret");
        ask(&mut host, &mut service, owned("r2", owner.clone()), "Two");
        let first = host.log.borrow().history.messages()[0].id.clone();
        let erasure = Erasure {
            operation: "erase",
            at: 1,
            owned_runs: &[],
            chosen_in: None,
            notice: None,
            has_compaction: |_| false,
        };
        block_on(erase_messages(&store, &host.log, &[first], &erasure)).unwrap();
        host.renderer = Renderer::default();
        ask(&mut host, &mut service, owned("r3", owner.clone()), "Three");
        let anew = ["assistant: done after 0", "user: Two", "assistant: done after 0", "user: Three"];
        assert_eq!(service.sent(2), if is_chain { &anew[..] } else { &anew[3..] });
        assert!(service.requests[2].get("previous_response_id").is_none());
        ask(&mut host, &mut service, owned("r4", owner.clone()), "Four");
        assert_eq!(service.sent(3), ["user: Four"]);
        assert_eq!(service.requests[3].get("previous_response_id").is_some(), is_chain);
    }
}
