//! R70 in bodies that are changed after they were composed: by a filter of the application, or since something was
//! refused.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::bound_reasoning::*;
use super::scripted_host::*;
use rethread::finding::{Finding, PrefixChange};
use rethread::history::{JoinBase, Origin, join};
use rethread::json::Json;
use rethread::message::Dialect;
use rethread::provider::decode_body;
use rethread::replay::{PolicyLayer, StaleUnit};
use rethread::run::RunSetup;
use rethread::store::{Change, MemoryStore, commit};
use rethread::tool::Window;
use serde_json::{Value, json};

fn filtered(id: &str, dialect: Dialect) -> RunSetup {
    RunSetup { input_filter: Some(callback(1)), ..setup_of(id, dialect) }
}

/// The list of a body.
fn items(body: &mut Value) -> &mut Vec<Value> {
    let list = if body["input"].is_array() { "input" } else { "messages" };
    body[list].as_array_mut().unwrap()
}

fn is_question(item: &Value) -> bool {
    item["role"] == "user" && !item["content"].to_string().contains("tool_result")
}

/// The index of a question, by its number.
fn question(items: &[Value], number: usize) -> usize {
    (0..items.len()).filter(|at| is_question(&items[*at])).nth(number).unwrap()
}

type Filter = fn(&mut Vec<Value>);

/// Two turns with calls, and a third one whose body is filtered. Returns what the third one reports.
fn after_two_turns(chat: &mut Chat<'_>, dialect: Dialect, filter: Filter) -> Vec<Finding> {
    chat.ask(setup_of("one", dialect));
    chat.ask(setup_of("two", dialect));
    chat.host.filter = Box::new(move |mut body| {
        filter(items(&mut body));
        Ok(body)
    });
    chat.tell(filtered("three", dialect))
}

#[test]
fn r70_reasoning_in_a_filtered_body_is_compared_with_the_body_that_is_sent() {
    for dialect in BINDING {
        for between in [false, true] {
            let store = MemoryStore::default();
            let mut chat = Chat::new(&store, dialect);
            chat.between = between;
            let report = after_two_turns(&mut chat, dialect, |items| {
                let second = question(items, 1);
                items[second]["content"] = json!("Something else");
            });
            let made = chat.made();
            // Of the first turn all is accepted, of the second one nothing.
            let of_first = made.len() / 2;
            assert_eq!(causes(&report), [PrefixChange::Filter], "{dialect:?} {between}");
            assert_eq!(chat.last_sent(), made[..of_first]);
            // The same filter again: what was made under it goes back.
            let report = chat.tell(filtered("four", dialect));
            assert_eq!(causes(&report), [PrefixChange::Filter]);
            let expected = [&made[..of_first], &made[made.len() - 1..]].concat();
            assert_eq!(chat.last_sent(), expected, "{dialect:?} {between}");
            // Without it, what was made under it does not.
            let report = chat.tell(setup_of("five", dialect));
            assert_eq!(causes(&report), [PrefixChange::Filter], "{report:#?}");
            assert_eq!(chat.last_sent(), made[..made.len() - 1], "{dialect:?} {between}");
        }
    }
}

#[test]
fn r70_a_filter_that_changes_nothing_before_reasoning_leaves_none_out() {
    let filters: [Filter; 3] = [
        |_| {},
        // A cache breakpoint is not compared.
        |items| {
            let Some(last) = items.iter_mut().rev().find(|item| item["role"] == "user") else { return };
            if let Some(text) = last["content"].as_str().map(str::to_owned) {
                last["content"] = json!([{ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } }]);
            }
        },
        |items| {
            let last = items.last_mut().unwrap();
            last["content"] = json!("Something else");
        },
    ];
    for dialect in BINDING {
        for (at, filter) in filters.into_iter().enumerate() {
            if dialect == RESPONSES && at == 1 {
                continue;
            }
            for between in [false, true] {
                let store = MemoryStore::default();
                let mut chat = Chat::new(&store, dialect);
                chat.between = between;
                let report = after_two_turns(&mut chat, dialect, filter);
                let made = chat.made();
                assert_eq!(causes(&report), [], "{dialect:?} {at} {report:#?}");
                assert_eq!(chat.last_sent(), made[..made.len() - 1], "{dialect:?} {at}");
                if at < 2 {
                    assert_eq!(causes(&chat.tell(filtered("four", dialect))), [], "{dialect:?} {at}");
                    assert_eq!(chat.last_sent(), made, "{dialect:?} {at}");
                }
            }
        }
    }
}

/// Bodies that a filter makes of a chat; the provider refuses reasoning after anything else than it was made for.
#[test]
fn r70_a_filter_that_moves_or_drops_items_takes_the_reasoning_that_they_precede() {
    let filters: [(usize, Filter); 4] = [
        // The questions between two answers are gone: the second answer is not the first one's.
        (1, |items| {
            let second = question(items, 1);
            items.remove(second);
        }),
        // The last answer, without its reasoning, and the second question are now before the first answer.
        (0, |items| {
            let last = items.iter().rposition(|item| item["role"] == "assistant").unwrap();
            let mut answer = items.remove(last);
            answer["content"] = json!("Yes?");
            answer.as_object_mut().unwrap().remove("id");
            if items[last - 1]["type"] == "reasoning" {
                items.remove(last - 1);
            }
            let at = question(items, 1);
            let asked = items.remove(at);
            items.splice(1..1, [answer, asked]);
        }),
        (0, |items| drop(items.remove(0))),
        (0, |items| items[0]["content"] = json!("Else")),
    ];
    for dialect in BINDING {
        for (at, (turns, filter)) in filters.into_iter().enumerate() {
            for between in [false, true] {
                let store = MemoryStore::default();
                let mut chat = Chat::new(&store, dialect);
                chat.between = between;
                let report = after_two_turns(&mut chat, dialect, filter);
                let kept = chat.made().len() / 2 * turns;
                assert_eq!(chat.last_sent(), chat.made()[..kept], "{dialect:?} {at} {between}");
                assert_eq!(causes(&report), [PrefixChange::Filter]);
                // The second filter makes something else of each request.
                chat.tell(filtered("four", dialect));
                let made_since = usize::from(at != 1);
                assert_eq!(chat.last_sent().len(), kept + made_since, "{dialect:?} {at}");
            }
        }
    }
}

#[test]
fn r70_reasoning_inside_an_answer_goes_when_a_filter_changes_the_answer_before_it() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        chat.between = true;
        let report = after_two_turns(&mut chat, dialect, |items| {
            // The arguments of the first call of the second turn.
            let second = question(items, 1);
            let change = |call: &mut Value| {
                if call.get("input").is_some() {
                    call["input"] = json!({ "n": 7 });
                } else {
                    call["arguments"] = json!(r#"{"n":7}"#);
                }
            };
            let is_call = |value: &Value| matches!(value["type"].as_str(), Some("tool_use" | "function_call"));
            for item in &mut items[second..] {
                let call = if is_call(item) {
                    Some(&mut *item)
                } else {
                    item["content"].as_array_mut().and_then(|blocks| blocks.iter_mut().find(|block| is_call(block)))
                };
                if let Some(call) = call {
                    return change(call);
                }
            }
            panic!("there is no call");
        });
        assert_eq!(causes(&report), [PrefixChange::Filter], "{dialect:?}");
        let made = chat.made();
        // The reasoning between the calls was made after other arguments, so that answer has none, and neither have
        // later ones.
        assert_eq!(chat.last_sent(), made[..made.len() / 2], "{dialect:?}");
    }
}

#[test]
fn r70_later_reasoning_of_an_answer_goes_when_a_filter_drops_the_first() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        chat.between = true;
        let report = after_two_turns(&mut chat, dialect, |items| {
            let second = question(items, 1);
            let is_reasoning = |value: &Value| matches!(value["type"].as_str(), Some("thinking" | "reasoning"));
            if let Some(at) = (second..items.len()).find(|at| is_reasoning(&items[*at])) {
                items.remove(at);
                items[at].as_object_mut().unwrap().remove("id");
            } else {
                let blocks = items[second + 1]["content"].as_array_mut().unwrap();
                assert!(is_reasoning(&blocks.remove(0)));
            }
        });
        assert_eq!(causes(&report), [PrefixChange::Filter], "{dialect:?}");
        let made = chat.made();
        assert_eq!(chat.last_sent(), made[..made.len() / 2], "{dialect:?}");
    }
}

#[test]
fn r70_what_follows_refused_reasoning_is_left_out_and_the_next_answer_is_made_for_what_was_sent() {
    let error = json!({ "error": { "code": "invalid_encrypted_content", "type": "invalid_request_error",
        "message": "The encrypted content for item rs_sig-2 could not be verified. Reason: Encrypted content could not be decrypted." } });
    let store = MemoryStore::default();
    let mut chat = Chat::new(&store, RESPONSES);
    chat.ask(setup_of("one", RESPONSES));
    chat.ask(setup_of("two", RESPONSES));
    chat.host.start(setup_of("three", RESPONSES), "Well?").unwrap();
    let mut requests = 0;
    let Chat { host, provider, sent, .. } = &mut chat;
    let outcome = host.drive(|body| {
        requests += 1;
        if requests == 1 {
            return Answer::Status(400, Vec::new(), error.to_string());
        }
        answer(&mut provider.borrow_mut(), sent, false, body, &text("Well."))
    });
    let report = outcome.unwrap().report;
    assert_eq!(requests, 2, "{report:#?}");
    assert_eq!(chat.last_sent(), ["sig-0", "sig-1"], "sig-3 was made after sig-2");
    assert!(causes(&report).contains(&PrefixChange::Repair), "{report:#?}");
    chat.tell(setup_of("four", RESPONSES));
    assert_eq!(chat.last_sent(), ["sig-0", "sig-1", "sig-4"]);
}

#[test]
fn r70_an_answer_without_its_reasoning_has_the_calls_of_each_request() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        chat.ask(setup_of("one", dialect));
        for (id, window, calls) in [("two", 0, 1), ("three", 600_000, 2)] {
            let mut setup = setup_of(id, dialect);
            setup.instructions = Some("Be long.".into());
            setup.policy.call = PolicyLayer {
                stale_unit: Some(StaleUnit::Call),
                tool_freshness: [("find".to_owned(), Window::Millis(window))].into(),
                ..setup.policy.call
            };
            chat.tell(setup);
            let body = serde_json::from_slice(chat.host.sent.last().unwrap()).unwrap();
            valid(&body, dialect);
            let text = body.to_string();
            let count =
                ["\"function_call\"", "\"tool_use\""].map(|kind| text.matches(kind).count()).iter().sum::<usize>();
            assert_eq!(count, calls, "{dialect:?} {id}: {text}");
        }
    }
}

#[test]
fn r70_reasoning_without_a_record_of_its_prefix_goes_where_the_request_leaves_out_something_before_it() {
    let body = json!({ "messages": [
        { "role": "user", "content": "Go" },
        { "role": "assistant", "content": [{ "type": "thinking", "thinking": "", "signature": "before" },
            { "type": "tool_use", "id": "call_old", "name": "look", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "call_old", "content": "r" }] },
        { "role": "assistant", "content": [{ "type": "thinking", "thinking": "", "signature": "after" }, { "type": "text", "text": "Done." }] },
    ] });
    for (window, has_later) in [(Window::Always, true), (Window::Millis(0), false)] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let json = Json::parse(&body.to_string()).unwrap();
        let items = decode_body(CLAUDE, json.view()).unwrap();
        let origin = Origin { at: 1_000, ..Origin::default() };
        let joined = join(JoinBase::history(&host.log.borrow().history), items, &origin, &host.ids);
        let change = Change { operation: "import".into(), entries: joined.entries, at: 1_000, ..Change::default() };
        block_on(commit(&store, &host.log, &change)).unwrap();
        let mut setup = setup_of("run", CLAUDE);
        setup.policy.call.freshness = Some(window);
        let outcome = host.ask(setup, "And?", |_| Answer::Say(text("Yes.")));
        let sent = host.asked[0].to_string();
        assert_eq!(sent.contains("\"after\""), has_later, "{sent}");
        let expected: &[PrefixChange] = if has_later { &[] } else { &[PrefixChange::Freshness] };
        assert_eq!(causes(&outcome.report), expected, "{:#?}", outcome.report);
    }
}

#[test]
fn r70_the_finding_names_the_change_since_the_last_reasoning_that_was_sent() {
    for dialect in BINDING {
        let store = MemoryStore::default();
        let mut chat = Chat::new(&store, dialect);
        let fresh = |id: &str| {
            let mut setup = setup_of(id, dialect);
            setup.policy.call.freshness = Some(Window::Millis(60_000));
            setup
        };
        chat.ask(fresh("one"));
        chat.host.clock.advance(70_000);
        // Made when the result was gone already.
        chat.tell(fresh("two"));
        let fact = json!([{ "provider": "rag", "messages": [{ "role": "user", "parts": [{ "type": "text", "text": "fact" }] }] }]);
        chat.host.start_provided(fresh("three"), "Well?", &fact).unwrap();
        chat.drive(|_| text("Well."));
        let report = chat.tell(fresh("four"));
        assert_eq!(causes(&report), [PrefixChange::Freshness, PrefixChange::HistoryProvider], "{report:#?}");
        assert_eq!(chat.last_sent(), chat.made()[2..3], "{dialect:?}");
    }
}
