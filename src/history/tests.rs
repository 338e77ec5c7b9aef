use super::*;
use crate::error::ErrorCode;
use crate::finding::{FindingCode, Report};
use crate::id::{CountingIds, Seed};
use crate::json::JsonRef;
use crate::message::Dialect;
use crate::message::{Message, PartBody, Role};
use crate::provider::decode_body;
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult, Window};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

/// Appends, one body after the other; gives the history and what was found.
fn appended(dialect: Dialect, bodies: &[&str]) -> (History, Report) {
    let mut history = History::new(Seed(1));
    let ids = CountingIds::default();
    let mut report = Report::new();
    for (at, body) in bodies.iter().enumerate() {
        let items = decode_body(dialect, JsonRef::parse(body).unwrap()).unwrap();
        let joined =
            join(JoinBase::history(&history), items, &Origin { at: 10 * (at as u64 + 1), ..Origin::default() }, &ids);
        report.extend(joined.report);
        for entry in joined.entries {
            history.apply(entry);
        }
    }
    (history, report)
}

fn chat(bodies: &[&str]) -> (History, Report) {
    appended(Dialect::OpenAiChat, bodies)
}

fn calls(ids: &[&str]) -> String {
    let list: Vec<_> = ids
        .iter()
        .map(|id| format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#))
        .collect();
    format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, list.join(","))
}

fn result(id: &str, text: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#)
}

const USER: &str = r#"{"role":"user","content":"q"}"#;
const TEXT: &str = r#"{"role":"assistant","content":"x"}"#;

fn list(items: &[&str]) -> String {
    format!("[{}]", items.join(","))
}

/// Call id, turn, round, place, result.
fn rows(history: &History) -> Vec<(String, u32, u32, u32, Option<String>)> {
    let text = |call: &ToolInvocation| {
        call.result.as_ref().and_then(|result| result.content.view().as_text().map(std::borrow::Cow::into_owned))
    };
    history
        .invocations()
        .iter()
        .map(|call| (call.call_id.clone(), call.turn, call.round, call.place, text(call)))
        .collect()
}

fn row(id: &str, turn: u32, round: u32, place: u32, result: Option<&str>) -> (String, u32, u32, u32, Option<String>) {
    (id.into(), turn, round, place, result.map(str::to_owned))
}

fn codes(report: &Report) -> Vec<&'static str> {
    report.iter().map(|finding| finding.code.as_str()).collect()
}

#[test]
fn r02_rounds_and_places() {
    let body = list(&[
        USER,
        &calls(&["a", "b"]),
        &result("b", "rb"),
        &result("a", "ra"),
        &calls(&["c"]),
        &result("c", "rc"),
        TEXT,
        USER,
        &calls(&["d"]),
        &result("d", "rd"),
        TEXT,
    ]);
    let (history, report) = chat(&[&body]);
    assert_eq!(
        rows(&history),
        [
            row("a", 0, 0, 0, Some("ra")),
            row("b", 0, 0, 1, Some("rb")),
            row("c", 0, 1, 0, Some("rc")),
            row("d", 1, 0, 0, Some("rd"))
        ]
    );
    assert!(report.is_empty() && history.open_calls().next().is_none());
    assert_eq!(history.messages().iter().map(|message| message.turn).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1]);
    assert!(
        history.invocations().iter().all(|call| call.finished_at == Some(10) && call.status == InvocationStatus::Ok)
    );
}

#[test]
fn r02_appending_in_parts_gives_the_same_history() {
    let pieces = [
        USER.to_owned(),
        calls(&["a", "b"]),
        result("b", "rb"),
        result("a", "ra"),
        calls(&["c"]),
        result("c", "rc"),
        TEXT.to_owned(),
        USER.to_owned(),
    ];
    let whole = list(&pieces.iter().map(String::as_str).collect::<Vec<_>>());
    let (at_once, _) = chat(&[&whole]);
    let singles: Vec<_> = pieces.iter().map(|piece| format!("[{piece}]")).collect();
    let (one_by_one, report) = chat(&singles.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(rows(&at_once), rows(&one_by_one));
    assert_eq!(
        at_once.messages().iter().map(|m| (m.turn, m.role)).collect::<Vec<_>>(),
        one_by_one.messages().iter().map(|m| (m.turn, m.role)).collect::<Vec<_>>()
    );
    assert!(report.is_empty());
    assert_eq!(one_by_one.invocations()[0].finished_at, Some(40), "stamped with its own append");
}

#[test]
fn r02_a_result_can_come_before_its_call_or_rounds_later() {
    let (history, report) = chat(&[&list(&[USER, &result("a", "ra"), &calls(&["a"]), TEXT])]);
    assert_eq!(rows(&history), [row("a", 0, 0, 0, Some("ra"))]);
    assert!(report.is_empty());
    let (history, _) =
        chat(&[&list(&[USER, &calls(&["a"]), &calls(&["b"]), &result("b", "rb"), &result("a", "ra"), TEXT])]);
    assert_eq!(rows(&history), [row("a", 0, 0, 0, Some("ra")), row("b", 0, 1, 0, Some("rb"))]);
    let (history, _) = chat(&[&list(&[USER, &calls(&["a"]), TEXT, USER]), &list(&[&result("a", "late")])]);
    assert_eq!(rows(&history), [row("a", 0, 0, 0, Some("late"))]);
    assert!(history.open_calls().next().is_none());
}

#[test]
fn r02_unassignable_items_are_set_aside_with_their_text() {
    let (history, report) = chat(&[&list(&[
        USER,
        &result("ghost", "boo"),
        &calls(&["a"]),
        &result("a", "one"),
        &result("a", "two"),
        TEXT,
    ])]);
    assert_eq!(rows(&history), [row("a", 0, 0, 0, Some("one"))]);
    let mut found = codes(&report);
    found.sort_unstable();
    assert_eq!(found, ["duplicate_result", "orphan_result"]);
    let apart: Vec<_> = history.set_aside().iter().map(|item| item.value.as_str()).collect();
    assert!(apart.contains(&result("ghost", "boo").as_str()) && apart.contains(&result("a", "two").as_str()));
    assert_eq!(history.messages().len(), 3);
}

#[test]
fn r61_an_item_of_another_format_rejects_the_whole_append() {
    for item in [r#"{"role":"alien","x":1e400}"#, r#"{"role":"alien","content":"x"}"#, "7", "null", r#"["human","hi"]"#]
    {
        let body = list(&[USER, item, TEXT]);
        let error = decode_body(Dialect::OpenAiChat, JsonRef::parse(&body).unwrap()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput);
        assert!(error.message.starts_with("messages[1] "), "{error}");
    }
}

#[test]
fn r02_a_stored_call_keeps_the_first_of_its_results() {
    let (history, report) = chat(&[
        &list(&[USER, &calls(&["a"])]),
        &list(&[&result("a", "one"), &result("a", "two")]),
        &list(&[&result("a", "three")]),
    ]);
    assert_eq!(rows(&history)[0].4.as_deref(), Some("one"));
    assert_eq!(codes(&report), ["duplicate_result", "duplicate_result"]);
    assert_eq!(history.set_aside().len(), 2);
}

#[test]
fn r02_an_id_used_in_two_rounds_is_paired_within_each_round() {
    let one = list(&[
        USER,
        &calls(&["x"]),
        &result("x", "first"),
        &calls(&["x"]),
        &result("x", "second"),
        TEXT,
        USER,
        &calls(&["x"]),
        &result("x", "third"),
        TEXT,
    ]);
    let (history, report) = chat(&[&one]);
    assert_eq!(
        rows(&history),
        [row("x", 0, 0, 0, Some("first")), row("x", 0, 1, 0, Some("second")), row("x", 1, 0, 0, Some("third"))]
    );
    assert_eq!(codes(&report), ["duplicate_call_id", "duplicate_call_id"]);
    let wire: std::collections::BTreeSet<_> =
        history.invocations().iter().map(|call| call.wire_id().to_owned()).collect();
    assert_eq!((wire.len(), history.invocations()[0].wire_id()), (3, "x"));
}

#[test]
fn r02_an_id_twice_in_one_round_is_paired_by_place() {
    let (history, _) = chat(&[&list(&[USER, &calls(&["x", "x"]), &result("x", "first"), &result("x", "second")])]);
    assert_eq!(rows(&history), [row("x", 0, 0, 0, Some("first")), row("x", 0, 0, 1, Some("second"))]);
    // The same with results that are appended later.
    let (history, _) =
        chat(&[&list(&[USER, &calls(&["x", "x"])]), &list(&[&result("x", "first"), &result("x", "second")])]);
    assert_eq!(rows(&history), [row("x", 0, 0, 0, Some("first")), row("x", 0, 0, 1, Some("second"))]);
}

#[test]
fn r02_a_late_result_is_assigned_to_the_newest_open_call_of_its_id() {
    let (history, _) = chat(&[
        &list(&[USER, &calls(&["x"]), TEXT, USER, &calls(&["x"])]),
        &list(&[&result("x", "new")]),
        &list(&[&result("x", "old")]),
    ]);
    assert_eq!(rows(&history), [row("x", 0, 0, 0, Some("old")), row("x", 1, 0, 0, Some("new"))]);
    let (history, _) = chat(&[
        &list(&[USER, &calls(&["x"]), TEXT, USER, &calls(&["x"]), TEXT, USER, &calls(&["x", "x"])]),
        &list(&[&result("x", "1")]),
        &list(&[&result("x", "2"), &result("x", "3")]),
    ]);
    assert_eq!(
        rows(&history).iter().map(|row| row.4.as_deref()).collect::<Vec<_>>(),
        [None, Some("3"), Some("1"), Some("2")]
    );
}

#[test]
fn r05_each_empty_id_is_replaced_deterministically() {
    let body = list(&[USER, &calls(&["", ""]), &result("", "first"), &result("", "second"), TEXT]);
    let (history, report) = chat(&[&body]);
    assert_eq!(rows(&history).iter().map(|row| row.4.as_deref()).collect::<Vec<_>>(), [Some("first"), Some("second")]);
    assert_eq!(codes(&report), ["invalid_call_id", "invalid_call_id"]);
    let wire: Vec<_> = history.invocations().iter().map(|call| call.wire_id().to_owned()).collect();
    assert!(wire[0] != wire[1] && wire.iter().all(|id| !id.is_empty()));
    let (again, _) = chat(&[&body]);
    assert_eq!(wire, again.invocations().iter().map(|call| call.wire_id().to_owned()).collect::<Vec<_>>());
}

#[test]
fn r02_text_lists_and_error_results_are_kept() {
    let body = r#"[{"role":"user","content":"q"},
        {"role":"assistant","content":[{"type":"text","text":"Let me"},{"type":"tool_use","id":"a","name":"f","input":{"n":1}},{"type":"text","text":"see"},{"type":"tool_use","id":"b","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"no"},{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"},{"type":"text","text":"2"}]}]}]"#;
    let (history, report) = appended(Dialect::Anthropic, &[body]);
    assert!(report.is_empty());
    let kinds: Vec<_> = history.messages()[1].parts.iter().map(|part| matches!(part.body, PartBody::Text(_))).collect();
    assert_eq!(kinds, [true, false, true, false]);
    let [a, b] = history.invocations() else { panic!() };
    assert_eq!((a.status, b.status, b.place), (InvocationStatus::Ok, InvocationStatus::Error, 1));
    assert_eq!(
        a.result.as_ref().unwrap().content.as_str(),
        r#"[{"type":"text","text":"1"},{"type":"text","text":"2"}]"#
    );
    assert_eq!(history.messages().len(), 2);
}

#[test]
fn an_entry_applied_twice_counts_once() {
    let items =
        decode_body(Dialect::OpenAiChat, JsonRef::parse(&list(&[USER, &calls(&["a"]), &result("a", "x")])).unwrap())
            .unwrap();
    let mut history = History::new(Seed(1));
    let joined = join(JoinBase::history(&history), items, &Origin::default(), &CountingIds::default());
    for entry in joined.entries.iter().chain(&joined.entries).cloned() {
        history.apply(entry);
    }
    assert_eq!((history.messages().len(), history.invocations().len(), history.call_id_uses("a")), (2, 1, 1));
}

#[test]
fn r18_a_real_result_replaces_the_interrupted_placeholder() {
    let (mut history, _) = chat(&[&list(&[USER, &calls(&["a"])])]);
    let id = history.invocations()[0].id.clone();
    let told = |status, text: &str| {
        HistoryEntry::Result(ResultEntry {
            invocation: id.clone(),
            status,
            started_at: None,
            finished_at: Some(1),
            freshness: None,
            result: Some(crate::tool::ToolResult::failure(text)),
            ..ResultEntry::default()
        })
    };
    history.apply(told(InvocationStatus::Interrupted, "unknown"));
    assert!(history.open_calls().next().is_none());
    history.apply(told(InvocationStatus::Ok, "real"));
    history.apply(told(InvocationStatus::Error, "again"));
    history.apply(told(InvocationStatus::Interrupted, "unknown"));
    assert_eq!(
        (history.invocations()[0].status, history.invocations()[0].result.as_ref().unwrap().content.as_str()),
        (InvocationStatus::Ok, "\"real\"")
    );
}

#[test]
fn r30_r36_summaries_of_reducers_do_not_remove_a_compaction() {
    let turn = list(&[USER, TEXT]);
    let (mut history, _) = chat(&[&turn, &turn]);
    let add = |history: &mut History, reducer_hash: Option<u64>, end: usize| {
        let coverage = history.coverage(end).unwrap();
        history.apply_summary(StoredSummary { reducer_hash, ..StoredSummary::compaction(coverage, "s", None) });
    };
    add(&mut history, None, 2);
    for reducer in 0..20 {
        add(&mut history, Some(reducer), 2);
        assert_eq!(history.compaction().map(|compaction| compaction.end), Some(2), "after {reducer}");
    }
    let stored: Vec<u64> = (0..20).filter(|reducer| history.summary_of(Some(*reducer)).is_some()).collect();
    assert_eq!(stored, (12..20).collect::<Vec<_>>());
    // The same reducer again replaces its own, and a compaction removes none of them.
    add(&mut history, Some(19), 4);
    add(&mut history, None, 4);
    assert!((12..20).all(|reducer| history.summary_of(Some(reducer)).is_some()));
    assert_eq!(history.summary_of(Some(19)).map(|summary| summary.end), Some(4));
}

/// The entries of a body with one open call, and an answer to it that came before.
fn early_answer(text: &str) -> (Vec<HistoryEntry>, ResultEntry) {
    let items = decode_body(Dialect::OpenAiChat, JsonRef::parse(&list(&[USER, &calls(&["a"])])).unwrap()).unwrap();
    let history = History::new(Seed(1));
    let entries = join(JoinBase::history(&history), items, &Origin::default(), &CountingIds::default()).entries;
    let call = entries.iter().find_map(|entry| match entry {
        HistoryEntry::Invocation(call) => Some(call.id.clone()),
        _ => None,
    });
    let content = crate::json::JsonStr::new(text).to_json();
    let result = ToolResult { content, is_error: false, dialect: None, template: None };
    let answer = ResultEntry {
        status: InvocationStatus::Ok,
        finished_at: Some(7),
        freshness: Some(Window::Millis(3)),
        result: Some(result),
        ..ResultEntry::interrupted(call.unwrap())
    };
    (entries, answer)
}

fn applied(entries: impl IntoIterator<Item = HistoryEntry>) -> History {
    let mut history = History::new(Seed(1));
    entries.into_iter().for_each(|entry| history.apply(entry));
    history
}

#[test]
fn r75_a_result_that_is_stored_before_its_call_waits_for_it() {
    let (entries, answer) = early_answer("first");
    let (_, second) = early_answer("second");
    // A run's notes about its own call are no answers.
    let notes = [
        ResultEntry::interrupted(answer.invocation.clone()),
        ResultEntry { is_deferral: true, result: None, status: InvocationStatus::Pending, ..answer.clone() },
    ];
    let all = notes.into_iter().chain([answer.clone(), second]).map(HistoryEntry::Result).chain(entries.clone());
    let history = applied(all);
    let call = &history.invocations()[0];
    assert_eq!(
        (call.status, call.finished_at, call.append_freshness),
        (answer.status, Some(7), Some(Window::Millis(3)))
    );
    assert_eq!(call.result, answer.result, "the first answer counts");
    assert_eq!((history.open_calls().count(), history.early_result(&call.id)), (0, None));

    // Another result that is set aside leaves it, and that of a call that never comes ends its wait.
    for (reason, waits) in [(FindingCode::DuplicateResult, true), (FindingCode::OrphanResult, false)] {
        let item = SetAsideItem::result(reason, answer.result.clone().unwrap(), 8);
        let item = SetAsideItem { invocation: Some(answer.invocation.clone()), ..item };
        let history = applied([HistoryEntry::Result(answer.clone()), HistoryEntry::SetAside(item)]);
        assert_eq!(history.early_result(&answer.invocation).is_some(), waits, "{reason:?}");
    }

    // A call that comes with its own result keeps that; the other one is set aside.
    let own = |text: &str| {
        let (mut entries, other) = early_answer(text);
        for entry in &mut entries {
            if let HistoryEntry::Invocation(call) = entry {
                call.complete_with(&other);
                assert_eq!(call.append_freshness, other.freshness);
            }
        }
        applied([HistoryEntry::Result(answer.clone())].into_iter().chain(entries))
    };
    assert_eq!(own("first").set_aside().len(), 0, "it is the same one");
    let history = own("own");
    assert_eq!(history.set_aside().len(), 1);
    assert_eq!(history.set_aside()[0].value, answer.result.unwrap().content);
    assert_eq!(history.invocations()[0].result.as_ref().unwrap().content.as_str(), "\"own\"");
}

#[test]
fn r75_of_two_messages_that_list_a_late_result_the_first_one_is_its_place() {
    let (mut entries, answer) = early_answer("late");
    for entry in &mut entries {
        if let HistoryEntry::Invocation(call) = entry {
            call.is_deferred = true;
        }
    }
    let message = |id: &str| {
        let late_results = vec![answer.invocation.clone()];
        HistoryEntry::Message(Message { id: id.into(), late_results, ..Message::from_text(Role::User, "And?") })
    };
    for result_first in [true, false] {
        let result = [HistoryEntry::Result(answer.clone())];
        let (before, after) = if result_first { (Some(result), None) } else { (None, Some(result)) };
        let placed = before.into_iter().flatten().chain([message("one"), message("two")]);
        let history = applied(entries.clone().into_iter().chain(placed).chain(after.into_iter().flatten()));
        assert_eq!(history.late_results().place(&answer.invocation), Some("one"));
        assert!(history.late_results().unplaced_ids().is_empty());
    }
}
