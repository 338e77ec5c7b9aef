//! Citations and source numbers of runs: what is asked, what is stored, what a kill leaves.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::{Answer, Host, Say, block_on, calls, rounds_in, setup, text};
use super::*;
use rethread::replay::Citations;
use rethread::run::{OnInterrupted, PersistReply, Persistence, RunSetup, RunStatus, ToolSettings};
use rethread::store::{MemoryStore, open_session};
use rethread::tool::ToolInvocation;

const FOUND: &str = r#"[{"source_number":4,"content":"four"},{"source_number":9,"content":"nine"}]"#;

fn search(answer: &'static str) -> impl FnMut(&Value) -> Answer {
    move |body| {
        Answer::Say(match rounds_in(body) {
            0 => Say { text: "Searching.".into(), ..calls(&[("call_s", "look", "{}")]) },
            _ => text(answer),
        })
    }
}

fn with(id: &str, citations: Citations) -> RunSetup {
    let layer = PolicyLayer { citations: Some(citations), ..PolicyLayer::default() };
    RunSetup { policy: global(layer), ..setup(id, CHAT, true) }
}

fn host(store: &MemoryStore) -> Host<'_> {
    let mut host = Host::open(store, "s", "h");
    host.tool = Box::new(|_, _| (Json::parse(FOUND).unwrap(), false));
    host
}

fn stored(store: &MemoryStore) -> (String, i64) {
    let log = block_on(open_session(store, "s", SEED, 1)).unwrap();
    let call = log.history.invocations().last().unwrap();
    (call.result.as_ref().unwrap().content.as_str().to_owned(), log.head.source_high_water)
}

#[test]
fn r08_store_mode_trims_before_the_append_and_the_live_turn_keeps_all_sources() {
    let store = MemoryStore::default();
    let mut host = host(&store);
    let outcome = host.ask(with("r1", Citations::Store), "q", search("As [source4] says."));
    assert_eq!(outcome.status, RunStatus::Finished);
    assert!(host.asked[1].to_string().contains("nine"), "the model saw every source");
    assert_eq!(stored(&store), (r#"[{"source_number":4,"content":"four"}]"#.to_owned(), 9));
    assert!(outcome.report.iter().any(|finding| finding.code.as_str() == "uncited"));
    // What is not stored is numbered past all the same.
    let rendered = host.render(CHAT);
    assert_eq!(rendered.max_source, Some(9));
    assert!(!String::from_utf8(rendered.body).unwrap().contains("nine"));
}

#[test]
fn r08_in_every_mode_store_replaces_what_was_stored_before_the_answer_whatever_kills_the_run() {
    for persistence in [Persistence::Run, Persistence::Call, Persistence::Result] {
        let reruns = ToolSettings { on_interrupted: OnInterrupted::Rerun, ..ToolSettings::default() };
        let setup = |id: &str| RunSetup {
            persistence,
            tool_settings: [("look".to_owned(), reruns)].into(),
            ..with(id, Citations::Store)
        };
        let mut kills = 1;
        loop {
            let store = MemoryStore::default();
            let mut host = host(&store);
            host.start(setup("r1"), "q").unwrap();
            host.writes_left = Some(kills);
            let mut model = |body: &Value| {
                Answer::Say(match rounds_in(body) {
                    0 => calls(&[("call_s", "look", "{}")]),
                    1 => calls(&[("call_t", "look", "{}"), ("call_u", "look", "{}")]),
                    _ => text("As [source4] says."),
                })
            };
            let is_over = host.drive(&mut model).is_some();
            if !is_over {
                let mut next = self::host(&store);
                next.clock.advance(100_000);
                next.resume(setup("r1")).unwrap();
                assert_eq!(next.drive(&mut model).unwrap().status, RunStatus::Finished, "{persistence:?} {kills}");
            }
            let log = block_on(open_session(&store, "s", SEED, 1)).unwrap();
            let kept = |call: &ToolInvocation| call.result.as_ref().unwrap().content.as_str().to_owned();
            let results: Vec<_> = log.history.invocations().iter().map(kept).collect();
            let want = r#"[{"source_number":4,"content":"four"}]"#;
            assert_eq!(results, [want; 3], "{persistence:?}, killed after {kills} writes");
            assert_eq!((log.history.messages().len(), log.history.set_aside().len()), (4, 0));
            assert_eq!(log.head.source_high_water, 9);
            if is_over {
                break;
            }
            kills += 1;
        }
        assert!(kills > 3, "{persistence:?} {kills}");
    }
}

#[test]
fn r08_r12_what_persist_stored_is_not_replaced() {
    for persistence in [Persistence::Call, Persistence::Result] {
        let store = MemoryStore::default();
        let mut host = host(&store);
        let mut setup = RunSetup { persistence, ..with("r1", Citations::Store) };
        setup.persist.insert("look".into(), rethread::replay::Callback { id: 1, hook: std::rc::Rc::new(()) });
        host.persist =
            Box::new(|_| PersistReply::Replaced { arguments: None, result: Some(Json::parse("\"kept\"").unwrap()) });
        host.ask(setup, "q", search("As [source4] says."));
        assert_eq!(stored(&store).0, "\"kept\"", "{persistence:?}");
    }
}

#[test]
fn r08_replay_mode_stores_all_sources_and_sends_the_cited_ones() {
    let store = MemoryStore::default();
    let mut host = host(&store);
    host.ask(with("r1", Citations::Replay), "q", search("As [source4] says."));
    assert_eq!(stored(&store), (FOUND.to_owned(), 9));
    host.ask(with("r2", Citations::Replay), "and?", |body: &Value| {
        let body = body.to_string();
        assert!(body.contains("four") && !body.contains("nine"), "{body}");
        Answer::Say(text("ok"))
    });
}

#[test]
fn r08_a_run_that_ends_early_keeps_all_sources() {
    let store = MemoryStore::default();
    let mut host = host(&store);
    let setup = RunSetup { on_stop: rethread::run::OnStop::Keep, ..with("r1", Citations::Store) };
    let outcome = host.ask(setup, "q", |body: &Value| match rounds_in(body) {
        0 => Answer::Say(calls(&[("call_s", "look", "{}")])),
        _ => Answer::Status(400, Vec::new(), r#"{"error":{"message":"no"}}"#.into()),
    });
    assert_eq!(outcome.status, RunStatus::Failed);
    assert_eq!(stored(&store), (FOUND.to_owned(), 9));
}

#[test]
fn r09_source_numbers_of_a_killed_or_discarded_run_are_not_reused() {
    let store = MemoryStore::default();
    let mut host = host(&store);
    host.start(with("r1", Citations::Off), "q").unwrap();
    assert!(
        host.drive(|body| match rounds_in(body) {
            0 => Answer::Say(calls(&[("call_s", "look", "{}")])),
            _ => Answer::Hang,
        })
        .is_none()
    );
    // The tab dies here; the next one reads the head alone.
    let log = block_on(open_session(&store, "s", SEED, 1)).unwrap();
    assert_eq!((log.head.source_high_water, log.history.highest_source()), (9, Some(9)));
    assert!(log.history.messages().is_empty());
}

#[test]
fn r09_numbering_continues_over_turns() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let next = std::rc::Rc::new(std::cell::Cell::new(0));
    for turn in 0..3_u64 {
        let counter = next.clone();
        host.tool = Box::new(move |_, _| {
            let number = counter.get();
            counter.set(number + 2);
            let found =
                json!([{ "source_number": number, "content": "x" }, { "source_number": number + 1, "content": "y" }]);
            (Json::parse(&found.to_string()).unwrap(), false)
        });
        host.ask(with(&format!("r{turn}"), Citations::Store), "q", search("none"));
        // An hour later nothing of it is shown, and the next tool goes on behind it.
        host.clock.advance(3_600_000);
        let max = host.render(CHAT).max_source.unwrap();
        assert_eq!(max, turn * 2 + 1);
        next.set(max + 1);
    }
}
