//! R22 to R27 and R77 with answers that Google pauses: `requires_continuation` with a token, followed in hops.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::automatic;
use super::interactions::{INTERACTIONS, ask, finish, history_of, interacting, restarts};
use super::scripted_host::*;
use crate::interaction_service::{InteractionService, rounds, words_of};
use rethread::error::ErrorCode;
use rethread::json::Json;
use rethread::message::MessageStatus;
use rethread::owner::StateOwner;
use rethread::replay::Callback;
use rethread::run::{OnStop, Persistence, RunOutcome, RunSetup, RunStatus};
use rethread::store::MemoryStore;
use serde_json::{Value, json};
use std::rc::Rc;

pub const MODES: [Persistence; 3] = [Persistence::Run, Persistence::Call, Persistence::Result];

/// Every owner, streamed or not, in every mode.
pub fn variants() -> Vec<(StateOwner, bool, Persistence)> {
    let owners = [StateOwner::Session, automatic(), StateOwner::response(Some("v1_given".into()))];
    let with_mode = |owner: StateOwner, stream| MODES.map(|mode| (owner.clone(), stream, mode));
    owners
        .into_iter()
        .flat_map(|owner| [false, true].into_iter().flat_map(move |s| with_mode(owner.clone(), s)))
        .collect()
}

pub fn run(id: &str, (owner, stream, persistence): &(StateOwner, bool, Persistence)) -> RunSetup {
    let mut setup = RunSetup { persistence: *persistence, ..interacting(id, owner.clone()) };
    setup.provider.stream = *stream;
    setup
}

/// A service that pauses the next answer so often.
pub fn pausing(count: usize, pauses: usize, stream: bool) -> InteractionService {
    let mut service = InteractionService::new(rounds(count)).with_interaction("v1_given");
    service.pauses.next = pauses;
    service.stream = stream;
    service
}

pub fn interruptions(outcome: &RunOutcome) -> usize {
    outcome.report.iter().filter(|finding| finding.code.as_str() == "interrupted").count()
}

pub fn tokens(service: &InteractionService) -> Vec<&str> {
    service.requests.iter().map(|request| request["continuation_token"].as_str().unwrap_or("none")).collect()
}

pub fn statuses(host: &Host<'_>) -> Vec<MessageStatus> {
    host.log.borrow().history.messages().iter().map(|message| message.status).collect()
}

/// What was said, without what an interaction of other programs begins with.
fn said_of(service: &InteractionService) -> Vec<String> {
    words_of(service.newest()).into_iter().filter(|word| word != "user: Before" && word != "model: Yes?").collect()
}

#[test]
fn r23_r77_an_answer_that_requires_continuation_goes_on_in_hops_with_its_token() {
    for variant in variants() {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = pausing(1, 2, variant.1);
        let outcome = finish(&mut host, &mut service, run("r1", &variant), "One");
        assert_eq!((outcome.model_calls, interruptions(&outcome), restarts(&outcome)), (4, 0, 0), "{variant:?}");
        assert_eq!(tokens(&service), ["none", "token_1", "token_2", "none"]);
        let is_owned = variant.0 != StateOwner::Session;
        let first = if variant.0 == automatic() { "none" } else { "v1_given" };
        if is_owned {
            assert_eq!(service.chain(), [first, "v1_1", "v1_2", "v1_3"]);
            assert!(service.requests[1..3].iter().all(|request| request.get("input").is_none()));
            assert_eq!(service.sent(3), ["result call_1: look gave {}"]);
            assert_eq!(history_of(&mut host), said_of(&service));
        } else {
            assert_eq!(service.chain(), ["none"; 4]);
            let inputs: Vec<&Value> = service.requests[..3].iter().map(|request| &request["input"]).collect();
            assert!(inputs.iter().all(|input| *input == inputs[0]), "{inputs:#?}");
            let parts = ["model: part 1 of answer 1, ", "model: part 2 of answer 1, ", "call call_1"];
            assert_eq!(service.sent(3)[1..4], parts);
        }
        // One answer, in one turn.
        service.pauses.next = 1;
        let outcome = finish(&mut host, &mut service, run("r2", &variant), "Two");
        assert_eq!(tokens(&service)[4..], ["none", "token_5", "none"]);
        assert_eq!(outcome.text.decode(), "answer 2 after 1");
        service.script = Box::new(|_| Ok("The end.".into()));
        service.pauses.next = 2;
        let outcome = finish(&mut host, &mut service, run("r3", &variant), "Three");
        assert_eq!(outcome.text.decode(), "part 1 of answer 8, part 2 of answer 8, The end.");
        if is_owned {
            assert_eq!(service.sent(7), ["user: Three"]);
            assert_eq!(history_of(&mut host), said_of(&service));
        }
        assert!(statuses(&host).iter().all(|status| *status == MessageStatus::Complete));
        assert!(service.refused.is_empty() && service.invalid.is_empty(), "{:?}", service.invalid);
    }
}

#[test]
fn r77_hops_of_interactions_that_google_keeps_for_a_session_have_their_id_and_no_input() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = pausing(0, 1, false);
    let mut setup = interacting("r1", StateOwner::Session);
    setup.provider.params = Json::parse(r#"{"model":"m","store":true}"#).unwrap();
    finish(&mut host, &mut service, setup, "One");
    assert_eq!((service.chain(), tokens(&service)), (vec!["none", "v1_1"], vec!["none", "token_1"]));
    assert!(service.invalid.is_empty(), "{:?}", service.invalid);
}

#[test]
fn r18_r25_r77_hops_of_a_run_that_is_killed_at_any_write_go_on_where_they_were() {
    for variant in variants() {
        for kill in 0..12 {
            for hang in [false, true] {
                let store = MemoryStore::default();
                let mut host = Host::open(&store, "s", "h");
                let mut service = pausing(1, 2, variant.1);
                host.writes_left = Some(kill);
                host.start(run("r1", &variant), "One").unwrap();
                let mut ended = host.drive(|body| service.answer(body));
                let mut host = Host::open(&store, "s", "h2");
                if ended.is_none() {
                    if host.pending().is_empty() {
                        host.start(run("r1", &variant), "One").unwrap();
                    } else {
                        host.resume(run("r1", &variant)).unwrap();
                    }
                    // Killed once more: the service answers, and the answer does not arrive.
                    let mut is_lost = hang;
                    ended = host.drive(|body| {
                        let answer = service.answer(body);
                        if std::mem::take(&mut is_lost) { Answer::Hang } else { answer }
                    });
                    if ended.is_none() && hang {
                        host = Host::open(&store, "s", "h3");
                        host.resume(run("r1", &variant)).unwrap();
                        ended = host.drive(|body| service.answer(body));
                    }
                }
                let outcome = ended.unwrap();
                assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
                let what = format!("{variant:?} {kill} {hang} {:?}", tokens(&service));
                // The kill may cost one answer.
                assert!(service.requests.len() <= 5 + usize::from(hang), "{what}");
                assert!(service.invalid.is_empty() && service.refused.is_empty(), "{:?} {what}", service.refused);
                let words = history_of(&mut host);
                let parts = words.iter().filter(|word| word.starts_with("model: part ")).count();
                assert_eq!((words.len() - parts, parts == 0 || parts == 2), (4, true), "{words:?} {what}");
                if variant.0 != StateOwner::Session {
                    assert_eq!(words, said_of(&service), "{what}");
                }
                assert!(outcome.text.decode().ends_with(" after 1"), "{what}");
            }
        }
    }
}

#[test]
fn r18_r77_a_kill_between_hops_asks_for_no_part_twice() {
    for variant in variants() {
        let store = MemoryStore::default();
        let mut service = pausing(0, 3, variant.1);
        for kill in 0..3 {
            let mut host = Host::open(&store, "s", &format!("h{kill}"));
            if kill == 0 {
                host.start(run("r1", &variant), "One").unwrap();
            } else {
                host.resume(run("r1", &variant)).unwrap();
            }
            let mut calls = 0;
            let ended = host.drive(|body| {
                calls += 1;
                if calls > 1 { Answer::Hang } else { service.answer(body) }
            });
            assert!(ended.is_none());
        }
        let mut host = Host::open(&store, "s", "last");
        host.resume(run("r1", &variant)).unwrap();
        let outcome = host.drive(|body| service.answer(body)).unwrap();
        assert_eq!(tokens(&service), ["none", "token_1", "token_2", "token_3"], "{variant:?}");
        let text = "part 1 of answer 1, part 2 of answer 1, part 3 of answer 1, answer 1 after 0";
        assert_eq!((outcome.text.decode().as_ref(), outcome.model_calls), (text, 4));
    }
}

#[test]
fn r25_r77_an_answer_whose_token_cannot_be_sent_is_truncated() {
    for stream in [false, true] {
        for odd in [Value::Null, json!(""), json!(7), json!({ "token": "x" }), json!(["x"])] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let mut service = pausing(0, 0, stream);
            let variant = (automatic(), stream, Persistence::Run);
            finish(&mut host, &mut service, run("r1", &variant), "One");
            (service.pauses.next, service.pauses.odd_token) = (1, Some(odd.clone()));
            let outcome = finish(&mut host, &mut service, run("r2", &variant), "Two");
            assert_eq!((interruptions(&outcome), outcome.model_calls), (1, 1), "{odd}");
            assert_eq!(statuses(&host).last(), Some(&MessageStatus::Truncated));
            // The chain goes on from the answer before.
            finish(&mut host, &mut service, run("r3", &variant), "Three");
            assert_eq!((service.chain(), service.sent(2).len()), (vec!["none", "v1_1", "v1_1"], 3));
            assert_eq!(history_of(&mut host), said_of(&service));
        }
    }
    // A token that was just sent brings the same part.
    for owner in [StateOwner::Session, automatic()] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = pausing(0, 3, false);
        service.pauses.repeats_token = true;
        let outcome = finish(&mut host, &mut service, interacting("r1", owner), "One");
        assert_eq!((interruptions(&outcome), tokens(&service)), (1, vec!["none", "token_1"]));
        assert_eq!(statuses(&host).last(), Some(&MessageStatus::Truncated));
        assert_eq!(outcome.text.decode(), "part 1 of answer 1, part 2 of answer 1, ");
    }
    // Without an id, nothing names the interaction of the token. An agent's loop is the service's.
    for params in [r#"{"model":"m"}"#, r#"{"agent":"deep-research-pro","store":true}"#] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = pausing(0, 1, false);
        service.without_ids = !params.contains("agent");
        let mut setup = interacting("r1", automatic());
        setup.provider.params = Json::parse(params).unwrap();
        let outcome = finish(&mut host, &mut service, setup, "One");
        assert_eq!((interruptions(&outcome), service.requests.len()), (1, 1), "{params}");
    }
}

#[test]
fn r77_calls_of_an_answer_that_is_not_finished_do_not_run() {
    for owner in [StateOwner::Session, automatic()] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = pausing(1, 0, false);
        service.status = Some("requires_continuation");
        let mut answer = |body: &Value| {
            let mut interaction = service.accept(body).unwrap();
            interaction["continuation_token"] = json!("token");
            Answer::Status(200, Vec::new(), interaction.to_string())
        };
        let outcome = host.ask(interacting("r1", owner), "One", &mut answer);
        assert_eq!((outcome.status, outcome.error.unwrap().code), (RunStatus::Failed, ErrorCode::ModelError));
        assert!(host.ran.is_empty());
    }
}

#[test]
fn r25_r77_a_token_that_the_service_refuses_ends_the_turn_with_what_has_arrived() {
    for variant in variants() {
        for is_lost in [false, true] {
            if is_lost && variant.0 == StateOwner::Session {
                continue;
            }
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            let mut service = pausing(0, 0, variant.1);
            finish(&mut host, &mut service, run("r0", &variant), "Zero");
            let before = service.interactions.get("v1_1").cloned();
            service.pauses.next = 2;
            service.pauses.are_single_use = true;
            let mut calls = 0;
            let outcome = host.ask(run("r1", &variant), "One", |body| {
                calls += 1;
                if calls == 2 && is_lost {
                    service.interactions.remove("v1_2");
                } else if calls == 2 {
                    service.pauses.issued.clear();
                }
                service.answer(body)
            });
            assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
            let counts = (interruptions(&outcome), restarts(&outcome), outcome.model_calls, service.refused.len());
            assert_eq!(counts, (1, 0, 1, 1), "{variant:?}");
            let last = if variant.2 == Persistence::Run { MessageStatus::Truncated } else { MessageStatus::Complete };
            assert_eq!(statuses(&host).last(), Some(&last));
            assert_eq!(outcome.text.decode(), "part 1 of answer 2, ");
            // The next request continues the answer before, with what has arrived.
            finish(&mut host, &mut service, run("r2", &variant), "Two");
            assert_eq!(service.requests.last().unwrap().get("continuation_token"), None);
            if variant.0 != StateOwner::Session {
                assert_eq!(service.chain().last(), Some(&"v1_1"));
                assert_eq!(service.sent(2), ["user: One", "model: part 1 of answer 2, ", "user: Two"]);
                assert!(words_of(service.newest()).starts_with(&words_of(&before.unwrap())));
            }
            assert!(service.invalid.is_empty(), "{:?}", service.invalid);
        }
    }
}

#[test]
fn r27_r77_a_hop_that_fails_otherwise_fails_the_run_and_a_resume_sends_its_token_again() {
    let of_any = [
        (401, "unauthenticated", "API key expired."),
        (404, "not_found", "models/m is not found."),
        (404, "page", "Not Found"),
    ];
    // A request that names no interaction is not refused for one: the URL is wrong, or a gateway answers.
    let of_session = [
        (404, "not_found", "Requested entity was not found."),
        (400, "invalid_request", "Invalid turn token: x"),
        (501, "unimplemented", "Not implemented."),
    ];
    let with_refusals = |variant: (StateOwner, bool, Persistence)| {
        let more = if variant.0 == StateOwner::Session { &of_session[..] } else { &[] };
        of_any.iter().chain(more).map(move |refusal| (variant.clone(), *refusal)).collect::<Vec<_>>()
    };
    for (variant, (status, code, sentence)) in variants().into_iter().flat_map(with_refusals) {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = pausing(0, 1, variant.1);
        let mut calls = 0;
        let outcome = host.ask(run("r1", &variant), "One", |body| {
            calls += 1;
            let denied = json!({ "error": { "code": code, "message": sentence } });
            if calls == 2 { Answer::Status(status, Vec::new(), denied.to_string()) } else { service.answer(body) }
        });
        let what = format!("{status} {sentence} {variant:?}");
        let code = outcome.error.map(|error| error.code);
        assert_eq!((outcome.status, code), (RunStatus::Failed, Some(ErrorCode::ModelError)), "{what}");
        host = Host::open(&store, "s", "h2");
        host.resume(run("r1", &variant)).unwrap();
        let outcome = host.drive(|body| service.answer(body)).unwrap();
        assert_eq!(outcome.text.decode(), "part 1 of answer 1, answer 1 after 0", "{what}");
        assert_eq!(tokens(&service), ["none", "token_1"], "{what}");
    }
}

#[test]
fn r23_r77_no_other_request_continues_an_answer_that_is_not_finished() {
    for variant in variants() {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = pausing(0, 0, variant.1);
        finish(&mut host, &mut service, run("r0", &variant), "Zero");
        service.pauses.next = 2;
        host.start(RunSetup { on_stop: OnStop::Keep, ..run("r1", &variant) }, "One").unwrap();
        let mut calls = 0;
        let ended = host.drive(|body| {
            calls += 1;
            if calls == 2 { Answer::Hang } else { service.answer(body) }
        });
        assert!(ended.is_none());
        // Another process asks something, before the run goes on.
        let mut other = Host::open(&store, "s", "other");
        finish(&mut other, &mut service, run("r2", &variant), "Two");
        let mut host = Host::open(&store, "s", "h2");
        host.resume(run("r1", &variant)).unwrap();
        let outcome = host.drive(|body| service.answer(body)).unwrap();
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert_eq!(outcome.text.decode(), "part 1 of answer 2, part 2 of answer 2, answer 2 after 0");
        service.script = Box::new(|_| Ok("The end.".into()));
        finish(&mut host, &mut service, run("r3", &variant), "Three");
        let words = match variant.0 {
            StateOwner::Session => service.sent(service.requests.len() - 1),
            _ => words_of(service.newest()),
        };
        for word in ["user: One", "user: Two", "user: Three", "model: answer 2 after 0", "model: answer 3 after 0"] {
            assert_eq!(words.iter().filter(|one| *one == word).count(), 1, "{word}: {words:#?} {variant:?}");
        }
        assert!(service.invalid.is_empty() && service.refused.is_empty(), "{:?} {variant:?}", service.invalid);
    }
}

#[test]
fn r24_r77_a_filter_gets_no_items_of_a_hop_and_what_it_held_back_before_stays_pending() {
    let filtered = |id: &str| {
        let mut setup = interacting(id, automatic());
        setup.input_filter = Some(Callback { id: 1, hook: Rc::new(()) });
        setup
    };
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = pausing(0, 0, false);
    finish(&mut host, &mut service, interacting("r0", automatic()), "Zero");
    host.append(&json!({ "messages": [{ "role": "user", "content": "Later." }] }), CHAT).unwrap();
    service.pauses.next = 1;
    host.filter = Box::new(|mut body| {
        body["generation_config"] = json!({ "temperature": 0 });
        let items = body["input"].as_array_mut().unwrap();
        items.retain(|item| item["content"][0]["text"] != "Later.");
        assert!(body.get("continuation_token").is_none());
        Ok(body)
    });
    finish(&mut host, &mut service, filtered("r1"), "One");
    assert_eq!((tokens(&service), service.sent(1)), (vec!["none", "none", "token_2"], vec!["user: One".to_owned()]));
    finish(&mut host, &mut service, interacting("r2", automatic()), "Two");
    assert_eq!(service.sent(3), ["user: Later.", "user: Two"]);
    // It can add nothing to a hop.
    service.pauses.next = 1;
    let mut asked = 0;
    host.filter = Box::new(move |mut body| {
        asked += 1;
        if asked == 2 {
            body["input"] = json!([{ "type": "user_input", "content": [{ "type": "text", "text": "More" }] }]);
        }
        Ok(body)
    });
    let outcome = ask(&mut host, &mut service, filtered("r3"), "Three");
    assert_eq!(outcome.error.unwrap().code, ErrorCode::InvalidInput);
    assert!(service.invalid.is_empty(), "{:?}", service.invalid);
}

#[test]
fn r23_r77_a_hop_has_nothing_that_was_stored_meanwhile() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut service = pausing(0, 2, false);
    let mut calls = 0;
    host.start(interacting("r1", automatic()), "One").unwrap();
    let outcome = host.drive(|body| {
        calls += 1;
        if calls == 2 {
            let mut other = Host::open(&store, "s", "other");
            let told = json!({ "messages": [{ "role": "system", "content": "Answer in French." },
                { "role": "user", "content": "By the way." }] });
            other.append(&told, CHAT).unwrap();
        }
        service.answer(body)
    });
    assert_eq!(outcome.unwrap().status, RunStatus::Finished);
    host.refresh();
    assert!(service.requests.iter().all(|request| request["system_instruction"] == "Be brief."));
    finish(&mut host, &mut service, interacting("r2", automatic()), "Two");
    assert_eq!(service.sent(3), ["user: By the way.", "user: Two"]);
    assert_eq!(service.requests[3]["system_instruction"], "Be brief.\n\nAnswer in French.");
    assert!(service.invalid.is_empty() && service.refused.is_empty(), "{:?}", service.invalid);
}

#[test]
fn r77_hops_count_as_model_calls() {
    for owner in [StateOwner::Session, automatic()] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = pausing(0, 9, false);
        let setup = RunSetup { max_turns: 3, ..interacting("r1", owner.clone()) };
        let error = ask(&mut host, &mut service, setup, "One").error.unwrap();
        assert_eq!((error.code, service.requests.len()), (ErrorCode::MaxTurns, 3));
        assert!(error.message.starts_with("the answer is not finished"), "{}", error.message);
        host.resume(RunSetup { max_turns: 30, ..interacting("r1", owner) }).unwrap();
        let outcome = host.drive(|body| service.answer(body)).unwrap();
        assert_eq!((outcome.status, service.requests.len()), (RunStatus::Finished, 10));
    }
}

#[test]
fn r77_a_run_that_is_resumed_as_one_of_an_agent_says_that_nothing_continues_its_answer() {
    for owner in [StateOwner::Session, automatic()] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = pausing(0, 1, false);
        host.start(interacting("r1", owner.clone()), "One").unwrap();
        let mut calls = 0;
        let ended = host.drive(|body| {
            calls += 1;
            if calls == 2 { Answer::Hang } else { service.answer(body) }
        });
        assert!(ended.is_none());
        let mut host = Host::open(&store, "s", "h2");
        let mut other = interacting("r1", owner);
        other.provider.params = Json::parse(r#"{"agent":"deep-research-pro"}"#).unwrap();
        assert_eq!(host.resume(other).err().map(|error| error.code), Some(ErrorCode::ConfigInvalid));
    }
}

#[test]
fn r77_a_part_ends_with_any_step_of_the_service() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let search = json!({ "type": "google_search_call", "id": "s1", "arguments": { "queries": ["x"] } });
    let found = json!({ "type": "google_search_result", "call_id": "s1", "result": [] });
    let said = json!({ "type": "model_output", "content": [{ "type": "text", "text": "It is there." }] });
    let mut answers = [
        json!({ "id": "", "status": "requires_continuation", "continuation_token": "t", "steps": [&search] }),
        json!({ "id": "", "status": "completed", "steps": [&found, &said] }),
    ]
    .into_iter();
    let outcome = host.ask(interacting("r1", StateOwner::Session), "Where?", |_| {
        Answer::Status(200, Vec::new(), answers.next().unwrap().to_string())
    });
    assert_eq!((outcome.status, &*outcome.text.decode()), (RunStatus::Finished, "It is there."));
    let body: Value = serde_json::from_slice(&host.render(INTERACTIONS).body).unwrap();
    assert_eq!(body["input"].as_array().unwrap()[1..], [search, found, said]);
}

#[test]
fn r77_a_token_comes_with_the_end_of_a_stream_or_with_the_status_that_needs_it() {
    for without_end in [false, true] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut service = pausing(0, 1, true);
        service.pauses.without_end = without_end;
        let variant = (automatic(), true, Persistence::Run);
        finish(&mut host, &mut service, run("r1", &variant), "One");
        assert_eq!(tokens(&service), ["none", "token_1"], "{without_end}");
    }
}
