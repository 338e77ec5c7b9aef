//! R72: what a request repeats while others append to the history, with `changes: "at_cuts"`.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::cuts::{MINUTE, append, ask, at_cuts, cuts, imported, open_at, prefixes};
use super::prefixes::{check_extends, open};
use super::scripted_host::*;
use rethread::clock::Clock;
use rethread::finding::PrefixChange;
use rethread::replay::{Cut, Reducer};
use rethread::store::MemoryStore;
use serde_json::json;
use std::cell::Cell;
use std::rc::Rc;

#[test]
fn r72_what_was_never_sent_is_judged_when_it_is_sent_first_and_then_stays() {
    for dialect in [CHAT, CLAUDE] {
        let store = MemoryStore::default();
        let mut host = open_at(&store, "h", 1_000_000);
        ask(&mut host, at_cuts("one", dialect), 1);
        let now = host.clock.now();
        append(&host, CHAT, &imported(1), now - 2 * MINUTE);
        append(&host, CHAT, &imported(2), now);
        for turn in 0..3 {
            host.clock.advance(2 * MINUTE / 3);
            ask(&mut host, at_cuts(&format!("two{turn}"), dialect), 1);
        }
        assert!(cuts(&host.events).iter().all(Option::is_none));
        host.sent.windows(2).for_each(|pair| check_extends(&pair[0], &pair[1], dialect));
        let body = String::from_utf8(host.sent.last().unwrap().clone()).unwrap();
        assert_eq!(body.matches("imported result").count(), 1, "{body}");
        assert!(body.contains("call_import2") && !body.contains("call_import1"), "{body}");
    }
}

#[test]
fn r72_a_result_that_comes_after_its_call_was_sent_as_interrupted_is_sent_at_once() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    ask(&mut host, at_cuts("one", CHAT), 1);
    let mut call = imported(1);
    let result = call["messages"].as_array_mut().unwrap().remove(2);
    let now = host.clock.now();
    append(&host, CHAT, &call, now);
    ask(&mut host, at_cuts("two", CHAT), 1);
    assert!(String::from_utf8_lossy(&host.sent[2]).contains("Interrupted"));
    append(&host, CHAT, &json!({"messages": [result]}), now);
    host.events.clear();
    ask(&mut host, at_cuts("three", CHAT), 1);
    assert!(String::from_utf8_lossy(host.sent.last().unwrap()).contains("imported result"));
    assert_eq!(cuts(&host.events), [None, None]);
    assert_eq!(prefixes(&host.events)[0].changed_by, Some(PrefixChange::Branch));
}

#[test]
fn r72_a_result_that_a_summary_does_not_contain_is_a_cut() {
    let (store, asked) = (MemoryStore::default(), Rc::new(Cell::new(0)));
    let mut host = open(&store, "h", 1_000_000, &asked);
    let mut call = imported(1);
    let result = call["messages"].as_array_mut().unwrap().remove(2);
    append(&host, CHAT, &call, 1_000_000);
    let setup = |id: &str| {
        let mut setup = at_cuts(id, CHAT);
        setup.policy.call.reducers =
            Some(vec![Reducer::Summarize { target: 1, threshold: 0, summarize: super::prefixes::callback(2) }]);
        setup
    };
    ask(&mut host, setup("one"), 1);
    assert!(String::from_utf8_lossy(&host.sent[0]).contains("Summary 1."));
    host.events.clear();
    append(&host, CHAT, &json!({"messages": [result]}), 1_000_000);
    ask(&mut host, setup("two"), 1);
    assert_eq!(cuts(&host.events)[0], Some(Cut::History));
}
