//! What a run and a session keep of what was sent (R71, R72): the reports, the time of the last request, and what a
//! snapshot takes along.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::cuts::{MINUTE, ask, at_cuts, cuts, open_at, results_in};
use super::prefixes::say;
use super::scripted_host::*;
use super::snapshots::{resume, snapshot};
use rethread::clock::Clock;
use rethread::replay::ReplayChanges;
use rethread::run::{RunEvent, RunSetup, RunStatus};
use rethread::store::MemoryStore;

const DIALECTS: [rethread::message::Dialect; 3] = [CHAT, CLAUDE, RESPONSES];

/// What each request reports, as codes.
fn reports(events: &[RunEvent]) -> Vec<Vec<&'static str>> {
    let codes = |event: &RunEvent| match event {
        RunEvent::ModelCalled { report, .. } => Some(report.iter().map(|finding| finding.code.as_str()).collect()),
        _ => None,
    };
    events.iter().filter_map(codes).collect()
}

#[test]
fn r71_each_request_of_a_run_reports_what_the_run_leaves_out() {
    for dialect in DIALECTS {
        let store = MemoryStore::default();
        let mut host = open_at(&store, "h", 1_000_000);
        let always = |id: &str| {
            let mut setup = at_cuts(id, dialect);
            setup.policy.call.changes = Some(ReplayChanges::Always);
            setup
        };
        ask(&mut host, always("one"), 1);
        host.clock.advance(2 * MINUTE);
        host.events.clear();
        ask(&mut host, always("two"), 2);
        let reports = reports(&host.events);
        assert_eq!(reports.len(), 3, "{dialect:?}");
        for report in &reports {
            assert_eq!(report.iter().filter(|code| **code == "stale").count(), 2, "{dialect:?} {reports:?}");
        }
    }
}

#[test]
fn r72_a_session_is_idle_from_its_last_request_on_and_not_from_the_begin_of_its_run() {
    for dialect in DIALECTS {
        let store = MemoryStore::default();
        let mut host = open_at(&store, "h", 1_000_000);
        host.start(at_cuts("one", dialect), "Go").unwrap();
        assert!(host.drive(|_| Answer::Hang).is_none());
        // The model takes its time; then there is another request.
        host.clock.advance(4 * MINUTE);
        let outcome = host.drive(|body| say(body, dialect, 1)).unwrap();
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        let now = host.clock.now() + 4 * MINUTE;
        let mut next = open_at(&store, "h2", now);
        ask(&mut next, at_cuts("two", dialect), 1);
        assert_eq!(cuts(&next.events), [None, None], "{dialect:?}");
        assert_eq!(results_in(&next.sent[0]), 2, "{dialect:?}");
    }
}

#[test]
fn r71_r72_a_snapshot_takes_along_what_the_run_repeats_although_it_is_stale() {
    for dialect in DIALECTS {
        let store = MemoryStore::default();
        let mut host = open_at(&store, "h", 1_000_000);
        ask(&mut host, at_cuts("one", dialect), 2);
        host.clock.advance(2 * MINUTE);
        let setup = || RunSetup { max_turns: 5, ..at_cuts("two", dialect) };
        host.start(setup(), "Go").unwrap();
        assert!(host.drive(|_| Answer::Hang).is_none());
        let sent = host.sent.last().cloned().unwrap();
        assert_eq!(results_in(&sent), 3, "{dialect:?}");
        let bytes = snapshot(&mut host).unwrap();
        let elsewhere = MemoryStore::default();
        let mut other = open_at(&elsewhere, "other", host.clock.now());
        resume(&mut other, &bytes, setup()).unwrap();
        let outcome = other.drive(|body| say(body, dialect, 0)).unwrap();
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert_eq!(results_in(&other.sent[0]), 3, "{dialect:?}");
    }
}

#[test]
fn r72_r76_an_unknown_host_is_no_other_provider() {
    for dialect in DIALECTS {
        let store = MemoryStore::default();
        let mut host = open_at(&store, "h", 1_000_000);
        for (turn, url) in ["https://a.example/v1", "/api/chat", "https://a.example/v1"].into_iter().enumerate() {
            let mut setup = at_cuts(&format!("run{turn}"), dialect);
            setup.provider.url = url.into();
            ask(&mut host, setup, 1);
        }
        assert!(cuts(&host.events).iter().all(Option::is_none), "{dialect:?} {:?}", cuts(&host.events));
    }
}
