//! What is read of a session, and written to it without a run: pages, bodies, the state bag, loops of the application.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use super::virtual_host::{Process, World};
use super::{in_mode, roles, start, statuses};
use rethread::error::{Error, ErrorCode};
use rethread::json::Json;
use rethread::message::Role;
use rethread::render::RenderRequest;
use rethread::replay::PolicyLayer;
use rethread::run::{ExternalBody, Persistence};
use rethread::session::{AppendOrigin, LocalFuture, OpenLoop, OpenSession, SessionSettings, audit_page};
use rethread::store::MAIN_BRANCH;
use rethread::store::{AuditQuery, MemoryStore};
use rethread::tool::InvocationStatus;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A session with the turn of three tools.
fn talked() -> (Rc<World>, MemoryStore, Process, Rc<OpenSession>) {
    let (world, data) = (World::new(false), MemoryStore::default());
    let process = Process::new(&world, &data, 1);
    let session = world.run(process.session(SessionSettings::default()));
    let run = world.run(start(&session, in_mode(Persistence::Run, CHAT), "Go")).unwrap();
    world.run(process.drive(&run, &three_tools));
    (world, data, process, session)
}

fn items(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

#[test]
fn r81_r13_pages_of_the_audit_table_have_every_call_once_with_its_payload() {
    let (world, _, process, session) = talked();
    let mut rows = Vec::new();
    let mut cursor = None;
    loop {
        let query = AuditQuery { session: Some("s".into()), limit: 2, cursor, ..AuditQuery::default() };
        let page = world.run(audit_page(&session.context, &query, (None, true))).unwrap();
        rows.extend(items(&page.items));
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    let calls: Vec<_> = rows.iter().map(|row| row["callId"].as_str().unwrap()).collect();
    assert_eq!(calls.len(), 3, "{calls:?}");
    assert!(["call_a", "call_b", "call_c"].iter().all(|call| calls.contains(call)));
    assert!(rows.iter().all(|row| row["status"] == "ok" && row["arguments"]["n"].is_number()), "{rows:?}");
    assert!(process.heard.borrow().warnings.is_empty());
}

#[test]
fn r81_pages_of_messages_are_whole_and_in_order() {
    let (world, _, _, session) = talked();
    let newest = world.run(session.message_page(None, 3, u64::MAX)).unwrap();
    let before = newest.cursor.unwrap().parse().unwrap();
    let oldest = world.run(session.message_page(Some(MAIN_BRANCH), 3, before)).unwrap();
    let shown: Vec<_> = [items(&oldest.items), items(&newest.items)].concat();
    let roles: Vec<_> = shown.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!((roles, oldest.cursor), (vec!["user", "assistant", "assistant", "assistant"], None));
    let unknown = world.run(session.message_page(Some("elsewhere"), 3, u64::MAX)).err().map(|error| error.code);
    assert_eq!(unknown, Some(ErrorCode::NotFound));
}

#[test]
fn r81_a_body_without_a_run_has_what_is_stored_and_the_input() {
    let (world, _, process, session) = talked();
    let (provider, policy) = (provider(CHAT, false), session.policy(PolicyLayer::default(), BTreeMap::new()));
    let request = RenderRequest { provider: &provider, instructions: Some("Be brief."), tools: &[], policy: &policy };
    let mut body = Vec::new();
    world.run(session.render(&request, (words("And now?"), Vec::new(), 1_000_000), &mut body)).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    valid(&body, CHAT);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["content"], "And now?");
    // The conversation as the last request of the run had it, the answer to that, and the input.
    let sent = process.heard.borrow().asked.last().unwrap()["messages"].as_array().unwrap().len();
    assert_eq!(messages.len(), sent + 2);
    assert_eq!(roles(&session).len(), 4, "nothing is stored");
}

#[test]
fn r81_r35_values_of_the_state_bag_are_stored_with_the_next_append() {
    let (world, data, _, session) = talked();
    session.set_state_value("b".into(), Json::parse("1").unwrap());
    session.set_state_value("a".into(), Json::parse(r#"{"x":2}"#).unwrap());
    let other = Process::new(&world, &data, 2);
    let unsaved = world.run(other.session(SessionSettings::default()));
    assert!(unsaved.state_keys().is_empty());
    world.run(session.commit(session.new_change())).unwrap();
    world.run(unsaved.refresh()).unwrap();
    assert_eq!(unsaved.state_keys(), ["a", "b"]);
    assert_eq!(unsaved.state_value("a").map(|value| value.as_str().to_owned()), Some(r#"{"x":2}"#.into()));
    assert!(session.state.borrow().is_empty());
}

#[test]
fn r81_r19_of_two_processes_with_one_loop_the_second_stores_only_what_the_first_has_not() {
    let (world, data) = (World::new(false), MemoryStore::default());
    let body = |messages: Value| {
        let body = Json::parse(&json!({ "model": "m", "messages": messages }).to_string()).unwrap();
        ExternalBody::decode(CHAT, body.view()).unwrap()
    };
    let (user, answer) =
        (json!({ "role": "user", "content": "Go" }), json!({ "role": "assistant", "content": "Gone." }));
    let loops: Vec<_> = [1, 2]
        .iter()
        .map(|number| {
            let process = Process::new(&world, &data, *number);
            let session = world.run(process.session(SessionSettings::default()));
            OpenLoop::new(session, Some(Persistence::Result))
        })
        .collect();
    world.run(loops[0].checkpoint(body(json!([user])))).unwrap();
    let added = world.run(loops[1].checkpoint(body(json!([user, answer])))).unwrap();
    assert_eq!(added.message_ids.len(), 1, "the user's message is there already");
    assert_eq!(roles(&loops[1].session), [Role::User, Role::Assistant]);
    world.run(loops[1].end()).unwrap();
    let ended = world.run(loops[1].checkpoint(body(json!([user, answer])))).err();
    assert!(ended.is_some(), "a loop that has ended takes no checkpoint");
}

async fn append(session: &OpenSession, body: &Value) -> Result<(), Error> {
    let (body, origin) = (Json::parse(&body.to_string()).unwrap(), session.origin(AppendOrigin::default()));
    session.append(&body, Some(CHAT), (&origin, None)).await.map(drop)
}

#[test]
fn r15_a_result_meets_its_call_while_another_refresh_reads_it() {
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let asked = json!({ "messages": [
        { "role": "user", "content": "q" }, { "role": "assistant", "content": null, "tool_calls": [call] },
    ] });
    let answered = json!({ "messages": [{ "role": "tool", "tool_call_id": "c1", "content": "r" }] });
    for steps in 0..12 {
        let (world, data) = (World::new(false), MemoryStore::default());
        let both = [1, 2].map(|number| Process::new(&world, &data, number));
        let [one, two] = both.each_ref().map(|process| world.run(process.session(SessionSettings::default())));
        world.run(append(&one, &asked)).unwrap();
        // The news of the append: it is read while the result is appended.
        let told = two.clone();
        let mut news: LocalFuture<'static, ()> = Box::pin(async move { drop(told.refresh().await) });
        if world.run_steps(&mut news, steps).is_none() {
            both[1].open.context.host.spawn(news);
        }
        // Both go on by turns.
        let (answers, body) = (two.clone(), answered.clone());
        let answer: LocalFuture<'static, ()> = Box::pin(async move { append(&answers, &body).await.unwrap() });
        both[1].open.context.host.spawn(answer);
        world.pass(1_000);
        assert_eq!(statuses(&two), [("c1".to_owned(), InvocationStatus::Ok)], "after {steps} steps");
        assert!(both[1].heard.borrow().warnings.is_empty(), "after {steps} steps");
    }
}
