//! Late results (R75) beside answers that Google pauses: a hop has what the request of the first part had.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::automatic;
use super::interaction_hops::{MODES, pausing, run, statuses, tokens};
use super::interactions::{finish, history_of};
use super::scripted_host::*;
use rethread::json::Json;
use rethread::owner::StateOwner;
use rethread::provider::ToolDefinition;
use rethread::run::{Persistence, RunSetup, RunStatus, ToolSettings, ToolTiming};
use rethread::store::MemoryStore;
use serde_json::{Value, json};

/// A run with the asynchronous tool `later_export`, which the application answers.
fn exporting(id: &str, variant: &(StateOwner, bool, Persistence)) -> RunSetup {
    let mut setup = run(id, variant);
    let name = "later_export".to_owned();
    let tool =
        ToolDefinition { name: name.clone(), description: None, parameters: None, strict: false, is_async: true };
    setup.tools.push(tool);
    setup.tool_settings.insert(name, ToolSettings { timing: ToolTiming::Later, ..ToolSettings::default() });
    setup
}

/// Calls the asynchronous tool beside `look`, once; then text.
fn once(steps: &[Value]) -> Result<String, Vec<(String, String)>> {
    if steps.iter().any(|step| step["type"] == "function_call") {
        return Ok("It runs.".into());
    }
    Err(vec![("call_a".into(), "later_export".into()), ("call_b".into(), "look".into())])
}

fn late_count(words: &[String]) -> usize {
    words.iter().filter(|word| word.contains("seven thousand")).count()
}

#[test]
fn r75_r77_a_late_result_that_is_stored_between_two_hops_is_sent_after_the_answer() {
    for owner in [StateOwner::Session, automatic()] {
        for mode in MODES {
            for is_of_this_run in [false, true] {
                let variant = (owner.clone(), false, mode);
                let store = MemoryStore::default();
                let mut host = Host::open(&store, "s", "h");
                let mut service = pausing(0, 0, false);
                service.script = Box::new(once);
                let mut calls = 0;
                if !is_of_this_run {
                    finish(&mut host, &mut service, exporting("r0", &variant), "Export");
                    calls = 1;
                }
                host.start(exporting("r1", &variant), "And now?").unwrap();
                let outcome = host.drive(|body| {
                    calls += 1;
                    match calls {
                        2 => service.pauses.next = 2,
                        3 => Host::open(&store, "s", "other").late("call_a", &json!("seven thousand")).unwrap(),
                        _ => {}
                    }
                    service.answer(body)
                });
                let what = format!("{variant:?} {is_of_this_run}");
                let outcome = outcome.unwrap();
                assert_eq!(outcome.status, RunStatus::Finished, "{:?} {what}", outcome.error);
                assert!(service.invalid.is_empty() && service.refused.is_empty(), "{:?} {what}", service.invalid);
                host.refresh();
                let before = service.requests.len();
                assert_eq!((0..before).map(|at| late_count(&service.sent(at))).sum::<usize>(), 0, "{what}");
                finish(&mut host, &mut service, exporting("r2", &variant), "Thanks");
                assert_eq!(late_count(&service.sent(before)), 1, "{what}");
                assert_eq!(late_count(&history_of(&mut host)), 1, "{what}");
            }
        }
    }
}

#[test]
fn r75_r77_a_late_result_that_ended_the_request_of_the_first_part_ends_its_hops() {
    for owner in [StateOwner::Session, automatic()] {
        for mode in MODES {
            let variant = (owner.clone(), false, mode);
            let store: &MemoryStore = Box::leak(Box::default());
            let mut host = Host::open(store, "s", "h");
            let mut service = pausing(0, 0, false);
            service.script = Box::new(once);
            host.tool = Box::new(move |_, _| {
                Host::open(store, "s", "other").late("call_a", &json!("seven thousand")).unwrap();
                (Json::parse("1").unwrap(), false)
            });
            host.start(exporting("r1", &variant), "Export").unwrap();
            let mut calls = 0;
            let outcome = host.drive(|body| {
                calls += 1;
                if calls == 2 {
                    service.pauses.next = 2;
                }
                service.answer(body)
            });
            let outcome = outcome.unwrap();
            let what =
                format!("{variant:?} {:#?}", service.requests.iter().map(|one| &one["input"]).collect::<Vec<_>>());
            assert_eq!(outcome.status, RunStatus::Finished, "{:?} {what}", outcome.error);
            assert!(service.invalid.is_empty() && service.refused.is_empty(), "{:?} {what}", service.invalid);
            assert_eq!((tokens(&service).len(), late_count(&service.sent(1))), (4, 1), "{what}");
            let hop_count = if owner == StateOwner::Session { 1 } else { 0 };
            assert_eq!((late_count(&service.sent(2)), late_count(&service.sent(3))), (hop_count, hop_count), "{what}");
            host.refresh();
            assert_eq!(late_count(&history_of(&mut host)), 1, "{what}");
            assert!(statuses(&host).len() > 3);
        }
    }
}
