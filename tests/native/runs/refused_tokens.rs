//! A token of Gemini's interactions that the service refuses, in a run whose last append fails.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::snapshots::{MODES, resume, snapshot};
use super::spy_store::{Fault, Spy};
use crate::interaction_service::{InteractionService, rounds};
use rethread::error::ErrorCode;
use rethread::message::{Dialect, MessageStatus};
use rethread::owner::StateOwner;
use rethread::run::{Persistence, RunSetup, RunStatus};

#[test]
fn r28_r77_an_answer_that_was_truncated_by_a_refused_token_stays_so_when_its_append_failed() {
    for owner in [StateOwner::Session, StateOwner::response(None)] {
        for persistence in MODES {
            let spy = Spy::default();
            let mut host = Host::open(&spy, "s", "h");
            let mut service = InteractionService::new(rounds(0));
            service.pauses.next = 2;
            let setup =
                || RunSetup { persistence, owner: owner.clone(), ..setup("run", Dialect::GeminiInteractions, false) };
            host.start(setup(), "One").unwrap();
            let mut calls = 0;
            host.drive(|body| {
                calls += 1;
                if calls == 2 {
                    service.pauses.issued.clear();
                    *spy.faults.borrow_mut() = vec![Some(Fault::Refuses(ErrorCode::QuotaExceeded))];
                }
                service.answer(body)
            });
            let taken = snapshot(&mut host).unwrap();
            let mut host = Host::open(&spy, "s", "h2");
            resume(&mut host, &taken, setup()).unwrap();
            let outcome = host.drive(|body| service.answer(body)).unwrap();
            let what = format!("{owner:?} {persistence:?}");
            assert_eq!(outcome.status, RunStatus::Finished, "{:?} {what}", outcome.error);
            assert_eq!((outcome.model_calls, service.requests.len(), service.refused.len()), (1, 1, 1), "{what}");
            let findings = outcome.report.iter().filter(|finding| finding.code.as_str() == "interrupted").count();
            assert_eq!((findings, &*outcome.text.decode()), (1, "part 1 of answer 1, "), "{what}");
            let is_run = persistence == Persistence::Run;
            let want = if is_run { MessageStatus::Truncated } else { MessageStatus::Complete };
            let log = host.log.borrow();
            assert_eq!(log.history.messages().last().map(|last| last.status), Some(want), "{what}");
        }
    }
}
