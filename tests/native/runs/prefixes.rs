//! R71: each request of a run extends the one before, whatever the clock, other writers and kills do meanwhile.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::snapshots::{MODES, resume as resume_snapshot, snapshot};
use proptest::prelude::*;
use rethread::clock::Clock;
use rethread::history::{JoinBase, Origin, join};
use rethread::id::IdSource;
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::provider::decode_body;
use rethread::replay::{
    Callback, Citations, OnStale, PolicyLayer, QuestionKind, Reducer, ReducerReply, ReplaySelection, StaleUnit,
};
use rethread::run::{Handoff, JournalEntry, OnInterrupted, PersistReply, Persistence, RunSetup, RunStatus};
use rethread::store::{Change, MemoryStore, Table, commit};
use rethread::tool::Window;
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;

/// The member of a body that has the messages.
pub fn list_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiResponses | Dialect::GeminiInteractions => "input",
        Dialect::Gemini => "contents",
        _ => "messages",
    }
}

/// Checks that a body is `before` with more messages, byte for byte.
pub fn check_extends(before: &[u8], after: &[u8], dialect: Dialect) {
    let read = |body: &[u8]| Json::parse(std::str::from_utf8(body).unwrap()).unwrap();
    let (before, after) = (read(before), read(after));
    let head = |body: &Json| -> Vec<(String, String)> {
        let members =
            body.view().entries().map(|(key, value)| (key.as_text().unwrap().into_owned(), value.as_raw().to_owned()));
        members.filter(|(key, _)| key != list_of(dialect)).collect()
    };
    assert_eq!(head(&before), head(&after), "the head changed");
    let list = |body: &Json| -> Vec<String> {
        body.view().get(list_of(dialect)).unwrap().items().map(|item| item.as_raw().to_owned()).collect()
    };
    let (before, after) = (list(&before), list(&after));
    let same = before.iter().zip(&after).take_while(|(before, after)| before == after).count();
    assert!(
        same == before.len(),
        "message {same} of {} changed:\n{:#?}\n{:#?}",
        before.len(),
        &before[same..],
        after.get(same..)
    );
}

fn check_all(sent: &[Vec<u8>], dialect: Dialect) {
    for pair in sent.windows(2) {
        check_extends(&pair[0], &pair[1], dialect);
    }
}

/// The rounds after the user's last words.
fn rounds(body: &Value, dialect: Dialect) -> usize {
    if dialect != Dialect::Gemini {
        return rounds_in(body);
    }
    let contents = body["contents"].as_array().unwrap();
    let is_question = |content: &Value| content["role"] == "user" && content["parts"][0].get("text").is_some();
    let from = contents.iter().rposition(is_question).map_or(0, |at| at + 1);
    contents[from..].iter().filter(|content| content["role"] == "model").count()
}

/// Calls in so many rounds, the first of two calls, then text that cites a source.
pub fn say(body: &Value, dialect: Dialect, count: usize) -> Answer {
    let round = rounds(body, dialect);
    let list: &[(&str, &str, &str)] = match round {
        0 => &[("call_aaaa", "look", r#"{"n":1}"#), ("call_bbbb", "find", r#"{"n":2}"#)],
        _ => &[("call_cccc", "look", r#"{"n":3}"#)],
    };
    if dialect != Dialect::Gemini {
        return Answer::Say(if round < count {
            Say { text: "Hm.".into(), ..calls(list) }
        } else {
            text("Done [source1].")
        });
    }
    let parts: Vec<Value> = if round < count {
        list.iter().map(|(_, name, _)| json!({"functionCall": {"name": name, "args": {}}})).collect()
    } else {
        vec![json!({"text": "Done [source1]."})]
    };
    let content = json!({"role": "model", "parts": parts});
    Answer::Bytes(
        format!("data: {}\r\n\r\n", json!({"candidates": [{"content": content, "finishReason": "STOP"}]})).into_bytes(),
    )
}

#[derive(Clone, Debug)]
enum Event {
    /// So many milliseconds pass.
    Wait(u64),
    /// Another tab has a turn with calls.
    Other,
    /// The process dies before the answer, and another one resumes the run.
    Kill(u64),
    /// The process dies after so many writes.
    KillAfter(usize, u64),
    /// A snapshot is resumed where the journal is.
    Snapshot(u64),
    /// A snapshot is resumed in a store that has nothing.
    Move(u64),
}

fn an_event() -> impl Strategy<Value = Event> {
    let pause = || prop_oneof![Just(0_u64), Just(301_000), Just(4_000_000)];
    prop_oneof![
        3 => pause().prop_map(Event::Wait),
        2 => Just(Event::Other),
        2 => pause().prop_map(Event::Kill),
        2 => (0_usize..4, pause()).prop_map(|(writes, ms)| Event::KillAfter(writes, ms)),
        1 => pause().prop_map(Event::Snapshot),
        1 => pause().prop_map(Event::Move),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    dialect: Dialect,
    persistence: Persistence,
    policy: PolicyLayer,
    events: Vec<Event>,
    rounds: usize,
    provided: bool,
}

pub fn callback(id: u32) -> Callback {
    Callback { id, hook: Rc::new(()) }
}

pub fn a_reducer() -> impl Strategy<Value = Reducer> {
    prop_oneof![
        (1_usize..6, any::<bool>()).prop_map(|(count, keep_tools)| Reducer::MessageCount {
            count,
            keep_tools,
            first_system_only: false
        }),
        (1_usize..4).prop_map(|turns| Reducer::SlidingTurns { turns }),
        (0_usize..3, 20_u32..60)
            .prop_map(|(keep_newest_turns, max_bytes)| Reducer::ToolResults { keep_newest_turns, max_bytes }),
        (1_usize..3, 0_usize..3).prop_map(|(target, threshold)| Reducer::Summarize {
            target,
            threshold,
            summarize: callback(2)
        }),
        Just(Reducer::Custom { reduce: callback(3) }),
        // Large enough for what the run adds.
        Just(Reducer::TokenBudget { tokens: 2_000, count: Some(callback(1)) }),
        Just(Reducer::TokenBudget { tokens: 2_000, count: None }),
    ]
}

fn a_case() -> impl Strategy<Value = Case> {
    let policy = (
        prop_oneof![Just(Window::Millis(0)), Just(Window::Millis(300_000)), Just(Window::Always)],
        prop_oneof![Just(OnStale::Omit), Just(OnStale::Placeholder)],
        prop_oneof![Just(StaleUnit::Call), Just(StaleUnit::Round), Just(StaleUnit::Turn)],
        any::<bool>(),
        proptest::collection::vec(a_reducer(), 0..3),
    );
    let policy = policy.prop_map(|(window, on_stale, unit, cites, reducers)| PolicyLayer {
        freshness: Some(window),
        on_stale: Some(on_stale),
        stale_unit: Some(unit),
        citations: cites.then_some(Citations::Replay),
        reducers: Some(reducers),
        ..PolicyLayer::default()
    });
    let events = proptest::collection::vec(an_event(), 0..6);
    (0_usize..5, 0_usize..3, policy, events, 1_usize..4, any::<bool>()).prop_map(
        |(dialect, mode, policy, events, rounds, provided)| Case {
            dialect: Dialect::ALL[dialect],
            persistence: MODES[mode],
            policy,
            events,
            rounds,
            provided,
        },
    )
}

/// What the application says to reducers: something else each time, so that a question that is asked again shows.
fn reducer(asked: Rc<Cell<u32>>) -> Box<dyn FnMut(&QuestionKind) -> ReducerReply> {
    Box::new(move |question| {
        asked.set(asked.get() + 1);
        match question {
            QuestionKind::Count(texts) => {
                ReducerReply::Counts(texts.iter().map(|text| text.len() as u64 / 4).collect())
            }
            QuestionKind::Summarize(_) => ReducerReply::Summary(format!("Summary {}.", asked.get())),
            QuestionKind::Reduce(messages) => {
                let messages: Vec<Value> = serde_json::from_str(messages.as_str()).unwrap();
                let mut kept: Vec<Value> = messages.into_iter().skip(1 + asked.get() as usize % 2).collect();
                kept.insert(
                    0,
                    json!({"role": "user", "parts": [{"type": "text", "text": format!("Note {}.", asked.get())}]}),
                );
                ReducerReply::Messages(Json::parse(&json!(kept).to_string()).unwrap())
            }
        }
    })
}

pub fn open<'s>(store: &'s MemoryStore, name: &str, now: u64, asked: &Rc<Cell<u32>>) -> Host<'s> {
    let mut host = Host::open(store, "s", name);
    host.clock.advance(now - 1_000_000);
    host.reducer = reducer(asked.clone());
    host.tool = Box::new(|name, _| {
        let text = format!(
            r#"[{{"source_number":1,"text":"{name}"}},{{"source_number":2,"text":"a longer text of the second"}}]"#
        );
        (Json::parse(&text).unwrap(), false)
    });
    host
}

fn other_turn(store: &MemoryStore, number: usize, now: u64, asked: &Rc<Cell<u32>>) {
    let mut other = open(store, &format!("other{number}"), now, asked);
    let outcome = other.ask(setup(&format!("other-{number}"), CHAT, false), "Me too", |body| say(body, CHAT, 1));
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
}

/// Stores three turns, and starts the run whose requests are compared.
fn started<'s>(case: &Case, store: &'s MemoryStore, asked: &Rc<Cell<u32>>) -> (Host<'s>, RunSetup) {
    let Case { dialect, persistence, policy, provided, .. } = case;
    let dialect = *dialect;
    let mut host = open(store, "h", 1_000_000, asked);
    for turn in 0..3 {
        let outcome = host.ask(setup(&format!("before{turn}"), dialect, true), &format!("Question {turn}"), |body| {
            say(body, dialect, 2)
        });
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        host.clock.advance(120_000);
    }
    host.sent.clear();
    let mut setup = RunSetup { persistence: *persistence, ..setup("run", dialect, true) };
    setup.policy.call = policy.clone();
    for tool in setup.tool_settings.values_mut() {
        tool.on_interrupted = OnInterrupted::Rerun;
    }
    if *provided {
        let context = json!([{"provider": "memory", "messages": [{"role": "user", "parts": [{"type": "text", "text": "You know me."}]}]}]);
        host.start_provided(setup.clone(), "Go", &context).unwrap();
    } else {
        host.start(setup.clone(), "Go").unwrap();
    }
    (host, setup)
}

fn play(case: &Case) {
    let Case { dialect, events, rounds: count, .. } = case;
    let dialect = *dialect;
    let stores: [MemoryStore; 7] = Default::default();
    let mut store_index = 0;
    let asked = Rc::new(Cell::new(0));
    let (mut host, setup) = started(case, &stores[0], &asked);
    let mut sent: Vec<Vec<u8>> = Vec::new();
    let mut events = events.iter().cloned();
    let mut number = 0;
    loop {
        let event = events.next();
        number += 1;
        // The journal is there before anything happens to the process.
        host.write();
        if let Some(Event::KillAfter(writes, _)) = &event {
            host.writes_left = Some(*writes);
        }
        let hangs = Cell::new(matches!(event, Some(Event::Kill(_) | Event::Snapshot(_) | Event::Move(_))));
        let has_event = event.is_some();
        let asked_once = Cell::new(false);
        let outcome = host.drive(|body| {
            // One request per event.
            if hangs.get() || has_event && asked_once.replace(true) { Answer::Hang } else { say(body, dialect, *count) }
        });
        sent.append(&mut host.sent);
        check_all(&sent, dialect);
        let now = host.clock.now();
        if let Some(outcome) = outcome {
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            break;
        }
        let name = format!("h{number}");
        match event {
            Some(Event::Wait(ms)) => host.clock.advance(ms),
            Some(Event::Other) => other_turn(&stores[store_index], number, now, &asked),
            Some(Event::Kill(ms) | Event::KillAfter(_, ms)) => {
                let mut next = open(&stores[store_index], &name, now + ms, &asked);
                if next.pending().iter().all(|entry| entry.id != "run") {
                    break;
                }
                next.resume(setup.clone()).unwrap();
                host = next;
            }
            Some(Event::Snapshot(ms)) => {
                let bytes = snapshot(&mut host).unwrap();
                let mut next = open(&stores[store_index], &name, now + ms, &asked);
                resume_snapshot(&mut next, &bytes, setup.clone()).unwrap();
                host = next;
            }
            Some(Event::Move(ms)) => {
                let bytes = snapshot(&mut host).unwrap();
                store_index += 1;
                let mut next = open(&stores[store_index], &name, now + ms, &asked);
                resume_snapshot(&mut next, &bytes, setup.clone()).unwrap();
                host = next;
            }
            None => panic!("the run stands still"),
        }
    }
    assert!(!sent.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r71_each_request_of_a_run_extends_the_one_before(case in a_case()) {
        play(&case);
    }
}

/// A session of turns with stale calls; the clock is at their end.
fn with_turns<'s>(store: &'s MemoryStore, turns: usize, asked: &Rc<Cell<u32>>) -> Host<'s> {
    let mut host = open(store, "h", 1_000_000, asked);
    for turn in 0..turns {
        let outcome = host
            .ask(setup(&format!("before{turn}"), CHAT, false), &format!("Question {turn}"), |body| say(body, CHAT, 2));
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    }
    host.clock.advance(400_000);
    host.sent.clear();
    host
}

/// Appends a body, as another tab does.
fn append(host: &Host<'_>, body: &Value) {
    let body = Json::parse(&body.to_string()).unwrap();
    let items = decode_body(CHAT, body.view()).unwrap();
    let origin = Origin { at: host.clock.now(), ..Origin::default() };
    let joined = join(JoinBase::history(&host.log.borrow().history), items, &origin, &host.ids);
    let operation = format!("append.{}", host.ids.new_id());
    let change = Change { operation, entries: joined.entries, at: host.clock.now(), ..Change::default() };
    block_on(commit(host.store, &host.log, &change)).unwrap();
}

fn selection_of(host: &mut Host<'_>) -> ReplaySelection {
    let journal = host.snapshot().journal;
    let selected = journal.into_iter().rev().find_map(|entry| match entry {
        JournalEntry::Selected(selection) => Some(selection),
        _ => None,
    });
    selected.expect("the journal has what is sent")
}

#[test]
fn r71_what_is_sent_of_a_long_history_is_stored_in_few_bytes() {
    let (store, asked) = (MemoryStore::default(), Rc::default());
    let mut host = with_turns(&store, 40, &asked);
    // Old calls are stale, those of the newest turns are not.
    for turn in 40..43 {
        host.ask(setup(&format!("before{turn}"), CHAT, false), "Again", |body| say(body, CHAT, 2));
    }
    host.start(setup("run", CHAT, false), "Go").unwrap();
    assert!(host.drive(|body| if rounds_in(body) == 0 { say(body, CHAT, 2) } else { Answer::Hang }).is_none());
    let selection = selection_of(&mut host);
    assert!(selection.ranges.len() <= 3, "{:#?}", selection.ranges);
    assert!(JournalEntry::Selected(selection).seal().len() < 200);
}

#[test]
fn r71_a_budget_that_the_run_outgrows_shortens_what_is_sent_and_then_it_stays() {
    let (store, asked) = (MemoryStore::default(), Rc::default());
    let mut host = with_turns(&store, 6, &asked);
    let mut setup = setup("run", CHAT, false);
    setup.max_turns = 20;
    setup.policy.call.reducers = Some(vec![Reducer::TokenBudget { tokens: 400, count: None }]);
    let mut round = 0;
    let outcome = host.ask(setup, "Go", |_| {
        round += 1;
        let id = format!("call_{round}");
        Answer::Say(if round <= 12 { calls(&[(&id, "look", "{}")]) } else { text("Done.") })
    });
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    let lists: Vec<Vec<Value>> = host
        .sent
        .iter()
        .map(|body| serde_json::from_slice::<Value>(body).unwrap()["messages"].as_array().unwrap().clone())
        .collect();
    let cuts = lists.windows(2).filter(|pair| !pair[1].starts_with(&pair[0])).count();
    assert!((1..=lists.len() / 2).contains(&cuts), "{cuts} cuts in {} requests", lists.len());
    assert!(host.sent.iter().all(|body| body.len() < 4_000), "the budget holds");
}

#[test]
fn r71_a_resume_without_a_stored_choice_decides_as_the_first_request_did() {
    let (store, asked) = (MemoryStore::default(), Rc::default());
    let mut host = with_turns(&store, 2, &asked);
    // Fresh when the run begins.
    host.ask(setup("fresh", CHAT, false), "Again", |body| say(body, CHAT, 2));
    host.sent.clear();
    host.start(setup("run", CHAT, false), "Go").unwrap();
    assert!(host.drive(|_| Answer::Hang).is_none());
    let now = host.clock.now() + 900_000;
    other_turn(&store, 1, now, &asked);
    let mut next = open(&store, "h2", now, &asked);
    next.resume(setup("run", CHAT, false)).unwrap();
    let outcome = next.drive(|body| say(body, CHAT, 2)).unwrap();
    assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
    host.sent.append(&mut next.sent);
    check_all(&host.sent, CHAT);
    assert_eq!(host.sent[0], host.sent[1]);
    // What another tab appended comes with the next run.
    next.sent.clear();
    next.ask(setup("after", CHAT, false), "And now?", |body| say(body, CHAT, 0));
    assert!(String::from_utf8_lossy(&next.sent[0]).contains("Me too"));
    assert!(!String::from_utf8_lossy(&host.sent[0]).contains("Me too"));
}

#[test]
fn r71_a_late_result_of_another_tab_changes_nothing_in_the_running_turn() {
    let (store, asked) = (MemoryStore::default(), Rc::default());
    let mut host = with_turns(&store, 1, &asked);
    // A call that nobody has answered.
    let open_call = json!({"messages": [
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "call_late", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
    ]});
    append(&host, &open_call);
    host.sent.clear();
    host.start(setup("run", CHAT, false), "Go").unwrap();
    assert!(host.drive(|body| if rounds_in(body) == 0 { say(body, CHAT, 2) } else { Answer::Hang }).is_none());
    append(&host, &json!({"messages": [{"role": "tool", "tool_call_id": "call_late", "content": "late"}]}));
    let mut next = open(&store, "h2", host.clock.now(), &asked);
    next.resume(setup("run", CHAT, false)).unwrap();
    next.drive(|body| say(body, CHAT, 2)).unwrap();
    host.sent.append(&mut next.sent);
    check_all(&host.sent, CHAT);
    assert!(String::from_utf8_lossy(host.sent.last().unwrap()).contains("no recorded result"));
    next.ask(setup("after", CHAT, false), "And now?", |body| say(body, CHAT, 0));
    assert!(String::from_utf8_lossy(next.sent.last().unwrap()).contains("\"late\""));
}

#[test]
fn r12_r71_a_transcript_of_redacted_calls_is_not_in_the_journal() {
    let (store, asked) = (MemoryStore::default(), Rc::default());
    let mut host = with_turns(&store, 1, &asked);
    let mut setup = setup("run", CHAT, false);
    setup.persist = [("look".to_owned(), callback(9))].into_iter().collect();
    host.persist = Box::new(|_| PersistReply::Nothing);
    host.tool = Box::new(|name, _| (Json::parse(if name == "look" { "\"the secret\"" } else { "1" }).unwrap(), false));
    host.handoff_of_tool = Box::new(|name| {
        (name == "find").then(|| Handoff { name: "next".into(), nests_history: true, ..Handoff::default() })
    });
    host.start(setup, "Go").unwrap();
    let model = |body: &Value| if body.to_string().contains("For context") { Answer::Hang } else { say(body, CHAT, 2) };
    assert!(host.drive(model).is_none());
    assert!(String::from_utf8_lossy(host.sent.last().unwrap()).contains("the secret"), "the agent sees it");
    let journal: Vec<u8> = host.records(Table::Runs).iter().flat_map(|record| record.value.to_vec()).collect();
    assert!(!String::from_utf8_lossy(&journal).contains("the secret"));
    let snapshot = host.snapshot().seal();
    assert!(!String::from_utf8_lossy(&snapshot).contains("the secret"));
}

/// What a run of two rounds sends that is killed after its first request and after its second one.
fn sent_over_kills(host: &mut Host<'_>, setup: &RunSetup, input: &str, asked: &Rc<Cell<u32>>) -> Vec<Vec<u8>> {
    host.sent.clear();
    host.start(setup.clone(), input).unwrap();
    assert!(host.drive(|_| Answer::Hang).is_none());
    let (store, mut sent) = (host.store, std::mem::take(&mut host.sent));
    for kill in 1..3 {
        let mut next = Host::open(store, "s", &format!("after{kill}"));
        next.clock.advance(host.clock.now() - next.clock.now());
        next.reducer = reducer(asked.clone());
        next.resume(setup.clone()).unwrap();
        let outcome = next.drive(|body| {
            if kill == 1 && rounds_in(body) > 0 { Answer::Hang } else { say(body, setup.provider.dialect, 2) }
        });
        assert_eq!(outcome.is_some(), kill == 2);
        sent.append(&mut next.sent);
    }
    check_all(&sent, setup.provider.dialect);
    assert!(sent.len() >= 4);
    sent
}

fn count_of(body: &[u8], text: &str) -> usize {
    String::from_utf8_lossy(body).matches(text).count()
}

#[test]
fn r71_what_is_left_out_in_the_middle_of_history_stays_out() {
    let (store, asked) = (MemoryStore::default(), Rc::default());
    let mut host = with_turns(&store, 3, &asked);
    // One call of a round is stale and the other is not, and a message between others is dropped.
    let mut setup = setup("run", CHAT, false);
    setup.policy.call = PolicyLayer {
        freshness: Some(Window::Always),
        tool_freshness: [("find".to_owned(), Window::Millis(0))].into(),
        stale_unit: Some(StaleUnit::Call),
        reducers: Some(vec![Reducer::Custom { reduce: callback(3) }]),
        ..PolicyLayer::default()
    };
    host.reducer = Box::new(|question| {
        let QuestionKind::Reduce(messages) = question else { panic!("{question:?}") };
        let mut messages: Vec<Value> = serde_json::from_str(messages.as_str()).unwrap();
        let dropped = messages.iter().position(|message| message.to_string().contains("Question 1")).unwrap();
        messages.remove(dropped);
        let dropped = messages.iter().rposition(|message| message.to_string().contains("Question 2")).unwrap() - 1;
        assert!(messages.remove(dropped).to_string().contains("Done"));
        ReducerReply::Messages(Json::parse(&json!(messages).to_string()).unwrap())
    });
    for body in sent_over_kills(&mut host, &setup, "Go", &asked) {
        let found = ["Question 0", "Question 1", "Question 2", "Done"].map(|text| count_of(&body, text));
        assert_eq!(found, [1, 0, 1, 2]);
        // One is the definition, and the run calls both tools itself.
        let calls = |tool: &str| count_of(&body, &format!("\"name\":\"{tool}\""));
        assert!(calls("find") <= 2 && calls("look") >= 5, "{}", String::from_utf8_lossy(&body));
    }
}
