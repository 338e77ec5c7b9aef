//! R63: what a model, a server or an import controls costs memory in proportion to its size. Counted are the bytes that
//! are allocated with N and with 2N, freed ones too, and the allocations: what is copied again at each step grows with
//! the square, and so does what is looked up again. Time is the bench's (`npm run bench -- growth --node`).

use crate::allocated;
use rethread::history::{
    History, HistoryEntry, Incoming, JoinBase, JoinedEntries, NewResult, Origin, join, join_results,
};
use rethread::id::{CountingIds, Seed};
use rethread::json::{Json, JsonRef};
use rethread::message::Dialect;
use rethread::provider::{RepairOptions, StreamAssembler, decode_body, repair};
use rethread::render::convert;
use rethread::run::{
    JournalCache, JournalEntry, PendingTurn, Persistence, RunHolder, RunStart, StoredProvider, find_answered_call,
};
use rethread::store::{
    Change, JournalChange, JournalStep, MemoryStore, SessionLog, commit, open_session, read_journal_from,
};
use rethread::tool::{ToolInvocation, ToolResult};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Vectors and tables double, so twice the work may be a little more than twice the bytes.
fn grows_in_proportion(name: &str, work: impl Fn(usize)) {
    let small = allocated(|| work(500));
    let large = allocated(|| work(1_000));
    assert!(large.bytes * 2 < small.bytes * 5, "{name}: {} bytes of 500, {} of 1000", small.bytes, large.bytes);
    assert!(large.count * 2 < small.count * 5, "{name}: {} allocations of 500, {} of 1000", small.count, large.count);
}

const DIALECTS: [Dialect; 4] = [Dialect::OpenAiChat, Dialect::OpenAiResponses, Dialect::Anthropic, Dialect::Gemini];

/// One answer with `count` calls, and their results.
fn body(dialect: Dialect, count: usize, answered: bool) -> Value {
    let each = |make: &dyn Fn(usize) -> Value| -> Vec<Value> { (0..count).map(make).collect() };
    let id = |at: usize| format!("call_{at}");
    let (calls, results): (Vec<_>, Vec<_>) = match dialect {
        Dialect::OpenAiResponses => (
            each(&|at| json!({ "type": "function_call", "call_id": id(at), "name": "look", "arguments": "{}" })),
            each(&|at| json!({ "type": "function_call_output", "call_id": id(at), "output": "r" })),
        ),
        Dialect::Anthropic => (
            each(&|at| json!({ "type": "tool_use", "id": id(at), "name": "look", "input": {} })),
            each(&|at| json!({ "type": "tool_result", "tool_use_id": id(at), "content": "r" })),
        ),
        Dialect::Gemini => (
            each(&|at| json!({ "functionCall": { "name": "look", "args": { "n": at } } })),
            each(&|at| json!({ "functionResponse": { "name": "look", "response": { "n": at } } })),
        ),
        _ => (
            each(&|at| json!({ "id": id(at), "type": "function", "function": { "name": "look", "arguments": "{}" } })),
            each(&|at| json!({ "role": "tool", "tool_call_id": id(at), "content": "r" })),
        ),
    };
    let results = if answered { results } else { Vec::new() };
    match dialect {
        Dialect::OpenAiResponses => {
            let items = [&[json!({ "role": "user", "content": "go" })], &calls[..], &results[..]].concat();
            json!({ "input": items })
        }
        Dialect::Anthropic | Dialect::Gemini => {
            let (list, parts, model) = if dialect == Dialect::Gemini {
                ("contents", "parts", "model")
            } else {
                ("messages", "content", "assistant")
            };
            let question = if dialect == Dialect::Gemini {
                json!({ "text": "go" })
            } else {
                json!({ "type": "text", "text": "go" })
            };
            let mut turns = vec![json!({ "role": "user", parts: [question] }), json!({ "role": model, parts: calls })];
            turns.extend((!results.is_empty()).then(|| json!({ "role": "user", parts: results })));
            json!({ "model": "m", "max_tokens": 1, list: turns })
        }
        _ => {
            let answer = json!({ "role": "assistant", "content": null, "tool_calls": calls });
            {
                let messages = [&[json!({ "role": "user", "content": "go" }), answer], &results[..]].concat();
                json!({ "model": "m", "messages": messages })
            }
        }
    }
}

#[test]
fn r32_r63_parallel_calls_are_repaired_in_linear_time() {
    for dialect in DIALECTS {
        for answered in [true, false] {
            grows_in_proportion(&format!("repair {dialect:?}"), |count| {
                let _ =
                    repair(body(dialect, count, answered).to_string().as_bytes(), dialect, &RepairOptions::default());
            });
        }
    }
}

#[test]
fn r63_parallel_calls_are_converted_in_linear_time() {
    for from in DIALECTS {
        for to in DIALECTS {
            grows_in_proportion(&format!("convert {from:?} to {to:?}"), |count| {
                let given = body(from, count, true).to_string();
                convert(given.as_bytes(), from, to, &RepairOptions::default()).unwrap();
            });
        }
    }
}

#[test]
fn r63_parallel_calls_are_joined_in_linear_time() {
    for dialect in DIALECTS {
        grows_in_proportion(&format!("join {dialect:?}"), |count| {
            let text = body(dialect, count, true).to_string();
            let mut calls = decode_body(dialect, JsonRef::parse(&text).unwrap()).unwrap();
            let results = calls.split_off(calls.iter().position(|item| matches!(item, Incoming::Result(_))).unwrap());
            let (ids, mut history) = (CountingIds::default(), History::new(Seed(7)));
            for items in [calls, results] {
                let joined = join(JoinBase::history(&history), items, &Origin::default(), &ids);
                joined.entries.into_iter().for_each(|entry| history.apply(entry));
            }
            assert!(history.invocations().iter().all(|call| call.result.is_some()));
        });
    }
}

/// Appends `count` open calls in one answer, then their results, each in an append of its own; `join` joins one.
fn answers_one_by_one(
    dialect: Dialect,
    count: usize,
    join_result: &dyn Fn(&History, Incoming, &CountingIds) -> JoinedEntries,
) {
    let text = body(dialect, count, true).to_string();
    let mut items = decode_body(dialect, JsonRef::parse(&text).unwrap()).unwrap();
    let results = items.split_off(items.iter().position(|item| matches!(item, Incoming::Result(_))).unwrap());
    let (ids, store) = (CountingIds::default(), MemoryStore::default());
    let log = RefCell::new(block_on(open_session(&store, "s", Seed(7), 1)).unwrap());
    let append = |joined: JoinedEntries, at: usize| {
        let change = Change { operation: format!("append {at}"), at: 1, entries: joined.entries, ..Change::default() };
        block_on(commit(&store, &log, &change)).unwrap();
    };
    let joined = join(JoinBase::history(&log.borrow().history), items, &Origin::default(), &ids);
    append(joined, 0);
    assert_eq!(log.borrow().history.open_calls().count(), count);
    for (at, result) in results.into_iter().enumerate() {
        let joined = join_result(&log.borrow().history, result, &ids);
        append(joined, at + 1);
    }
    assert_eq!(log.borrow().history.open_calls().count(), 0);
    assert!(log.borrow().history.set_aside().is_empty());
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store waits for nothing"),
    }
}

#[test]
fn r63_r75_results_that_come_one_by_one_cost_in_proportion_to_the_new() {
    for dialect in DIALECTS {
        grows_in_proportion(&format!("append {dialect:?}"), |count| {
            answers_one_by_one(dialect, count, &|history, result, ids| {
                join(JoinBase::history(history), vec![result], &Origin::default(), ids)
            });
        });
        // As `Session.answer` does.
        grows_in_proportion(&format!("answer {dialect:?}"), |count| {
            answers_one_by_one(dialect, count, &|history, result, _| {
                let Incoming::Result(result) = result else { panic!("{result:?}") };
                let open = || history.open_calls().next().unwrap().id.clone();
                let call = if result.call_id.is_empty() { open() } else { result.call_id };
                let result = ToolResult { content: result.content, is_error: false, dialect: None, template: None };
                let mut joined = JoinedEntries::default();
                let answer = NewResult { call, result, finished_at: None };
                join_results(history, &mut joined, vec![(answer, None)], &Origin::default()).unwrap();
                joined
            });
        });
    }
}

/// Begins a run whose journal has `count` asynchronous calls. Returns its log and the ids of the calls.
fn run_with_open_calls(store: &MemoryStore, count: usize) -> (RefCell<SessionLog>, Vec<String>) {
    let text = body(Dialect::OpenAiChat, count, false).to_string();
    let items = decode_body(Dialect::OpenAiChat, JsonRef::parse(&text).unwrap()).unwrap();
    let joined = join(JoinBase::history(&History::new(Seed(7))), items, &Origin::default(), &CountingIds::default());
    let (mut messages, mut invocations) = (Vec::new(), Vec::new());
    for entry in joined.entries {
        match entry {
            HistoryEntry::Message(message) => messages.push(message),
            HistoryEntry::Invocation(call) => {
                invocations.push(ToolInvocation { is_async: true, is_deferred: true, ..call });
            }
            entry => panic!("{entry:?}"),
        }
    }
    let ids = invocations.iter().map(|call| call.id.clone()).collect();
    let answer = messages.pop().unwrap();
    let provider = StoredProvider {
        dialect: Dialect::OpenAiChat,
        url: "https://m".into(),
        params: Json::parse("{}").unwrap(),
        stream: false,
        headers: Vec::new(),
        system_role: None,
        reasoning_field: None,
        no_stream_usage: false,
    };
    let persistence = Persistence::Run;
    let start =
        RunStart { run: "run".into(), at: 1, provider, input: messages, persistence, calls: Vec::new(), base: None };
    let entries = [JournalEntry::Began(start), JournalEntry::Answered { message: answer, invocations }];
    let journal = JournalChange {
        run: "run".into(),
        epoch: 0,
        lease_until: 0,
        lease_ended_by: None,
        step: JournalStep::Begin(entries.iter().map(JournalEntry::seal).collect()),
    };
    let log = RefCell::new(block_on(open_session(store, "s", Seed(7), 1)).unwrap());
    let change = Change { operation: "begin".into(), at: 1, journal: Some(journal), ..Change::default() };
    block_on(commit(store, &log, &change)).unwrap();
    (log, ids)
}

#[test]
fn r63_r75_answers_to_an_unfinished_run_cost_in_proportion_to_the_new() {
    grows_in_proportion("answers to a run", |count| {
        let store = MemoryStore::default();
        let (log, ids) = run_with_open_calls(&store, count);
        let mut journals = JournalCache::default();
        for (at, id) in ids.iter().enumerate() {
            // As `Session.answer` does.
            let entry = log.borrow().head.runs[0].clone();
            let from = journals.next_record(&entry);
            if from < entry.entries {
                let records = block_on(read_journal_from(&store, "s", &entry, from)).unwrap();
                journals.add(&entry, &records, Seed(7)).unwrap();
            }
            let turn = journals.turn(&entry).unwrap();
            let turns = [PendingTurn { run: "run", turn, records: entry.entries, holder: RunHolder::Elsewhere }];
            let found = find_answered_call(&log.borrow().history, &turns, id).unwrap();
            let content = Json::parse("\"r\"").unwrap();
            let result = ToolResult { content, is_error: false, dialect: None, template: None };
            let answer = NewResult { call: id.clone(), result, finished_at: None };
            let entries = vec![HistoryEntry::Result(answer.answer_to(found.call.id, &Origin::default()))];
            let change = Change { operation: format!("answer {at}"), at: 1, entries, ..Change::default() };
            block_on(commit(&store, &log, &change)).unwrap();
        }
        assert!(ids.iter().all(|id| log.borrow().history.early_result(id).is_some()));
    });
}

fn assembles(dialect: Dialect, name: &str, events: &dyn Fn(usize) -> Vec<Value>) {
    grows_in_proportion(name, |count| {
        let mut assembler = StreamAssembler::new(dialect);
        for event in events(count) {
            assembler.push(format!("data: {event}\n\n").as_bytes(), &mut Vec::new());
        }
        assert_eq!(assembler.finish().calls.len(), count);
    });
}

#[test]
fn r63_calls_in_a_stream_are_assembled_in_linear_time() {
    assembles(Dialect::OpenAiResponses, "responses by item_id", &|count| {
        let item = |at: usize, arguments: &str| json!({ "id": format!("fc_{at}"), "type": "function_call", "call_id": format!("call_{at}"), "name": "look", "arguments": arguments });
        let added = (0..count).map(|at| json!({ "type": "response.output_item.added", "item": item(at, "") }));
        let delta = (0..count).map(|at| json!({ "type": "response.function_call_arguments.delta", "item_id": format!("fc_{at}"), "delta": "{}" }));
        let done = (0..count).map(|at| json!({ "type": "response.output_item.done", "item": item(at, "{}") }));
        added
            .chain(delta)
            .chain(done)
            .chain([json!({ "type": "response.completed", "response": { "status": "completed", "output": [] } })])
            .collect()
    });
    assembles(Dialect::OpenAiChat, "chat by index", &|count| {
        let chunk = |call: Value| json!({ "choices": [{ "delta": { "tool_calls": [call] } }] });
        let open = (0..count).map(|at| {
            chunk(json!({ "index": at, "id": format!("call_{at}"), "function": { "name": "look", "arguments": "" } }))
        });
        let more = (0..count).map(|at| chunk(json!({ "index": at, "function": { "arguments": "{}" } })));
        open.chain(more).chain([json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] })]).collect()
    });
}

#[test]
fn r63_calls_that_wait_for_confirmations_are_read_in_proportion() {
    // A type that has to be decoded counts each time that an entry is read.
    let body = |count: usize| {
        let call = |at: usize| {
            format!(
                r#"{{"type":"function\u002ecall","tool_call_id":"c{at}","name":"f","arguments":"{{}}","confirmation_status":"pending"}}"#
            )
        };
        format!(r#"{{"model":"m","inputs":[{}]}}"#, (0..count).map(call).collect::<Vec<_>>().join(","))
    };
    let bodies = [body(500), body(1_000)];
    grows_in_proportion("confirmations", |count| {
        let text = if count == 500 { &bodies[0] } else { &bodies[1] };
        decode_body(Dialect::MistralConversations, JsonRef::parse(text).unwrap()).unwrap();
    });
}
