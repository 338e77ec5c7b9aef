//! R72: the last request of a session, in its head and in the process that has sent it.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::cut_histories::render;
use super::cuts::{MINUTE, append, ask, at_cuts, cuts, open_at, results_in};
use super::prefixes::{callback, check_extends};
use super::scripted_host::*;
use rethread::clock::Clock;
use rethread::json::Json;
use rethread::replay::{Cut, Reducer};
use rethread::run::PersistReply;
use rethread::session_head::SessionHead;
use rethread::store::MemoryStore;
use rethread::tool::Window;
use serde_json::json;

#[test]
fn r72_a_request_in_which_all_may_change_ends_what_stays() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    ask(&mut host, at_cuts("one", CHAT), 1);
    host.clock.advance(2 * MINUTE);
    let mut always = at_cuts("two", CHAT);
    always.policy.call.changes = None;
    ask(&mut host, always, 1);
    assert_eq!(host.log.borrow().head.last_request(), None);
    host.clock.advance(2 * MINUTE);
    ask(&mut host, at_cuts("three", CHAT), 1);
    // What the second did not send does not come back.
    assert_eq!(results_in(host.sent.last().unwrap()), 2);
}

#[test]
fn r72_a_cleared_session_keeps_nothing_of_what_was_sent() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    ask(&mut host, at_cuts("one", CHAT), 1);
    assert!(host.log.borrow().head.last_request().is_some());
    block_on(rethread::store::clear_session(&store, &host.log, ("clear", 2_000_000), (&[], None))).unwrap();
    assert_eq!(host.log.borrow().head.last_request(), None);
    host.renderer.clear();
    host.events.clear();
    ask(&mut host, at_cuts("two", CHAT), 1);
    assert_eq!(cuts(&host.events), [None, None]);
    assert_eq!(results_in(&host.sent[2]), 0);
}

#[test]
fn r72_what_is_stored_of_a_long_chat_is_small() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    for turn in 0..40 {
        ask(&mut host, at_cuts(&format!("run{turn}"), CHAT), 2);
        host.clock.advance(if turn % 10 == 9 { 6 * MINUTE } else { MINUTE });
    }
    let size = host.log.borrow().head.last_request().unwrap().len();
    assert!(size < 400, "{size} bytes");
}

#[test]
fn r72_more_than_the_head_may_have_stays_in_this_process_and_another_one_begins_anew() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    let rounds = (0..1_500).flat_map(|at| {
        let ids = [format!("call_{at}a"), format!("call_{at}b")];
        let call =
            |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "imported result"});
        [
            json!({"role": "user", "content": "Look."}),
            json!({"role": "assistant", "content": null, "tool_calls": [call(&ids[0], "look"), call(&ids[1], "find")]}),
            result(&ids[0]),
            result(&ids[1]),
            json!({"role": "assistant", "content": "Seen."}),
        ]
    });
    let body = json!({"messages": rounds.collect::<Vec<_>>()});
    append(&host, CHAT, &body, 1_000_000 - 2 * MINUTE);
    let setup = |id: &str| {
        let mut setup = at_cuts(id, CHAT);
        setup.policy.call.tool_freshness = [("find".to_owned(), Window::Always)].into();
        setup
    };
    for turn in 0..2 {
        ask(&mut host, setup(&format!("run{turn}")), 1);
        host.clock.advance(2 * MINUTE);
    }
    assert_eq!(String::from_utf8_lossy(&host.sent[0]).matches("imported result").count(), 1_500);
    check_extends(&host.sent[1], &host.sent[2], CHAT);
    let size = host.log.borrow().head.last_request().unwrap().len();
    assert!(size < 200, "{size} bytes");
    let mut next = open_at(&store, "h2", host.clock.now());
    ask(&mut next, setup("next"), 1);
    assert_eq!(results_in(&next.sent[0]), 2, "the stale ones of the runs are dropped");
    assert_eq!(cuts(&next.events), [Some(Cut::NotStored), None]);
    // Another cut has precedence, as everywhere.
    let mut other = setup("other");
    other.provider.params = Json::parse(r#"{"model":"other"}"#).unwrap();
    let mut next = open_at(&store, "h3", host.clock.now());
    ask(&mut next, other, 1);
    assert_eq!(cuts(&next.events), [Some(Cut::Model), None]);
}

#[test]
fn r72_what_persist_may_keep_from_the_store_is_decided_anew_and_named() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    let setup = |id: &str| {
        let mut setup = at_cuts(id, CHAT);
        setup.persist.insert("look".into(), callback(9));
        setup.policy.call.reducers = Some(vec![Reducer::Custom { reduce: callback(3) }]);
        setup
    };
    host.persist = Box::new(|_| PersistReply::Replaced { arguments: None, result: None });
    // The reducer adds a message, which is stored nowhere else.
    ask(&mut host, setup("one"), 1);
    host.clock.advance(2 * MINUTE);
    host.events.clear();
    ask(&mut host, setup("two"), 1);
    assert_eq!(cuts(&host.events)[0], Some(Cut::NotStored));
    assert_eq!(results_in(host.sent.last().unwrap()), 2);
}

#[test]
fn r72_the_newest_request_is_the_one_that_was_stored_last_whatever_the_clocks_say() {
    let store = MemoryStore::default();
    let mut ahead = open_at(&store, "ahead", 1_000_000 + 2 * MINUTE);
    ask(&mut ahead, at_cuts("one", CHAT), 1);
    let mut other = open_at(&store, "other", 1_000_000);
    ask(&mut other, at_cuts("two", CHAT), 1);
    ahead.refresh();
    ask(&mut ahead, at_cuts("three", CHAT), 1);
    check_extends(&other.sent[1], &ahead.sent[2], CHAT);
    assert!(cuts(&ahead.events).iter().all(Option::is_none));
    // Of its own newest request it knows more than the store has: why the rest is left out.
    let stored = ahead.log.borrow().head.last_request().map(<[u8]>::to_vec);
    let last = ahead.renderer.last_request(stored.as_deref()).unwrap();
    assert_eq!(last.to_bytes(), stored);
}

#[test]
fn r72_a_newer_request_stays_the_last_one_while_an_earlier_one_is_being_stored() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    ask(&mut host, at_cuts("one", CHAT), 1);
    let head = host.log.borrow().head.last_request().map(<[u8]>::to_vec);
    render(&mut host, &at_cuts("rendered", CHAT), &json!([]));
    let earlier = host.renderer.unsaved_last_request(head.as_deref()).unwrap();
    let mut two = at_cuts("rendered", CHAT);
    two.instructions = Some("Say more.".into());
    render(&mut host, &two, &json!([]));
    let newer = host.renderer.unsaved_last_request(head.as_deref()).unwrap();
    assert_ne!(newer.to_bytes(), earlier.to_bytes());
    host.renderer.on_last_request_saved(&earlier);
    let stored = earlier.to_bytes();
    assert_eq!(host.renderer.unsaved_last_request(stored.as_deref()), Some(newer.clone()));
    assert_eq!(host.renderer.last_request(stored.as_deref()), Some(newer));
}

#[test]
fn r72_a_request_is_not_stored_over_one_of_another_process_that_it_did_not_follow() {
    let mut head = SessionHead::new("s", 1);
    head.follow_last_request(None, Some(b"one"));
    head.follow_last_request(None, Some(b"elsewhere"));
    assert_eq!(head.last_request(), Some(&b"one"[..]));
    head.follow_last_request(Some(b"one"), None);
    assert_eq!(head.last_request(), None);
}

#[test]
fn r72_a_request_that_another_process_has_followed_is_not_written_over_the_newer_one() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    ask(&mut host, at_cuts("one", CHAT), 1);
    render(&mut host, &at_cuts("rendered", CHAT), &json!([]));
    let head = |host: &Host<'_>| host.log.borrow().head.last_request().map(<[u8]>::to_vec);
    assert!(host.renderer.unsaved_last_request(head(&host).as_deref()).is_some());
    let mut other = open_at(&store, "other", 1_000_000);
    ask(&mut other, at_cuts("two", CHAT), 1);
    host.refresh();
    assert_eq!(host.renderer.unsaved_last_request(head(&host).as_deref()), None);
    // The other one ends what stays.
    let mut always = at_cuts("three", CHAT);
    always.policy.call.changes = None;
    ask(&mut other, always, 1);
    host.refresh();
    assert_eq!((head(&host), host.renderer.last_request(None)), (None, None));
}
