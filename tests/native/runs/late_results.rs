//! Where late results are in requests (R75): at the end of the next one, in the order in which they were stored, and
//! there they stay.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::async_tools::{async_setup, list, position, says};
use super::prefixes::check_extends;
use super::scripted_host::*;
use rethread::finding::Action;
use rethread::message::Dialect;
use rethread::owner::StateOwner;
use rethread::run::{OpenCall, Persistence, RunSetup, RunStatus, ToolTiming};
use rethread::store::MemoryStore;
use serde_json::{Value, json};

fn later(id: &str, dialect: Dialect, stream: bool) -> RunSetup {
    async_setup(id, dialect, stream, Persistence::Run, ToolTiming::Later)
}

/// Calls the asynchronous tool twice beside another one, then says something.
fn two_exports(body: &Value) -> Answer {
    Answer::Say(match rounds_in(body) {
        0 => Say {
            text: "Starting.".into(),
            ..calls(&[("call_a", "later_export", "{}"), ("call_b", "look", "{}"), ("call_c", "later_export", "{}")])
        },
        _ => text("Both are under way."),
    })
}

fn open_calls(host: &mut Host<'_>, setup: RunSetup) -> Vec<OpenCall> {
    let outcome = host.ask(setup, "Export, please", two_exports);
    assert_eq!((outcome.status, outcome.open_calls.len()), (RunStatus::Finished, 2), "{:?}", outcome.error);
    outcome.open_calls
}

/// The indexes of texts in a list, each of which is in one item.
fn positions(items: &[String], parts: &[&str]) -> Vec<usize> {
    parts.iter().map(|part| position(items, part)).collect()
}

#[test]
fn r75_two_late_results_are_sent_in_the_order_in_which_they_were_stored_and_stay_so() {
    for (dialect, stream) in super::WAYS {
        for is_reversed in [false, true] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let mut open = open_calls(&mut host, later("run", dialect, stream));
            if is_reversed {
                open.reverse();
            }
            host.late(&open[0].invocation, &json!("seven thousand")).unwrap();
            host.late(&open[1].invocation, &json!("eight thousand")).unwrap();
            let render = host.render(dialect);
            let rendered = list(&serde_json::from_slice(&render.body).unwrap());
            assert_eq!(
                positions(&rendered, &["seven thousand", "eight thousand"]),
                [rendered.len() - 2, rendered.len() - 1],
                "{dialect:?}"
            );
            host.asked.clear();
            host.ask(later("run2", dialect, stream), "And now?", says("Fifteen thousand."));
            host.ask(later("run3", dialect, stream), "Thanks", says("Welcome."));
            for body in host.asked.iter().map(list) {
                let found = positions(&body, &["Both are under way.", "seven thousand", "eight thousand", "And now?"]);
                assert!(found.is_sorted(), "{dialect:?} {found:?} {body:#?}");
                assert_eq!(found[2], found[1] + 1);
            }
        }
    }
}

/// A model that calls `look` until the request has both results.
fn until_both(body: &Value) -> Answer {
    let text_of_body = body.to_string();
    let has_both = ["seven thousand", "eight thousand"].iter().all(|result| text_of_body.contains(result));
    let round = rounds_in(body);
    Answer::Say(if has_both { text("Both.") } else { calls(&[(&format!("call_x{round}"), "look", "{}")]) })
}

#[test]
fn r75_two_results_that_come_while_a_run_is_under_way_follow_its_messages_in_their_order() {
    for (dialect, stream) in super::WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let open = open_calls(&mut host, later("run", dialect, stream));
        host.asked.clear();
        host.sent.clear();
        host.start(later("run2", dialect, stream), "Look again").unwrap();
        let mut count = 0;
        let ended = host.drive(|body| {
            count += 1;
            if count == 1 { until_both(body) } else { Answer::Hang }
        });
        assert!(ended.is_none());
        // Another process stores them, the second call's first.
        let mut other = Host::open(&store, "s", "other");
        other.late(&open[1].invocation, &json!("seven thousand")).unwrap();
        other.late(&open[0].invocation, &json!("eight thousand")).unwrap();
        host.refresh();
        let outcome = host.drive(until_both).unwrap();
        assert_eq!(outcome.text.decode().as_ref(), "Both.");
        let last = list(host.asked.last().unwrap());
        let end = [last.len() - 2, last.len() - 1];
        assert_eq!(positions(&last, &["seven thousand", "eight thousand"]), end, "{dialect:?} {last:#?}");
        assert!(position(&last, "Look again") < end[0]);
        host.sent.dedup();
        for pair in host.sent.windows(2) {
            check_extends(&pair[0], &pair[1], dialect);
        }
        // They stay there, in this process and in another one.
        for name in ["third", "fourth"] {
            let mut next = Host::open(&store, "s", name);
            next.ask(later(name, dialect, stream), "Thanks", says("Welcome."));
            assert_eq!(list(&next.asked[0])[..last.len()], last[..], "{dialect:?}");
        }
    }
}

#[test]
fn r75_a_late_result_precedes_a_newer_call_of_the_same_id() {
    for (dialect, stream) in super::WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let open = open_calls(&mut host, later("run", dialect, stream));
        host.late(&open[0].invocation, &json!("seven thousand")).unwrap();
        host.asked.clear();
        host.tool = Box::new(|_, _| (rethread::json::Json::parse("\"looked again\"").unwrap(), false));
        let outcome = host.ask(later("run2", dialect, stream), "Look again", |body| {
            Answer::Say(match rounds_in(body) {
                0 => calls(&[("call_a", "look", r#"{"newer":true}"#)]),
                _ => text("Seen."),
            })
        });
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        host.ask(later("run3", dialect, stream), "Thanks", says("Welcome."));
        for body in host.asked.iter().skip(1).map(list) {
            let found = positions(&body, &["seven thousand", "Look again", "newer", "looked again"]);
            assert!(found.is_sorted(), "{dialect:?} {found:?} {body:#?}");
        }
    }
}

#[test]
fn r75_calls_of_the_running_turn_that_are_answered_between_two_requests_follow_in_the_order_of_the_calls() {
    for (dialect, stream) in super::WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.start(later("run", dialect, stream), "Export, please").unwrap();
        let mut count = 0;
        let ended = host.drive(|body| {
            count += 1;
            if count == 1 { two_exports(body) } else { Answer::Hang }
        });
        assert!(ended.is_none());
        let live = host.run.as_ref().unwrap().live();
        let exports = live.invocations().iter().filter(|call| call.name == "later_export");
        let ids: Vec<String> = exports.map(|call| call.id.clone()).collect();
        host.late(&ids[1], &json!("seven thousand")).unwrap();
        host.late(&ids[0], &json!("eight thousand")).unwrap();
        let outcome = host.drive(until_both).unwrap();
        assert_eq!((outcome.text.decode().as_ref(), outcome.open_calls.len()), ("Both.", 0), "{dialect:?}");
        let last = list(host.asked.last().unwrap());
        assert_eq!(positions(&last, &["eight thousand", "seven thousand"]), [last.len() - 2, last.len() - 1]);
        let mut next = Host::open(&store, "s", "next");
        next.ask(later("run2", dialect, stream), "Thanks", says("Welcome."));
        assert_eq!(list(&next.asked[0])[..last.len()], last[..], "{dialect:?}");
    }
}

#[test]
fn r75_an_open_call_is_reported_until_its_result_is_there() {
    for (dialect, stream) in super::WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let open = open_calls(&mut host, later("run", dialect, stream));
        let action = if dialect == RESPONSES { Action::Kept } else { Action::Synthesized };
        for answered in 0..=2 {
            let report = host.render(dialect).report;
            let pending = report.iter().filter(|finding| finding.code.as_str() == "pending_call");
            let pending: Vec<_> = pending.map(|finding| (finding.call_id.as_deref(), finding.action)).collect();
            let expected = [(Some("call_a"), Some(action)), (Some("call_c"), Some(action))];
            assert_eq!(pending, expected[answered..], "{dialect:?} {answered}");
            if let Some(call) = open.get(answered) {
                host.late(&call.invocation, &json!("done")).unwrap();
            }
        }
    }
}

#[test]
fn r75_a_request_of_a_conversation_that_the_application_holds_is_no_place_of_a_late_result() {
    for (dialect, stream) in super::WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let open = open_calls(&mut host, later("run", dialect, stream));
        host.late(&open[0].invocation, &json!("seven thousand")).unwrap();
        host.asked.clear();
        let held = RunSetup { owner: StateOwner::Caller, ..later("held", dialect, stream) };
        host.ask(held, "Held question", says("Held answer."));
        host.ask(later("run2", dialect, stream), "And now?", says("Seven thousand."));
        assert!(!host.asked[0].to_string().contains("seven thousand"), "{dialect:?}");
        let items = list(&host.asked[1]);
        let found = positions(&items, &["Held answer.", "seven thousand", "And now?"]);
        assert!(found.is_sorted(), "{dialect:?} {found:?} {items:#?}");
    }
}
