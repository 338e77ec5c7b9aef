//! Runs driven by a scripted host: what they store, what a kill leaves, what a failure leaves.

#![allow(clippy::unnecessary_get_then_check)]

mod answered_calls;
mod anthropic;
mod approval_ids;
mod approval_orders;
mod approvals;
mod async_tools;
mod background;
mod bound_reasoning;
mod changed_bodies;
mod credentials;
mod cut_chats;
mod cut_histories;
mod cuts;
mod early_results;
mod failures;
mod gemini;
mod handoffs;
mod healing;
mod kept_choices;
mod kills;
mod last_requests;
mod late_results;
mod leases;
mod makers;
mod modes;
mod overtaken_results;
mod prefixes;
mod properties;
mod provider_compaction;
mod providers;
mod redaction;
mod reducers;
mod refused_tokens;
mod rejected_params;
mod response_limit;
mod resumed_saves;
mod retries;
mod run_state;
mod scripts;
mod snapshots;
mod unread_reasoning;

use crate::binding_provider;
use crate::scripted_host;
use crate::spy_store;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use rethread::error::ErrorCode;
use rethread::history::{HistoryEntry, LogRecord};
use rethread::message::{Dialect, Role};
use rethread::run::{OnInterrupted, RunStatus, ToolSettings};
use rethread::store::{AuditQuery, AuditRow, Change, LogStore, MemoryStore, RecordKind, Table, commit, open_record};
use rethread::tool::InvocationStatus;
use scripted_host::*;
use serde_json::json;

const MISTRAL: Dialect = Dialect::Mistral;
const WAYS: [(Dialect, bool); 8] = [
    (CHAT, false),
    (CHAT, true),
    (CLAUDE, false),
    (CLAUDE, true),
    (MISTRAL, false),
    (MISTRAL, true),
    (RESPONSES, false),
    (RESPONSES, true),
];

/// Roles of the session's messages, in order.
fn roles(host: &Host<'_>) -> Vec<Role> {
    host.log.borrow().history.messages().iter().map(|message| message.role).collect()
}

/// Call ids with round, place and status.
fn calls_in(host: &Host<'_>) -> Vec<(String, u32, u32, InvocationStatus)> {
    host.log
        .borrow()
        .history
        .invocations()
        .iter()
        .map(|call| (call.call_id.clone(), call.round, call.place, call.status))
        .collect()
}

/// A reader that was not there sees the same.
fn reopened<'s>(host: &Host<'s>) -> Host<'s> {
    let id = host.log.borrow().head.id.clone();
    let other = Host::open(host.store, &id, "reader");
    let (a, b) = (host.log.borrow(), other.log.borrow());
    assert_eq!(a.history.messages(), b.history.messages());
    assert_eq!(a.history.invocations(), b.history.invocations());
    assert_eq!(a.head, b.head);
    assert!(b.findings.is_empty(), "{:?}", b.findings);
    drop((a, b));
    other
}

#[test]
fn r01_r15_a_tool_loop_is_one_append_with_rounds_and_places() {
    for (dialect, stream) in WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let outcome = host.ask(setup("run", dialect, stream), "Go", three_tools);
        assert_eq!(outcome.status, RunStatus::Finished, "{:?}", outcome.error);
        assert_eq!((outcome.model_calls, outcome.saved, outcome.text.decode().as_ref()), (3, true, "All done."));
        assert_eq!(outcome.usage.map(|usage| (usage.input, usage.output)), Some((30, 15)));

        assert_eq!(roles(&host), [Role::User, Role::Assistant, Role::Assistant, Role::Assistant]);
        let ok = InvocationStatus::Ok;
        assert_eq!(
            calls_in(&host),
            [("call_a".into(), 0, 0, ok), ("call_b".into(), 0, 1, ok), ("call_c".into(), 1, 0, ok)]
        );
        assert_eq!(host.ran.len(), 3);
        let log = host.log.borrow();
        for call in log.history.invocations() {
            let message = log.history.message(&call.message_id).expect("its message");
            assert_eq!(message.role, Role::Assistant);
            assert!(log.history.calls_of(message).any(|own| own.id == call.id));
            assert!(call.started_at.is_some() && call.finished_at > call.started_at);
        }
        drop(log);

        // One record of the log, and nothing left of the journal.
        let records = host.records(Table::Log);
        assert_eq!(records.len(), 1);
        let record: LogRecord = open_record(RecordKind::Log, &records[0].value).unwrap();
        assert_eq!(record.run.as_deref(), Some("run"));
        assert_eq!(record.entries.len(), 7);
        assert!(host.records(Table::Runs).is_empty() && host.pending().is_empty());
        let log = host.log.borrow();
        // The journal's writes moved the store's revision, the append alone moved that of history.
        assert_eq!((log.head.history_revision, outcome.revision), (1, 1));
        assert!(log.revision > 1);
        drop(log);

        // The audit table, over all sessions.
        let page =
            block_on(store.invocations(&AuditQuery { tool: Some("look".into()), ..AuditQuery::default() })).unwrap();
        let rows: Vec<AuditRow> =
            page.items.iter().map(|(_, record)| open_record(RecordKind::Audit, &record.value).unwrap()).collect();
        assert_eq!(
            rows.iter().map(|row| (row.call_id.as_str(), row.round, row.place, row.status)).collect::<Vec<_>>(),
            [("call_a", 0, 0, ok), ("call_c", 1, 0, ok)]
        );
        assert!(rows.iter().all(|row| row.record == records[0].key && row.result_bytes > Some(0)));
        assert_eq!(page.items[0].1.index.as_ref().unwrap().status, "ok");
        reopened(&host);
    }
}

#[test]
fn r01_a_message_refers_to_its_calls_and_copies_none() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let model = |body: &serde_json::Value| {
        Answer::Say(if rounds_in(body) == 0 {
            calls(&[("call_a", "look", r#"{"secret":"xyzzy"}"#)])
        } else {
            text("ok")
        })
    };
    host.ask(setup("run", CHAT, false), "Go", model);
    let record: LogRecord = open_record(RecordKind::Log, &host.records(Table::Log)[0].value).unwrap();
    for entry in record.entries {
        if let HistoryEntry::Message(message) = entry {
            assert!(!format!("{message:?}").contains("xyzzy"), "{message:?}");
        }
    }
}

#[test]
fn r03_the_next_request_begins_with_the_bytes_of_the_previous_one() {
    for (dialect, stream) in WAYS {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.ask(setup("one", dialect, stream), "Go", three_tools);
        let list = if dialect == RESPONSES { "input" } else { "messages" };
        let last = host.asked.last().unwrap()[list].as_array().unwrap().len();
        let mut bodies = Vec::new();
        host.start(setup("two", dialect, stream), "And now?").unwrap();
        let rendered = host.drive(|body| {
            bodies.push(body.clone());
            Answer::Say(text("Yes."))
        });
        assert_eq!(rendered.unwrap().status, RunStatus::Finished);
        let (before, after) = (host.asked[2][list].as_array().unwrap(), bodies[0][list].as_array().unwrap());
        assert_eq!(&after[..last], &before[..], "{dialect:?}");
        // Results stand right behind their calls, rounds before the final text.
        let shape: Vec<_> = after.iter().map(|m| m["role"].as_str().or(m["type"].as_str()).unwrap()).collect();
        match dialect {
            CLAUDE => assert_eq!(shape, ["user", "assistant", "user", "assistant", "user", "assistant", "user"]),
            RESPONSES => {
                let (call, output) = ("function_call", "function_call_output");
                let first = ["user", "reasoning", "assistant", call, call, output, output];
                let then = ["reasoning", call, output, "reasoning", "assistant", "user"];
                assert_eq!(shape, [&first[..], &then[..]].concat());
            }
            _ => assert_eq!(
                shape,
                ["system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "user"]
            ),
        }
        assert_eq!(host.render(dialect).stable_prefix as usize, after.len());
    }
}

#[test]
fn r20_streamed_and_whole_answers_are_stored_as_the_same_bytes() {
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        let mut all = Vec::new();
        for (stream, piece) in [(false, 0), (true, 1), (true, 7), (true, 1_000_000)] {
            let store = MemoryStore::default();
            let mut host = Host::open(&store, "s", "h");
            host.stream_piece = piece;
            assert_eq!(host.ask(setup("run", dialect, stream), "Go", three_tools).status, RunStatus::Finished);
            let both = [Table::Log, Table::ToolInvocations].map(|table| host.records(table));
            all.push(both);
        }
        for other in &all[1..] {
            assert_eq!(&all[0], other, "{dialect:?}");
        }
    }
}

#[test]
fn r02_results_are_assigned_to_their_calls_in_any_order() {
    for dialect in [CHAT, CLAUDE, RESPONSES] {
        let bodies: Vec<_> = [0_usize, 1]
            .into_iter()
            .map(|order| {
                let store = MemoryStore::default();
                let mut host = Host::open(&store, "s", "h");
                host.pick = Box::new(move |_| order);
                host.ask(setup("run", dialect, false), "Go", three_tools);
                let order: Vec<_> = host.ran.iter().map(|(id, ..)| id.clone()).collect();
                (order, host.asked[1].clone())
            })
            .collect();
        assert_eq!(bodies[0].0, ["call_a", "call_b", "call_c"]);
        assert_eq!(bodies[1].0, ["call_b", "call_a", "call_c"]);
        assert_eq!(bodies[0].1, bodies[1].1);
    }
}

#[test]
fn r15_a_turn_is_stored_whole_after_the_appends_of_another_writer() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut other = Host::open(&store, "s", "o");
    let mut count = 0;
    let outcome = host.ask(setup("run", CHAT, false), "Go", |body| {
        // Between any two model calls the other tab has a turn of its own; it uses the same call ids.
        let before = other.asked.len();
        other.ask(setup(&format!("other-{count}"), CHAT, false), "Me too", |body| {
            Answer::Say(if rounds_in(body) == 0 { calls(&[("call_a", "find", "{}")]) } else { text("Other.") })
        });
        assert!(other.asked.len() > before);
        count += 1;
        three_tools(body)
    });
    assert_eq!((outcome.status, outcome.saved), (RunStatus::Finished, true));
    let log = host.log.borrow();
    let runs: Vec<_> = log.history.messages().iter().map(|message| message.run_id.clone().unwrap()).collect();
    let own = runs.iter().position(|run| run == "run").unwrap();
    assert_eq!(own, 9, "{runs:?}");
    assert!(runs[own..].iter().all(|run| run == "run") && runs.len() == 13);
    let seqs: Vec<_> = log.history.messages().iter().map(|message| message.seq).collect();
    assert_eq!(seqs, (0..13).collect::<Vec<_>>());
    let turns: Vec<_> = log.history.messages().iter().map(|message| message.turn).collect();
    assert_eq!(turns, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3]);
    drop(log);
    let mut reader = reopened(&host);
    reader.render(CHAT);
    reader.render(CLAUDE);
}

#[test]
fn r15_an_expected_revision_ignores_journal_writes() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.ask(setup("one", CHAT, false), "Hi", |_| Answer::Say(text("Hello.")));
    let revision = host.log.borrow().head.history_revision;
    // A run that is under way has written its journal only.
    let mut other = Host::open(&store, "s", "o");
    other.start(setup("two", CHAT, false), "Wait").unwrap();
    assert!(other.drive(|_| Answer::Hang).is_none());
    let entries = host
        .log
        .borrow()
        .history
        .messages()
        .iter()
        .take(1)
        .map(|message| {
            HistoryEntry::Message(rethread::message::Message { id: "mine".into(), run_id: None, ..message.clone() })
        })
        .collect();
    let change = Change { operation: "cas".into(), at: 5, entries, expected: Some(revision), ..Change::default() };
    let written = block_on(commit(&store, &host.log, &change)).unwrap().revision;
    assert_eq!((revision, written), (1, 2));
    assert!(host.log.borrow().revision > written, "the journal's writes moved the store's revision");
    let stale = Change {
        operation: "cas2".into(),
        entries: change.entries.clone(),
        expected: Some(revision),
        ..Change::default()
    };
    let error = block_on(commit(&store, &host.log, &stale)).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(error.details.as_ref().unwrap().as_str().contains(&format!("\"revision\":{written}")));
    assert_eq!(host.log.borrow().history.messages().len(), 3);
}

#[test]
fn r18_a_tool_that_ends_the_run_ends_it() {
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    let mut setup = setup("run", CHAT, false);
    setup.tool_settings.insert("look".into(), ToolSettings { ends_run: true, ..ToolSettings::default() });
    let outcome = host
        .ask(setup.clone(), "Go", |_| Answer::Say(Say { text: "One moment.".into(), ..calls(&[("c", "look", "{}")]) }));
    assert_eq!(
        (outcome.status, outcome.model_calls, outcome.text.decode().as_ref()),
        (RunStatus::Finished, 1, "One moment.")
    );
    host.render(CHAT);
    // Killed between the tool's answer and the append: resumed, it is over without another model call.
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup.clone(), "Go").unwrap();
    host.writes_left = Some(4);
    assert!(host.drive(|_| Answer::Say(Say { text: "One moment.".into(), ..calls(&[("c", "look", "{}")]) })).is_none());
    let mut host = Host::open(&store, "s", "h2");
    host.resume(setup).unwrap();
    let outcome = host.drive(|_| panic!("nothing is to be asked")).unwrap();
    assert_eq!(
        (outcome.status, outcome.model_calls, outcome.text.decode().as_ref()),
        (RunStatus::Finished, 1, "One moment.")
    );
    assert!(host.ran.is_empty());
}

#[test]
fn r18_an_interrupted_tool_runs_again_if_its_tool_allows_it() {
    let store = MemoryStore::default();
    let mut setup = setup("run", CHAT, false);
    setup
        .tool_settings
        .insert("look".into(), ToolSettings { on_interrupted: OnInterrupted::Rerun, ..ToolSettings::default() });
    for attempt in 1..4 {
        let mut host = Host::open(&store, "s", &format!("h{attempt}"));
        if attempt == 1 {
            host.start(setup.clone(), "Go").unwrap();
        } else {
            host.resume(setup.clone()).unwrap();
        }
        // The tool is started, and the host dies in it.
        host.write();
        if attempt == 1 {
            let effect = host.run.as_ref().unwrap().effects()[0].id.clone();
            let body = calls(&[("c", "look", "{}")]).body(CHAT);
            host.reply(&effect, rethread::run::EffectReply::Response { status: 200, headers: Vec::new(), body })
                .unwrap();
            host.write();
        }
        let effect = host.run.as_ref().unwrap().effects()[0].clone();
        let rethread::run::EffectKind::RunTool { attempt: offered, .. } = effect.kind else { panic!("{effect:?}") };
        assert_eq!(offered, attempt);
        host.reply(&effect.id, rethread::run::EffectReply::Started).unwrap();
        host.write();
    }
    let mut host = Host::open(&store, "s", "last");
    host.resume(setup).unwrap();
    assert_eq!(host.drive(|_| Answer::Say(text("ok"))).unwrap().status, RunStatus::Finished);
    assert_eq!(host.ran.iter().map(|(id, _, attempt)| (id.as_str(), *attempt)).collect::<Vec<_>>(), [("c", 4)]);
}

/// The input of a custom tool is free text: no JSON, and no reason to refuse the call.
#[test]
fn r44_a_custom_tool_gets_its_text_and_its_output_is_sent() {
    let chat = json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": { "role": "assistant", "content": null,
        "tool_calls": [{ "id": "c1", "type": "custom", "custom": { "name": "look", "input": "SELECT 1" } }] } }] });
    let responses = json!({ "status": "completed", "output": [{ "type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "look", "input": "SELECT 1" }] });
    for (dialect, answer) in [(CHAT, chat), (RESPONSES, responses)] {
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        let mut asked = 0;
        let outcome = host.ask(setup("run", dialect, false), "Go", |_| {
            asked += 1;
            if asked == 1 { Answer::Bytes(answer.to_string().into_bytes()) } else { Answer::Say(text("Done.")) }
        });
        assert_eq!((outcome.status, host.ran.len()), (RunStatus::Finished, 1), "{dialect:?} {:?}", outcome.error);
        assert_eq!(host.log.borrow().history.invocations()[0].arguments.text(), r#""SELECT 1""#);
        let body = host.asked.last().unwrap();
        if dialect == CHAT {
            assert_eq!(body["messages"][2]["tool_calls"][0]["custom"]["input"], "SELECT 1");
        } else {
            assert_eq!(
                body["input"][1],
                json!({ "type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "look", "input": "SELECT 1" })
            );
            assert_eq!(body["input"][2]["type"], "custom_tool_call_output");
        }
    }
}
