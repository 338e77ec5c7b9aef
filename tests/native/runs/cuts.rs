//! R72: with `changes: "at_cuts"` what was sent stays in the requests of a session until a cut, whatever the clock, kills and processes do.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::prefixes::{a_reducer, check_extends, list_of, open, say};
use super::scripted_host::*;
use super::snapshots::MODES;
use proptest::prelude::*;
use rethread::clock::Clock;
use rethread::finding::{Finding, PrefixChange};
use rethread::history::{Coverage, JoinBase, Origin, StoredSummary, join};
use rethread::id::IdSource;
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::provider::decode_body;
use rethread::render::PrefixReuse;
use rethread::replay::{
    Citations, Cut, OnStale, PolicyLayer, QuestionKind, Reducer, ReducerReply, ReplayChanges, StaleUnit,
};
use rethread::run::{OnStop, Persistence, RunEvent, RunSetup, RunStatus};
use rethread::store::{Change, MemoryStore, commit};
use rethread::tool::Window;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const MINUTE: u64 = 60_000;

/// A setup whose results are fresh for a minute.
fn at_cuts(id: &str, dialect: Dialect) -> RunSetup {
    let mut setup = setup(id, dialect, true);
    setup.policy.call = PolicyLayer {
        freshness: Some(Window::Millis(MINUTE)),
        changes: Some(ReplayChanges::AtCuts),
        ..PolicyLayer::default()
    };
    setup
}

fn open_at<'s>(store: &'s MemoryStore, name: &str, now: u64) -> Host<'s> {
    open(store, name, now, &Rc::default())
}

/// What each request says of the one before.
fn prefixes(events: &[RunEvent]) -> Vec<PrefixReuse> {
    let prefix = |event: &RunEvent| match event {
        RunEvent::ModelCalled { prefix, .. } => Some(*prefix),
        _ => None,
    };
    events.iter().filter_map(prefix).collect()
}

fn cuts(events: &[RunEvent]) -> Vec<Option<Cut>> {
    prefixes(events).iter().map(|prefix| prefix.cut).collect()
}

fn ask(host: &mut Host<'_>, setup: RunSetup, rounds: usize) -> Vec<Finding> {
    let dialect = setup.provider.dialect;
    let outcome = host.ask(setup, "Go", |body| say(body, dialect, rounds));
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    outcome.report
}

fn results_in(body: &[u8]) -> usize {
    String::from_utf8_lossy(body).matches("a longer text").count()
}

/// Appends a body, as another tab does.
fn append(host: &Host<'_>, dialect: Dialect, body: &Value, at: u64) {
    let body = Json::parse(&body.to_string()).unwrap();
    let items = decode_body(dialect, body.view()).unwrap();
    let origin = Origin { at, ..Origin::default() };
    let joined = join(JoinBase::history(&host.log.borrow().history), items, &origin, &host.ids);
    let operation = format!("append.{}", host.ids.new_id());
    let change = Change { operation, entries: joined.entries, at, ..Change::default() };
    block_on(commit(host.store, &host.log, &change)).unwrap();
}

fn imported(number: usize) -> Value {
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
    for dialect in Dialect::ALL.iter().copied() {
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
    }
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
    assert_eq!(host.log.borrow().head.last_request(), None);
    let mut next = open_at(&store, "h2", host.clock.now());
    ask(&mut next, setup("next"), 1);
    assert_eq!(results_in(&next.sent[0]), 2, "the stale ones of the runs are dropped");
}

/// Returns how many bytes of messages a chat sends in 30 turns, a question each two minutes and two rounds of calls a turn, and how many of
/// them repeat the request before.
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

#[derive(Clone, Debug)]
enum Step {
    /// A turn with so many rounds.
    Turn(usize),
    /// So many milliseconds pass.
    Wait(u64),
    /// Another process has the session from now on.
    Reopen,
    /// The process dies in a turn after so many writes, and another one resumes it so many milliseconds later.
    Kill(usize, usize, u64),
    /// Another tab appends a turn whose result is so many milliseconds old.
    Append(u64),
    /// The requests are for the other model from now on.
    OtherModel,
    /// The requests have other instructions from now on.
    OtherInstructions,
}

fn a_step() -> impl Strategy<Value = Step> {
    let pause = || prop_oneof![3 => 0..30_000_u64, 3 => 50_000..290_000_u64, 1 => 310_000..2_000_000_u64];
    prop_oneof![
        6 => (0_usize..3).prop_map(Step::Turn),
        4 => pause().prop_map(Step::Wait),
        2 => Just(Step::Reopen),
        2 => (1_usize..3, 0_usize..6, pause()).prop_map(|(rounds, writes, ms)| Step::Kill(rounds, writes, ms)),
        2 => prop_oneof![Just(0_u64), Just(400_000)].prop_map(Step::Append),
        1 => Just(Step::OtherModel),
        1 => Just(Step::OtherInstructions),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    dialect: Dialect,
    persistence: Persistence,
    policy: PolicyLayer,
    steps: Vec<Step>,
}

fn a_case() -> impl Strategy<Value = Case> {
    let policy = (
        prop_oneof![1 => Just(Window::Millis(0)), 4 => Just(Window::Millis(MINUTE)), 1 => Just(Window::Always)],
        prop_oneof![Just(OnStale::Omit), Just(OnStale::Placeholder)],
        prop_oneof![Just(StaleUnit::Call), Just(StaleUnit::Round), Just(StaleUnit::Turn)],
        any::<bool>(),
        prop_oneof![
            3 => Just(Vec::new()),
            2 => proptest::collection::vec(a_reducer(), 1..3),
            1 => Just(vec![Reducer::TokenBudget { tokens: 500, count: None }]),
        ],
    );
    let policy = policy.prop_map(|(window, on_stale, unit, cites, reducers)| PolicyLayer {
        freshness: Some(window),
        on_stale: Some(on_stale),
        stale_unit: Some(unit),
        citations: cites.then_some(Citations::Replay),
        reducers: Some(reducers),
        changes: Some(ReplayChanges::AtCuts),
        ..PolicyLayer::default()
    });
    let steps = proptest::collection::vec(a_step(), 2..14);
    (0_usize..5, 0_usize..3, policy, steps).prop_map(|(dialect, mode, policy, steps)| Case {
        dialect: Dialect::ALL[dialect],
        persistence: MODES[mode],
        policy,
        steps,
    })
}

/// A chat that is played, with what its requests must be.
struct Play<'s> {
    case: Case,
    store: &'s MemoryStore,
    host: Host<'s>,
    /// The number of processes so far.
    processes: usize,
    turns: usize,
    model: &'static str,
    instructions: &'static str,
    /// The last request, its time, its model and its instructions.
    last: Option<(Vec<u8>, u64, &'static str, &'static str)>,
    /// What the next request of this process may be compared with by the renderer.
    is_compared: bool,
    /// When each result was made, by its number in the text.
    made: Rc<RefCell<Vec<u64>>>,
    now: Rc<Cell<u64>>,
}

impl<'s> Play<'s> {
    fn new(case: Case, store: &'s MemoryStore) -> Self {
        let host = open_at(store, "h0", 1_000_000);
        let mut play = Self {
            case,
            store,
            host,
            processes: 0,
            turns: 0,
            model: "m",
            instructions: "Be brief.",
            last: None,
            is_compared: false,
            made: Rc::default(),
            now: Rc::new(Cell::new(1_000_000)),
        };
        play.number_results();
        play
    }

    fn number_results(&mut self) {
        let (made, now) = (self.made.clone(), self.now.clone());
        self.host.tool = Box::new(move |_, _| {
            made.borrow_mut().push(now.get());
            let number = made.borrow().len() - 1;
            (Json::parse(&json!(format!("result-{number}-end")).to_string()).unwrap(), false)
        });
        self.host.reducer = Box::new(|question| match question {
            QuestionKind::Count(texts) => {
                ReducerReply::Counts(texts.iter().map(|text| text.len() as u64 / 4).collect())
            }
            QuestionKind::Summarize(_) => ReducerReply::Summary("They spoke.".into()),
            QuestionKind::Reduce(messages) => {
                let messages: Vec<Value> = serde_json::from_str(messages.as_str()).unwrap();
                let kept: Vec<Value> = messages.into_iter().skip(1).collect();
                ReducerReply::Messages(Json::parse(&json!(kept).to_string()).unwrap())
            }
        });
    }

    fn reopen(&mut self, pause: u64) {
        self.processes += 1;
        let now = self.host.clock.now() + pause;
        self.host = open_at(self.store, &format!("h{}", self.processes), now);
        self.number_results();
        self.is_compared = false;
    }

    fn setup(&self) -> RunSetup {
        let mut setup = setup(&format!("run{}", self.turns), self.case.dialect, true);
        setup.persistence = self.case.persistence;
        setup.provider.params = Json::parse(&json!({"model": self.model, "max_tokens": 9}).to_string()).unwrap();
        setup.instructions = Some(self.instructions.into());
        setup.policy.call = self.case.policy.clone();
        setup
    }

    fn step(&mut self, step: &Step) {
        let dialect = self.case.dialect;
        match *step {
            Step::Wait(ms) => self.host.clock.advance(ms),
            Step::Reopen => self.reopen(0),
            Step::OtherModel => self.model = if self.model == "m" { "n" } else { "m" },
            Step::OtherInstructions => self.instructions = "Be long.",
            Step::Append(age) => {
                self.turns += 1;
                append(&self.host, CHAT, &imported(self.turns), self.host.clock.now() - age);
            }
            Step::Turn(rounds) => {
                self.turns += 1;
                let began = self.host.clock.now();
                self.now.set(began);
                let setup = self.setup();
                ask(&mut self.host, setup, rounds);
                self.check(began);
            }
            Step::Kill(rounds, writes, pause) => {
                self.turns += 1;
                let began = self.host.clock.now();
                self.now.set(began);
                let setup = self.setup();
                self.host.start(setup.clone(), "Go").unwrap();
                self.host.writes_left = Some(writes);
                let outcome = self.host.drive(|body| say(body, dialect, rounds));
                let has_sent = !self.host.sent.is_empty();
                self.check(began);
                if !has_sent {
                    // The journal may have what was decided, but not why.
                    self.last = None;
                }
                self.reopen(pause);
                if outcome.is_none() && self.host.pending().iter().any(|entry| entry.id == setup.id) {
                    self.now.set(self.host.clock.now());
                    self.host.resume(setup).unwrap();
                    let outcome = self.host.drive(|body| say(body, dialect, rounds)).unwrap();
                    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
                    self.check(began);
                }
            }
        }
    }

    /// Checks the requests of a run that began then.
    fn check(&mut self, began: u64) {
        let now = self.host.clock.now();
        let prefixes = prefixes(&std::mem::take(&mut self.host.events));
        let sent = std::mem::take(&mut self.host.sent);
        // The last one may have been built and not sent.
        assert!(sent.len() <= prefixes.len());
        for (body, prefix) in sent.into_iter().zip(prefixes) {
            if let Some((last, at, model, instructions)) = self.last.take() {
                let is_same = model == self.model && instructions == self.instructions;
                match prefix.cut {
                    None => check_extends(&last, &body, self.case.dialect),
                    Some(Cut::Model) => assert_ne!(model, self.model),
                    Some(Cut::Instructions) => assert_ne!(instructions, self.instructions),
                    Some(Cut::Idle) => assert!(is_same && began > at + 300_000 - 1_000, "{began} {at}"),
                    Some(Cut::Budget) => assert!(has_budget(&self.case.policy)),
                    Some(cut) => panic!("{cut:?}"),
                }
                if prefix.cut.is_none() && self.is_compared {
                    assert_eq!(prefix.changed_by, None);
                    // Of a body that had to be repaired, as one that begins with an answer has, less is known.
                    let is_repaired = prefix.reused_bytes == 0 && self.has_custom_reducer();
                    assert!(is_repaired || prefix.reused_bytes == length_of(&last, self.case.dialect));
                }
                if prefix.cut.is_some_and(|cut| cut != Cut::Budget) {
                    self.check_fresh(&body, began);
                }
            }
            self.last = Some((body, now, self.model, self.instructions));
            self.is_compared = true;
        }
    }

    fn has_custom_reducer(&self) -> bool {
        self.case.policy.reducers.iter().flatten().any(|reducer| matches!(reducer, Reducer::Custom { .. }))
    }

    /// Checks that no result in a body is older than its window.
    fn check_fresh(&self, body: &[u8], began: u64) {
        let Some(Window::Millis(window)) = self.case.policy.freshness else { return };
        let body = String::from_utf8_lossy(body);
        for (number, at) in self.made.borrow().iter().enumerate() {
            let is_sent = body.contains(&format!("result-{number}-end"));
            assert!(!is_sent || began.saturating_sub(*at) <= window + 1_000, "result {number}: {body}");
        }
    }
}

fn has_budget(policy: &PolicyLayer) -> bool {
    policy.reducers.iter().flatten().any(|reducer| matches!(reducer, Reducer::TokenBudget { .. }))
}

/// The bytes of the messages of a body, each with the comma after it.
fn length_of(body: &[u8], dialect: Dialect) -> usize {
    let body = Json::parse(std::str::from_utf8(body).unwrap()).unwrap();
    body.view().get(list_of(dialect)).unwrap().items().map(|item| item.as_raw().len() + 1).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r72_each_request_of_a_session_extends_the_one_before_until_a_cut(case in a_case()) {
        let store = MemoryStore::default();
        let steps = case.steps.clone();
        let mut play = Play::new(case, &store);
        for step in &steps {
            play.step(step);
        }
    }
}
