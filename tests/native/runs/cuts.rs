//! R72: with `changes: "at_cuts"` what was sent stays in the requests of a session until a cut, whatever the clock,
//! kills and processes do.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::prefixes::{check_extends, list_of, open, say};
use super::scripted_host::*;
use super::snapshots::MODES;
use rethread::clock::Clock;
use rethread::finding::{Finding, PrefixChange};
use rethread::history::{Coverage, JoinBase, Origin, StoredSummary, join};
use rethread::id::IdSource;
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::provider::decode_body;
use rethread::render::PrefixReuse;
use rethread::replay::{Citations, Cut, PolicyLayer, Reducer, ReplayChanges};
use rethread::run::{Handoff, OnStop, RunEvent, RunSetup, RunStatus};
use rethread::store::{Change, MemoryStore, commit};
use rethread::tool::Window;
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;

pub const MINUTE: u64 = 60_000;

/// A setup whose results are fresh for a minute.
pub fn at_cuts(id: &str, dialect: Dialect) -> RunSetup {
    let mut setup = setup(id, dialect, true);
    setup.policy.call = PolicyLayer {
        freshness: Some(Window::Millis(MINUTE)),
        changes: Some(ReplayChanges::AtCuts),
        ..PolicyLayer::default()
    };
    setup
}

pub fn open_at<'s>(store: &'s MemoryStore, name: &str, now: u64) -> Host<'s> {
    open(store, name, now, &Rc::default())
}

/// What each request says of the one before.
pub fn prefixes(events: &[RunEvent]) -> Vec<PrefixReuse> {
    let prefix = |event: &RunEvent| match event {
        RunEvent::ModelCalled { prefix, .. } => Some(*prefix),
        _ => None,
    };
    events.iter().filter_map(prefix).collect()
}

pub fn cuts(events: &[RunEvent]) -> Vec<Option<Cut>> {
    prefixes(events).iter().map(|prefix| prefix.cut).collect()
}

pub fn ask(host: &mut Host<'_>, setup: RunSetup, rounds: usize) -> Vec<Finding> {
    let dialect = setup.provider.dialect;
    let outcome = host.ask(setup, "Go", |body| say(body, dialect, rounds));
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    outcome.report
}

pub fn results_in(body: &[u8]) -> usize {
    String::from_utf8_lossy(body).matches("a longer text").count()
}

/// Appends a body, as another tab does.
pub fn append(host: &Host<'_>, dialect: Dialect, body: &Value, at: u64) {
    append_of(host, dialect, body, Origin { at, ..Origin::default() });
}

/// As [`append`], with a source.
pub fn append_of(host: &Host<'_>, dialect: Dialect, body: &Value, origin: Origin) {
    let body = Json::parse(&body.to_string()).unwrap();
    let items = decode_body(dialect, body.view()).unwrap();
    let at = origin.at;
    let joined = join(JoinBase::history(&host.log.borrow().history), items, &origin, &host.ids);
    let operation = format!("append.{}", host.ids.new_id());
    let change = Change { operation, entries: joined.entries, at, ..Change::default() };
    block_on(commit(host.store, &host.log, &change)).unwrap();
}

pub fn imported(number: usize) -> Value {
    let id = format!("call_import{number}");
    json!({"messages": [
        {"role": "user", "content": "Imported."},
        {"role": "assistant", "content": null, "tool_calls":
            [{"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": id, "content": "imported result"},
        {"role": "assistant", "content": "Seen."},
    ]})
}

#[test]
fn r72_what_was_sent_stays_while_windows_pass_until_the_session_is_idle() {
    // The scripted model has no form of these.
    let unscripted = [Dialect::Bedrock, Dialect::MistralConversations];
    for dialect in Dialect::ALL.into_iter().filter(|dialect| !unscripted.contains(dialect)) {
        for persistence in MODES {
            let store = MemoryStore::default();
            let mut host = open_at(&store, "h", 1_000_000);
            let setup = |id: &str| RunSetup { persistence, ..at_cuts(id, dialect) };
            for turn in 0..4 {
                ask(&mut host, setup(&format!("run{turn}")), 2);
                // Longer than the window, shorter than the life of the cache.
                host.clock.advance(4 * MINUTE);
                let now = host.clock.now();
                let (sent, events) = (std::mem::take(&mut host.sent), std::mem::take(&mut host.events));
                // Another process has the next turn.
                host = open_at(&store, &format!("h{turn}"), now);
                (host.sent, host.events) = (sent, events);
            }
            for pair in host.sent.windows(2) {
                check_extends(&pair[0], &pair[1], dialect);
            }
            assert!(cuts(&host.events).iter().all(Option::is_none), "{dialect:?}");
            assert_eq!(results_in(host.sent.last().unwrap()), 12, "{dialect:?}");

            host.clock.advance(5 * MINUTE);
            host.events.clear();
            ask(&mut host, setup("late"), 1);
            assert_eq!(cuts(&host.events), [Some(Cut::Idle), None], "{dialect:?}");
            // All are stale, but those of its own round.
            assert_eq!(results_in(host.sent.last().unwrap()), 2, "{dialect:?}");
        }
    }
}

#[test]
fn r72_each_kind_of_cut_drops_what_is_stale_and_is_named() {
    type Change = fn(&mut RunSetup);
    let cases: [(Cut, Option<PrefixChange>, Change); 4] = [
        (Cut::Model, Some(PrefixChange::Model), |setup| {
            setup.provider.params = Json::parse(r#"{"model":"other"}"#).unwrap();
        }),
        (Cut::Provider, None, |setup| setup.provider.url = "https://other.example/v1".into()),
        (Cut::Instructions, Some(PrefixChange::Instructions), |setup| setup.instructions = Some("Be long.".into())),
        (Cut::Tools, Some(PrefixChange::Tools), |setup| setup.tools.truncate(1)),
    ];
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        for (cut, changed_by, change) in &cases {
            let store = MemoryStore::default();
            let mut host = open_at(&store, "h", 1_000_000);
            ask(&mut host, at_cuts("one", dialect), 2);
            host.clock.advance(2 * MINUTE);
            ask(&mut host, at_cuts("two", dialect), 1);
            assert_eq!(results_in(host.sent.last().unwrap()), 5);
            host.events.clear();
            host.clock.advance(2 * MINUTE);
            let mut other = at_cuts("three", dialect);
            change(&mut other);
            let report = ask(&mut host, other.clone(), 1);
            assert!(report.iter().any(|finding| finding.code.as_str() == "stale"), "{report:?}");
            let first = prefixes(&host.events)[0];
            assert_eq!(first.cut, Some(*cut), "{dialect:?}");
            assert!(changed_by.is_none_or(|change| first.changed_by == Some(change)), "{dialect:?} {first:?}");
            assert_eq!(results_in(host.sent.last().unwrap()), 2, "{dialect:?} {cut:?}");
            // From there on it stays again.
            host.clock.advance(2 * MINUTE);
            other.id = "four".into();
            ask(&mut host, other, 1);
            let count = host.sent.len();
            check_extends(&host.sent[count - 3], &host.sent[count - 2], dialect);
            assert_eq!(results_in(host.sent.last().unwrap()), 4, "{dialect:?} {cut:?}");
        }
    }
}

#[test]
fn r72_a_compaction_is_a_cut() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    ask(&mut host, at_cuts("one", CHAT), 2);
    ask(&mut host, at_cuts("two", CHAT), 2);
    let coverage: Coverage = host.log.borrow().history.coverage(4).unwrap();
    let change = Change {
        operation: "compact".into(),
        at: host.clock.now(),
        summaries: vec![StoredSummary::compaction(coverage, "They looked.", None)],
        ..Change::default()
    };
    block_on(commit(host.store, &host.log, &change)).unwrap();
    host.events.clear();
    host.clock.advance(2 * MINUTE);
    ask(&mut host, at_cuts("three", CHAT), 1);
    let first = prefixes(&host.events)[0];
    assert_eq!((first.cut, first.changed_by), (Some(Cut::Compaction), Some(PrefixChange::Compaction)));
    // The summary is in the head by its name only, and stays.
    let size = host.log.borrow().head.last_request().unwrap().len();
    assert!(size < 400, "{size} bytes");
    let now = host.clock.now() + 2 * MINUTE;
    let mut next = open_at(&store, "h2", now);
    ask(&mut next, at_cuts("four", CHAT), 1);
    check_extends(host.sent.last().unwrap(), &next.sent[0], CHAT);
    assert_eq!(cuts(&next.events), [None, None]);
}

#[test]
fn r72_a_budget_forces_a_cut_and_leaves_room_for_the_next_requests() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    for turn in 0..30 {
        let mut setup = at_cuts(&format!("run{turn}"), CHAT);
        setup.policy.call.freshness = Some(Window::Always);
        setup.policy.call.reducers = Some(vec![Reducer::TokenBudget { tokens: 1_500, count: None }]);
        ask(&mut host, setup, 2);
        host.clock.advance(MINUTE);
    }
    let cuts = cuts(&host.events);
    let count = cuts.iter().filter(|cut| **cut == Some(Cut::Budget)).count();
    assert!((2..=15).contains(&count), "{count} cuts in {} requests", cuts.len());
    for (at, pair) in host.sent.windows(2).enumerate() {
        if cuts[at + 1].is_none() {
            check_extends(&pair[0], &pair[1], CHAT);
        }
    }
    let longest = host.sent.iter().map(Vec::len).max().unwrap();
    assert!(longest < 14_000, "the budget holds: {longest}");
}

#[test]
fn r72_a_budget_that_the_first_request_of_a_run_outgrows_is_a_cut() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    let question = "Why? ".repeat(100);
    for turn in 0..24 {
        let mut setup = at_cuts(&format!("run{turn}"), CHAT);
        setup.policy.call.reducers = Some(vec![Reducer::TokenBudget { tokens: 1_500, count: None }]);
        let outcome = host.ask(setup, &question, |_| Answer::Say(text("Because.")));
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    }
    let cuts = cuts(&host.events);
    assert!(cuts.iter().filter(|cut| **cut == Some(Cut::Budget)).count() >= 2, "{cuts:?}");
    for (at, pair) in host.sent.windows(2).enumerate() {
        if cuts[at + 1].is_none() {
            check_extends(&pair[0], &pair[1], CHAT);
        }
    }
}

#[test]
fn r72_what_a_run_dropped_of_its_own_turn_does_not_come_back() {
    let mut extended = 0;
    for rounds in 12..20 {
        let store = MemoryStore::default();
        let mut host = open_at(&store, "h", 1_000_000);
        let setup = |id: &str| {
            let mut setup = at_cuts(id, CHAT);
            setup.max_turns = 25;
            setup.policy.call.freshness = Some(Window::Always);
            setup.policy.call.reducers = Some(vec![Reducer::TokenBudget { tokens: 300, count: None }]);
            setup
        };
        let mut round = 0;
        host.ask(setup("one"), "Go", |_| {
            round += 1;
            let id = format!("call_{round}");
            Answer::Say(if round <= rounds { calls(&[(&id, "look", "{}")]) } else { text("Done.") })
        });
        assert!(cuts(&host.events).contains(&Some(Cut::Budget)), "{rounds} rounds outgrow the budget");
        host.events.clear();
        ask(&mut host, setup("two"), 0);
        if cuts(&host.events)[0].is_none() {
            let count = host.sent.len();
            check_extends(&host.sent[count - 2], &host.sent[count - 1], CHAT);
            extended += 1;
        }
    }
    assert!(extended >= 4, "{extended} of 8: a cut leaves room for the next requests");
}

#[test]
fn r72_each_process_repeats_the_newest_request_of_all() {
    let store = MemoryStore::default();
    let mut hosts = ["a", "b"].map(|name| open_at(&store, name, 1_000_000));
    let mut last: Option<Vec<u8>> = None;
    for turn in 0..6 {
        let host = &mut hosts[turn % 2];
        host.refresh();
        ask(host, at_cuts(&format!("run{turn}"), CHAT), 1);
        let [.., first, second] = host.sent.as_slice() else { panic!("no requests") };
        if let Some(last) = &last {
            check_extends(last, first, CHAT);
        }
        last = Some(second.clone());
        hosts.iter_mut().for_each(|host| host.clock.advance(2 * MINUTE));
    }
    assert_eq!(results_in(&last.unwrap()), 12);
}

#[test]
fn r72_uncited_sources_of_what_was_never_sent_are_left_out() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    let cited = |id: &str| {
        let mut setup = at_cuts(id, CHAT);
        setup.policy.call.citations = Some(Citations::Replay);
        setup
    };
    ask(&mut host, cited("one"), 0);
    let mut turn = imported(1);
    turn["messages"][2]["content"] =
        json!(r#"[{"source_number":7,"content":"the seventh"},{"source_number":8,"content":"the eighth"}]"#);
    turn["messages"][3]["content"] = json!("It is [source7].");
    let now = host.clock.now();
    append(&host, CHAT, &turn, now);
    for id in ["two", "three"] {
        ask(&mut host, cited(id), 0);
        let body = String::from_utf8(host.sent.last().unwrap().clone()).unwrap();
        assert!(body.contains("the seventh") && !body.contains("the eighth"), "{body}");
    }
    assert!(cuts(&host.events).iter().all(Option::is_none));
}

#[test]
fn r72_what_an_agent_was_shown_in_a_handoff_is_not_repeated() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    ask(&mut host, at_cuts("one", CHAT), 1);
    // The provider's cache would not tell the agent's request from the run's.
    let RunSetup { instructions, tools, tool_settings, .. } = at_cuts("two", CHAT);
    let handoff =
        Handoff { name: "next".into(), instructions, tools, tool_settings, nests_history: true, ..Handoff::default() };
    host.handoff_of_tool = Box::new(move |name| (name == "find").then(|| handoff.clone()));
    let outcome = host.ask(at_cuts("two", CHAT), "Hand it over", |body| {
        if body.to_string().contains("For context") { Answer::Say(text("Mine.")) } else { say(body, CHAT, 1) }
    });
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    assert!(String::from_utf8_lossy(host.sent.last().unwrap()).contains("For context"));
    host.handoff_of_tool = Box::new(|_| None);
    ask(&mut host, at_cuts("three", CHAT), 0);
    let body = String::from_utf8(host.sent.last().unwrap().clone()).unwrap();
    assert!(!body.contains("For context") && body.contains("Hand it over"), "{body}");
}

#[test]
fn r72_a_turn_that_was_stored_while_a_run_was_under_way_is_sent_in_its_place() {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    ask(&mut host, at_cuts("one", CHAT), 0);
    host.start(at_cuts("two", CHAT), "Second").unwrap();
    assert!(host.drive(|_| Answer::Hang).is_none());
    let now = host.clock.now();
    append(&open_at(&store, "other", now), CHAT, &imported(1), now);
    host.refresh();
    assert_eq!(host.drive(|body| say(body, CHAT, 0)).unwrap().status, RunStatus::Finished);
    host.events.clear();
    ask(&mut host, at_cuts("three", CHAT), 0);
    let body = String::from_utf8(host.sent.last().unwrap().clone()).unwrap();
    let place = |text: &str| body.find(text).unwrap_or_else(|| panic!("{text}: {body}"));
    assert!(place("Imported.") < place("Second"), "as in history: {body}");
    let first = prefixes(&host.events)[0];
    assert_eq!((first.cut, first.changed_by), (None, Some(PrefixChange::Branch)));
}

#[test]
fn r72_reducers_and_citations_apply_at_cuts_and_are_asked_there_only() {
    let (store, asked) = (MemoryStore::default(), Rc::new(Cell::new(0)));
    let setup = |id: &str| {
        let mut setup = at_cuts(id, CHAT);
        setup.policy.call.freshness = Some(Window::Always);
        setup.policy.call.citations = Some(Citations::Replay);
        setup.policy.call.reducers = Some(vec![Reducer::Custom { reduce: super::prefixes::callback(3) }]);
        setup
    };
    let mut sent: Vec<Vec<u8>> = Vec::new();
    for turn in 0..3 {
        let mut host = open(&store, &format!("h{turn}"), 1_000_000 + turn * 2 * MINUTE, &asked);
        ask(&mut host, setup(&format!("run{turn}")), 1);
        sent.append(&mut host.sent);
    }
    sent.windows(2).for_each(|pair| check_extends(&pair[0], &pair[1], CHAT));
    assert_eq!(asked.get(), 1, "the reducer is asked for the first request");
    let mut host = open(&store, "late", 1_000_000 + 30 * MINUTE, &asked);
    ask(&mut host, setup("late"), 1);
    assert_eq!(asked.get(), 2);
    let body = String::from_utf8(host.sent[0].clone()).unwrap();
    assert!(body.contains("Note 2.") && !body.contains("Note 1."), "{body}");
    // The answers cite the first source.
    assert_eq!(results_in(&host.sent[0]), 0, "{body}");
}

#[test]
fn r72_runs_that_fail_or_are_cancelled_leave_what_was_sent_before() {
    for on_stop in [OnStop::Discard, OnStop::Keep] {
        let store = MemoryStore::default();
        let mut host = open_at(&store, "h", 1_000_000);
        ask(&mut host, at_cuts("one", CHAT), 1);
        host.clock.advance(2 * MINUTE);
        let setup = RunSetup { on_stop, ..at_cuts("two", CHAT) };
        host.start(setup, "Stop").unwrap();
        assert!(host.drive(|body| if rounds_in(body) == 0 { say(body, CHAT, 1) } else { Answer::Hang }).is_none());
        assert_eq!(host.cancel().unwrap().status, RunStatus::Cancelled);
        host.clock.advance(2 * MINUTE);
        let before = if on_stop == OnStop::Keep { host.sent.last().unwrap().clone() } else { host.sent[1].clone() };
        ask(&mut host, at_cuts("three", CHAT), 1);
        check_extends(&before, &host.sent[host.sent.len() - 2], CHAT);
        assert!(cuts(&host.events).iter().all(Option::is_none), "{:?}", cuts(&host.events));
    }
}

#[test]
fn r72_a_provider_that_caches_for_longer_is_asked_for_it_by_parameters() {
    let long = [
        (CLAUDE, r#"{"model":"m","max_tokens":9,"cache_control":{"type":"ephemeral","ttl":"1h"}}"#),
        (CHAT, r#"{"model":"m","prompt_cache_retention":"24h"}"#),
        (RESPONSES, r#"{"model":"m","prompt_cache_retention":"24h"}"#),
    ];
    for (dialect, params) in long {
        let store = MemoryStore::default();
        let mut host = open_at(&store, "h", 1_000_000);
        for turn in 0..3 {
            let mut setup = at_cuts(&format!("run{turn}"), dialect);
            setup.provider.params = Json::parse(params).unwrap();
            ask(&mut host, setup, 1);
            host.clock.advance(30 * MINUTE);
        }
        assert!(cuts(&host.events).iter().all(Option::is_none), "{dialect:?}");
        host.sent.windows(2).for_each(|pair| check_extends(&pair[0], &pair[1], dialect));
        // What counts is what the last request asked for, not the next one, also to another process.
        ask(&mut host, at_cuts("short", dialect), 1);
        assert_eq!(cuts(&host.events).last().unwrap(), &None);
        let mut other = open_at(&store, "other", 1_000_000 + 120 * MINUTE);
        let mut setup = at_cuts("long", dialect);
        setup.provider.params = Json::parse(params).unwrap();
        ask(&mut other, setup, 1);
        assert!(cuts(&other.events).contains(&Some(Cut::Idle)), "{:?}", cuts(&other.events));
    }
}

/// Returns how many bytes of messages a chat sends in 30 turns, a question each two minutes and two rounds of calls a
/// turn, and how many of them repeat the request before.
fn bytes_of_a_long_chat(changes: ReplayChanges, (freshness, reducers): (Window, &[Reducer])) -> (usize, usize) {
    let store = MemoryStore::default();
    let mut host = open_at(&store, "h", 1_000_000);
    let result = json!("x".repeat(1_000)).to_string();
    host.tool = Box::new(move |_, _| (Json::parse(&result).unwrap(), false));
    for turn in 0..30 {
        let mut setup = setup(&format!("run{turn}"), CLAUDE, true);
        setup.policy.call.changes = Some(changes);
        setup.policy.call.freshness = Some(freshness);
        setup.policy.call.reducers = Some(reducers.to_vec());
        ask(&mut host, setup, 2);
        host.clock.advance(2 * MINUTE);
    }
    let reused = prefixes(&host.events).iter().map(|prefix| prefix.reused_bytes).sum();
    (host.sent.iter().map(|body| length_of(body, CLAUDE)).sum(), reused)
}

#[test]
fn r72_a_long_chat_with_tools_repeats_most_of_its_bytes() {
    let budget = [Reducer::TokenBudget { tokens: 6_000, count: None }];
    let cases: [(&str, (Window, &[Reducer])); 2] =
        [("five minutes", (Window::Millis(300_000), &[])), ("a budget", (Window::Always, &budget))];
    // With bytes of the cache at a tenth of the price.
    let price = |(sent, reused): (usize, usize)| sent - reused + reused / 10;
    let new = |(sent, reused): (usize, usize)| sent - reused;
    for (name, policy) in cases {
        let both = [ReplayChanges::Always, ReplayChanges::AtCuts].map(|changes| bytes_of_a_long_chat(changes, policy));
        for (changes, bytes) in ["always", "at_cuts"].into_iter().zip(both) {
            let repeated = bytes.1 * 100 / bytes.0;
            println!("{name}, {changes}: {} bytes, {repeated} % repeated, price {}", bytes.0, price(bytes));
        }
        let [always, at_cuts] = both;
        assert!(at_cuts.1 * 100 / at_cuts.0 > always.1 * 100 / always.0, "{name}");
        assert!(name != "a budget" || new(at_cuts) < new(always) && price(at_cuts) < price(always));
    }
}

/// The bytes of the messages of a body, each with the comma after it.
pub fn length_of(body: &[u8], dialect: Dialect) -> usize {
    let body = Json::parse(std::str::from_utf8(body).unwrap()).unwrap();
    body.view().get(list_of(dialect)).unwrap().items().map(|item| item.as_raw().len() + 1).sum()
}
