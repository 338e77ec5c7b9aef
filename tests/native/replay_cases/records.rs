//! Tool records: how they are made of messages (R2), shown again (R3 to R5), and what a broken one costs (R7).

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::block_on;
use super::*;
use rethread::history::HistoryEntry;
use rethread::json::JsonStr;
use rethread::replay::DanglingCalls;
use rethread::store::{Batch, Change, LogStore, MemoryStore, Query, SessionLog, Table, commit, open_session};
use rethread::synthetic_result::{INTERRUPTED, NOT_RUN};
use rethread::tool::Arguments;
use std::cell::RefCell;

fn omit() -> Policy {
    let layer = PolicyLayer { dangling_calls: Some(DanglingCalls::Omit), ..PolicyLayer::default() };
    Policy { call: layer, ..always() }
}

#[test]
fn trf_a01_parallel_calls_then_results_then_answer_then_question() {
    let chat =
        Chat::of(&[user("q"), calls(&["a", "b"]), result("a", "A"), result("b", "B"), says("done"), user("next")]);
    assert_eq!(chat.lines(&always()), ["user q", "calls a b", "a=A", "b=B", "says done", "user next"]);
}

#[test]
fn trf_a02_calls_are_ordered_by_place_whatever_the_order_of_records() {
    let mut chat = Chat::new();
    let body = Value::from(vec![
        user("q"),
        calls(&["a", "b"]),
        result("b", "B"),
        result("a", "A"),
        calls(&["c"]),
        result("c", "C"),
        says("done"),
    ]);
    let joined = chat.joined(NOW - AGE, CHAT, &body.to_string());
    let (messages, records) = message_entries(joined);
    for entry in records.into_iter().rev().chain(messages) {
        chat.history.apply(entry);
    }
    assert_eq!(
        chat.history.invocations().iter().map(|call| call.call_id.as_str()).collect::<Vec<_>>(),
        ["c", "b", "a"]
    );
    assert_eq!(chat.lines(&always()), ["user q", "calls a b", "a=A", "b=B", "calls c", "c=C", "says done"]);
}

#[test]
fn trf_a03_rounds_may_have_gaps() {
    let chat = Chat::of(&[user("q"), calls(&["a"]), result("a", "A"), calls(&["b"]), result("b", "B"), says("done")])
        .with("a", |call| call.round = 2)
        .with("b", |call| call.round = 7);
    assert_eq!(chat.lines(&always()), ["user q", "calls a", "a=A", "calls b", "b=B", "says done"]);
}

#[test]
fn trf_a04_a_round_without_a_started_call_is_dropped_and_the_next_one_kept() {
    let chat = Chat::of_run(&[user("q"), calls(&["a"]), calls(&["b"]), result("b", "B"), says("done")]);
    assert_eq!(chat.lines(&always()), ["user q", "calls b", "b=B", "says done"]);
}

#[test]
fn trf_a05_an_empty_result_counts_as_a_result_and_an_open_sibling_is_reported() {
    let chat = Chat::of_run(&[user("q"), calls(&["a", "b", "c"]), result("a", "A"), result("c", ""), says("done")]);
    assert_eq!(chat.lines(&omit()), ["user q", "calls a c", "a=A", "c=", "says done"]);
    // R4: its evidence stays unless the application says otherwise.
    assert_eq!(
        chat.lines(&always())[1..5],
        ["calls a b c".to_owned(), "a=A".into(), format!("b={NOT_RUN}"), "c=".into()]
    );
    let started = chat.with("b", |call| call.started_at = Some(NOW - AGE));
    assert_eq!(started.lines(&always())[3], format!("b={INTERRUPTED}"));
}

#[test]
fn trf_a06_without_any_result_only_the_text_is_sent() {
    let chat = Chat::of_run(&[user("q"), calls(&["a", "b"]), says("done")]);
    assert_eq!(chat.lines(&always()), ["user q", "says done"]);
}

#[test]
fn trf_a07_without_any_result_or_text_the_message_is_dropped() {
    let chat = Chat::of_run(&[user("q"), calls(&["a"]), says(""), user("next")]);
    assert_eq!(chat.lines(&always()), ["user q", "user next"]);
    let chat = Chat::of_run(&[user("q"), calls(&["a"]), user("next")]);
    assert_eq!(chat.lines(&always()), ["user q", "user next"]);
}

#[test]
fn trf_a08_rounds_without_an_answer_end_with_their_results() {
    let chat = Chat::of(&[
        user("q"),
        calls(&["a"]),
        result("a", "A"),
        json!({ "role": "assistant", "content": null }),
        user("next"),
    ]);
    assert_eq!(chat.lines(&always()), ["user q", "calls a", "a=A", "user next"]);
}

#[test]
fn trf_a09_an_empty_answer_is_stored_and_never_sent() {
    let chat = Chat::of(&[user("q"), json!({ "role": "assistant", "content": null }), user("next")]);
    assert_eq!(chat.history.messages().len(), 3);
    assert_eq!(chat.lines(&always()), ["user q", "user next"]);
}

#[test]
fn trf_a10_two_empty_ids_become_two_different_ids() {
    let messages = [user("q"), calls(&["", ""]), result("", "A"), result("", "B"), says("done")];
    let lines = Chat::of(&messages).lines(&always());
    let ids: Vec<&str> = lines[1].strip_prefix("calls ").unwrap().split(' ').collect();
    assert!(ids.len() == 2 && ids[0] != ids[1] && ids.iter().all(|id| !id.is_empty()), "{lines:?}");
    assert_eq!(lines[2..4], [format!("{}=A", ids[0]), format!("{}=B", ids[1])]);
    assert_eq!(Chat::of(&messages).lines(&always()), lines, "the same in every build");
}

#[test]
fn trf_a11_an_id_used_in_two_turns_is_made_unique() {
    let turn = [user("q"), calls(&["call_0"]), result("call_0", "A"), says("done")];
    let chat = Chat::of(&turn).and(&turn);
    let lines = chat.lines(&always());
    assert_eq!(lines[1..3], ["calls call_0", "call_0=A"]);
    let second = lines[5].strip_prefix("calls ").unwrap();
    assert_ne!(second, "call_0");
    assert_eq!(lines[6], format!("{second}=A"));
    assert_eq!(chat.history.invocations()[1].call_id, "call_0", "what is stored keeps it");
}

// ---- what a broken record costs, over a store

fn open(store: &dyn LogStore) -> RefCell<SessionLog> {
    RefCell::new(block_on(open_session(store, "s", SEED, 1)).unwrap())
}

struct Named<'n>(&'n str, std::cell::Cell<u32>);

impl rethread::id::IdSource for Named<'_> {
    fn new_id(&self) -> String {
        self.1.set(self.1.get() + 1);
        format!("{}-{}", self.0, self.1.get())
    }
}

fn append(store: &dyn LogStore, log: &RefCell<SessionLog>, name: &str, messages: &[Value]) {
    let body = Value::from(messages).to_string();
    let items = decode_body(CHAT, JsonRef::parse(&body).unwrap()).unwrap();
    let origin = Origin { at: NOW - AGE, ..Origin::default() };
    let joined = join(JoinBase::history(&log.borrow().history), items, &origin, &Named(name, 0.into()));
    let change = Change { operation: name.into(), at: NOW - AGE, entries: joined.entries, ..Change::default() };
    block_on(commit(store, log, &change)).unwrap();
}

/// Flips a bit of a log record.
fn corrupt(store: &MemoryStore, key: u64) {
    let mut record =
        block_on(store.read("s", Query { from: key, to: key, ..Query::all(Table::Log) })).unwrap().remove(0);
    let middle = record.value.len() / 2;
    let mut bytes = record.value.to_vec();
    bytes[middle] ^= 0x40;
    record.value = bytes.into();
    let head = block_on(store.head("s")).unwrap().unwrap();
    let batch = Batch { head: head.value, replace: vec![record], ..Batch::default() };
    block_on(store.append("s", head.revision, batch, "corrupt")).unwrap();
}

fn sources(from: u64, to: u64) -> String {
    let items: Vec<Value> =
        (from..=to).map(|n| json!({ "source_number": n, "content": format!("text {n}") })).collect();
    Value::from(items).to_string()
}

/// Three turns with a call each; the tool numbers on.
fn three_turns() -> MemoryStore {
    let store = MemoryStore::default();
    let log = open(&store);
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        let from = at as u64 * 3;
        append(&store, &log, name, &[user(name), calls(&[name]), result(name, &sources(from, from + 2)), says("done")]);
    }
    store
}

fn log_lines(log: &RefCell<SessionLog>) -> (Vec<String>, Option<u64>) {
    let log = log.borrow();
    render(&log.history, None, CLAUDE, &always());
    let (body, rendered) = render(&log.history, None, CHAT, &always());
    (lines(&body).into_iter().filter(|line| !line.contains('=')).collect(), rendered.max_source)
}

#[test]
fn trf_a12_after_a_lost_record_the_rest_is_readable_and_numbering_continues() {
    // The newest sources are in the record that is lost: the head knows their numbers.
    let store = three_turns();
    corrupt(&store, 2);
    let log = open(&store);
    assert_eq!(log.borrow().findings.len(), 1);
    let (shown, max) = log_lines(&log);
    assert_eq!(shown, ["user a", "calls a", "says done", "user b", "calls b", "says done"]);
    assert_eq!(max, Some(8));
    append(&store, &log, "d", &[user("d"), calls(&["d"]), result("d", &sources(9, 9)), says("done")]);
    assert_eq!((log_lines(&log).1, open(&store).borrow().head.source_high_water), (Some(9), 9));
}

#[test]
fn r07_a_corrupt_record_loses_only_its_own_calls() {
    for lost in 0..3_usize {
        let store = three_turns();
        corrupt(&store, lost as u64);
        let log = open(&store);
        let names: Vec<&str> =
            ["a", "b", "c"].into_iter().enumerate().filter(|(at, _)| *at != lost).map(|(_, name)| name).collect();
        let want: Vec<String> = names
            .iter()
            .flat_map(|name| [format!("user {name}"), format!("calls {name}"), "says done".into()])
            .collect();
        assert_eq!(log_lines(&log), (want, Some(8)));
        // Numbers of turns, calls and records go on behind what is lost.
        append(&store, &log, "d", &[user("d"), calls(&["d"]), result("d", "D"), says("done")]);
        let log = log.borrow();
        let last = log.history.invocations().last().unwrap();
        assert_eq!((last.turn, last.number, last.record), (3, 3, 3));
    }
}

#[test]
fn r07_a_call_or_a_result_without_its_counterpart_is_handled() {
    let store = MemoryStore::default();
    let log = open(&store);
    append(&store, &log, "a", &[user("a"), calls(&["a", "b"]), result("a", "A")]);
    append(&store, &log, "b", &[result("b", "B"), says("done"), user("next")]);
    let whole = log_lines(&log).0;
    assert_eq!(whole, ["user a", "calls a b", "says done", "user next"]);
    let data = store.clone();
    corrupt(&data, 1);
    let (body, _) = render(&open(&data).borrow().history, None, CHAT, &always());
    assert_eq!(lines(&body), ["user a".to_owned(), "calls a b".into(), "a=A".into(), format!("b={INTERRUPTED}")]);

    let store = MemoryStore::default();
    let log = open(&store);
    append(&store, &log, "a", &[user("a"), calls(&["a", "b"]), result("a", "A")]);
    append(&store, &log, "b", &[result("b", "B"), says("done"), user("next")]);
    corrupt(&store, 0);
    let (body, _) = render(&open(&store).borrow().history, None, CHAT, &always());
    assert_eq!(lines(&body), ["says done", "user next"]);
}

#[test]
fn r07_r09_the_highest_source_number_survives_readers_and_writers() {
    let store = three_turns();
    let stale = open(&store);
    append(&store, &open(&store), "d", &[user("d"), calls(&["d"]), result("d", &sources(40, 40)), says("done")]);
    // Another writer, which has not read that yet, appends behind it.
    append(&store, &stale, "e", &[user("e"), says("done")]);
    assert_eq!(log_lines(&stale).1, Some(40));
    // A head that cannot be read: the log says it, and numbering goes on.
    let head = block_on(store.head("s")).unwrap().unwrap();
    let mut value = head.value.to_vec();
    value[8] ^= 1;
    block_on(store.append("s", head.revision, Batch { head: value.into(), ..Batch::default() }, "tamper")).unwrap();
    let log = open(&store);
    assert_eq!(log_lines(&log).1, Some(40));
    append(&store, &log, "f", &[user("f"), says("done")]);
    assert_eq!((log_lines(&open(&store)).1, open(&store).borrow().head.source_high_water), (Some(40), 40));
}

#[test]
fn r09_a_recreated_session_numbers_sources_from_one() {
    let store = three_turns();
    block_on(store.delete_session("s")).unwrap();
    let log = open(&store);
    append(&store, &log, "x", &[user("x"), says("done")]);
    assert_eq!((log_lines(&log).1, log.borrow().head.source_high_water), (None, -1));
}

#[test]
fn trf_a13_a_defective_call_affects_no_other_call() {
    for arguments in ["", "[]", "null", "{oops", "7", "\"x\""] {
        let broken = json!({ "role": "assistant", "content": null, "tool_calls": [call("a", "{}"), call("b", arguments), call("c", "{}")] });
        let chat = Chat::of(&[user("q"), broken, result("a", "A"), result("b", "B"), result("c", "C"), says("done")]);
        assert_eq!(chat.lines(&always()), ["user q", "calls a b c", "a=A", "b=B", "c=C", "says done"], "{arguments}");
    }
    // No content at all is an empty result; its siblings are whole.
    let empty = json!({ "role": "tool", "tool_call_id": "b", "content": null });
    let chat = Chat::of(&[user("q"), calls(&["a", "b"]), result("a", "A"), empty, says("done")]);
    assert_eq!(chat.lines(&always())[..3], ["user q", "calls a b", "a=A"]);
    assert!(chat.call("b").result.is_some());
}

#[test]
fn trf_a17_order_never_depends_on_timestamps() {
    let turn = |text: &str| Value::from(vec![user(text), calls(&[text]), result(text, "R"), says("done")]).to_string();
    let chat = Chat::new().at(9_000, CHAT, &turn("a")).at(0, CHAT, &turn("b")).at(5_000, CHAT, &turn("c"));
    let asked: Vec<String> = chat.lines(&always()).into_iter().filter(|line| line.starts_with("user")).collect();
    assert_eq!(asked, ["user a", "user b", "user c"]);
}

#[test]
fn trf_a18_the_current_turn_is_last_whatever_its_timestamp() {
    let chat = Chat::of(&[user("q"), says("done")]);
    let live = Chat::new().at(1, CHAT, &Value::from(vec![user("now")]).to_string());
    let (body, _) = render(&chat.history, Some(&live.history), CHAT, &always());
    assert_eq!(lines(&body), ["user q", "says done", "user now"]);
}

#[test]
fn trf_a22_missing_arguments_become_an_empty_object() {
    let without = json!({ "id": "d", "type": "function", "function": { "name": "look" } });
    let none = json!({ "id": "c", "type": "function", "function": { "name": "look", "arguments": null } });
    let asks =
        json!({ "role": "assistant", "content": null, "tool_calls": [call("a", "{}"), call("b", ""), none, without] });
    let results: Vec<Value> = ["a", "b", "c", "d"].iter().map(|id| result(id, "R")).collect();
    let chat = Chat::of(&[vec![user("q"), asks], results, vec![says("done")]].concat());
    let (body, _) = chat.render(CHAT, &always());
    for call in body["messages"][1]["tool_calls"].as_array().unwrap() {
        assert_eq!(call["function"]["arguments"], "{}", "{call}");
    }
    let (body, _) = chat.render(CLAUDE, &always());
    for block in body["messages"][1]["content"].as_array().unwrap() {
        assert_eq!(block["input"], json!({}));
    }
}

#[test]
fn trf_a23_an_empty_list_of_calls_is_never_sent() {
    let mut plain = says("x");
    plain["tool_calls"] = json!([]);
    let chat = Chat::of(&[user("q"), says("done"), user("q"), plain]);
    let (body, _) = chat.render(CHAT, &always());
    assert!(!body.to_string().contains("tool_calls"), "{body}");
}

#[test]
fn trf_a24_an_id_of_two_rounds_is_paired_within_the_round() {
    let chat =
        Chat::of(&[user("q"), calls(&["x"]), result("x", "one"), calls(&["x"]), result("x", "two"), says("done")]);
    let lines = chat.lines(&always());
    assert_eq!((lines[1].as_str(), lines[2].as_str()), ("calls x", "x=one"));
    assert!(lines[4].ends_with("=two") && !lines[4].starts_with("x="), "{lines:?}");
}

#[test]
fn trf_a25_a_result_may_come_after_a_later_round() {
    let chat = Chat::of(&[user("q"), calls(&["a"]), calls(&["b"]), result("b", "B"), result("a", "A"), says("done")]);
    assert_eq!(chat.lines(&always()), ["user q", "calls a", "a=A", "calls b", "b=B", "says done"]);
    assert_eq!((chat.call("a").round, chat.call("b").round), (0, 1));
}

#[test]
fn trf_a26_text_beside_calls_is_kept() {
    let mut asks = calls(&["a"]);
    asks["content"] = json!("Let me look.");
    let chat = Chat::of(&[user("q"), asks, result("a", "A"), says("done")]);
    assert_eq!(chat.lines(&always()), ["user q", "says Let me look., calls a", "a=A", "says done"]);
    let (body, _) = chat.render(CLAUDE, &always());
    assert_eq!(body["messages"][1]["content"][0]["text"], "Let me look.");
}

#[test]
fn trf_a27_a_result_of_several_blocks_is_one_result() {
    let blocks = json!([{ "type": "text", "text": "one" }, { "type": "text", "text": "two" }]);
    let shown = json!({ "role": "tool", "tool_call_id": "a", "content": blocks });
    let chat = Chat::of(&[user("q"), calls(&["a"]), shown, says("done")]);
    let (body, _) = chat.render(CHAT, &always());
    assert_eq!(body["messages"][2]["content"], blocks);
    let (body, _) = chat.render(CLAUDE, &always());
    assert_eq!(body["messages"][2]["content"][0]["content"], blocks);
}

#[test]
fn r02_a_failure_is_a_result() {
    let claude = r#"[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"no such city"}]},{"role":"assistant","content":"Sorry."}]"#;
    let chat = Chat::new().at(NOW - AGE, CLAUDE, claude);
    assert_eq!(chat.call("a").status.as_str(), "error");
    let (body, _) = chat.render(CLAUDE, &always());
    assert_eq!(body["messages"][2]["content"][0]["is_error"], true);
    // Where there is no flag the text says it.
    assert_eq!(chat.lines(&always())[2], "a=Error: no such city");
}

#[test]
fn r02_arguments_are_kept_as_the_model_wrote_them() {
    let arguments = r#"{ "n": 12345678901234567890, "n": 1.0 }"#;
    let asks = json!({ "role": "assistant", "content": null, "tool_calls": [call("a", arguments)] });
    let chat = Chat::of(&[user("q"), asks, result("a", "A"), says("done")]);
    assert_eq!(chat.call("a").arguments, Arguments::Text(JsonStr::new(arguments)));
    assert!(
        chat.history.messages().iter().all(|message| !format!("{:?}", message.parts).contains("12345678901234567890"))
    );
}

#[test]
fn r02_a_result_appended_later_is_a_separate_entry() {
    let mut chat = Chat::of(&[user("q"), calls(&["a", "b"]), result("b", "B")]);
    let joined = chat.joined(NOW, CHAT, &Value::from(vec![result("a", "A"), says("done")]).to_string());
    assert!(matches!(&joined.entries[0], HistoryEntry::Result(entry) if entry.invocation == chat.call("a").id));
    for entry in joined.entries {
        chat.history.apply(entry);
    }
    assert_eq!(chat.lines(&always()), ["user q", "calls a b", "a=A", "b=B", "says done"]);
    assert_eq!((chat.call("a").finished_at, chat.call("b").finished_at), (Some(NOW), Some(NOW - AGE)));
}
