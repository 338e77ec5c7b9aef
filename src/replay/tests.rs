use super::*;
use crate::clock::Ms;
use crate::error::ErrorCode;
use crate::history::{History, HistoryEntry, JoinBase, join};
use crate::id::{CountingIds, Seed};
use crate::json::JsonRef;
use crate::message::{Dialect, Message, Role};
use crate::provider::decode_body;
use crate::synthetic_result::{INTERRUPTED, NOT_RUN};
use crate::tool::{InvocationStatus, ToolResult, Window};
use proptest::prelude::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const NOW: Ms = 100_000_000_000;

/// As in a render where nobody is asked anything.
#[expect(clippy::too_many_arguments, reason = "a test names what it sets")]
fn replay<'h>(
    history: &'h History,
    live: Option<&'h History>,
    trimmed: Option<&'h TrimmedResults>,
    policy: &Policy,
    now: Ms,
    report: &mut Report,
) -> RequestDraft<'h> {
    let (cache, replies) = (Box::leak(Box::default()), Box::leak(Box::default()));
    super::replay(
        &ReplayInput {
            history,
            live,
            trimmed,
            delta: None,
            dialect: None,
            compaction: history.compaction(),
            compacted_before: 0,
            extra_content: crate::provider::extra_content,
            policy,
            handoffs: &[],
            scope: HistoryScope::Whole,
            sent: None,
            now,
            cache,
            replies,
        },
        report,
    )
    .unwrap()
}

/// A history of turns: each a question, rounds of calls with their results' ages, and an answer.
struct Chat {
    body: String,
    /// By call id: when it finished.
    finished: Vec<(String, Option<Ms>)>,
    errors: Vec<String>,
    open: Vec<String>,
    started: Vec<String>,
    run: Option<String>,
}

impl Chat {
    fn new() -> Self {
        Self {
            body: String::new(),
            finished: Vec::new(),
            errors: Vec::new(),
            open: Vec::new(),
            started: Vec::new(),
            run: None,
        }
    }

    fn push(mut self, message: &str) -> Self {
        if !self.body.is_empty() {
            self.body.push(',');
        }
        self.body.push_str(message);
        self
    }

    fn user(self, text: &str) -> Self {
        self.push(&format!(r#"{{"role":"user","content":"{text}"}}"#))
    }

    fn says(self, text: &str) -> Self {
        self.push(&format!(r#"{{"role":"assistant","content":"{text}"}}"#))
    }

    /// A round: call id and age of its result; `name` is the id's first letter.
    fn round(mut self, calls: &[(&str, i64)]) -> Self {
        let list: Vec<_> = calls
            .iter()
            .map(|(id, _)| {
                format!(r#"{{"id":"{id}","type":"function","function":{{"name":"{}","arguments":"{{}}"}}}}"#, &id[..1])
            })
            .collect();
        self = self.push(&format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, list.join(",")));
        for (id, age) in calls {
            self.finished.push(((*id).into(), Some(NOW.saturating_add_signed(-age))));
            self = self.push(&format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"result of {id}"}}"#));
        }
        self
    }

    fn at(mut self, id: &str, finished: Option<Ms>) -> Self {
        self.finished.push((id.into(), finished));
        self
    }

    fn history(&self) -> History {
        let body = format!("[{}]", self.body);
        let items = decode_body(Dialect::OpenAiChat, JsonRef::parse(&body).unwrap()).unwrap();
        let mut history = History::new(Seed(3));
        let origin = crate::history::Origin { at: NOW, run_id: self.run.clone(), ..Default::default() };
        for mut entry in join(JoinBase::history(&history), items, &origin, &CountingIds::default()).entries {
            if let HistoryEntry::Invocation(call) = &mut entry {
                if let Some((_, at)) = self.finished.iter().rev().find(|(id, _)| *id == call.call_id) {
                    call.finished_at = *at;
                }
                if self.errors.contains(&call.call_id) {
                    call.status = InvocationStatus::Error;
                    call.result = Some(ToolResult::failure("broken"));
                }
                if self.open.contains(&call.call_id) {
                    call.status = InvocationStatus::Pending;
                    call.result = None;
                    call.finished_at = None;
                }
                if self.started.contains(&call.call_id) {
                    call.started_at = Some(NOW - 1);
                }
            }
            history.apply(entry);
        }
        history
    }
}

/// What is shown: `user`, the text of an answer, or calls as `id=kind` of their results.
fn shown(history: &History, policy: &Policy) -> (Vec<String>, Vec<&'static str>) {
    let mut report = Report::new();
    let draft = replay(history, None, None, policy, NOW, &mut report);
    let mut out = Vec::new();
    for item in &draft.messages {
        if item.message.role != Role::Assistant {
            out.push(item.message.role.as_str().to_owned());
            continue;
        }
        let calls: Vec<_> = item
            .calls
            .iter()
            .map(|call| {
                let kind = match call.result.expect("every call has a result") {
                    DraftResult::Stored(result) => {
                        if result.is_error {
                            "error"
                        } else {
                            "ok"
                        }
                    }
                    DraftResult::Closing(text) if text == INTERRUPTED => "interrupted",
                    DraftResult::Closing(text) => {
                        assert_eq!(text, NOT_RUN);
                        "not_run"
                    }
                    DraftResult::Placeholder(_) => "expired",
                    DraftResult::Cut { .. } => "cut",
                };
                format!("{}={kind}", call.invocation.call_id)
            })
            .collect();
        out.push(if calls.is_empty() { "text".into() } else { calls.join(" ") });
    }
    (out, report.iter().map(|finding| finding.code.as_str()).collect())
}

fn window(freshness: f64) -> PolicyLayer {
    PolicyLayer { freshness: Some(Window::from_millis(freshness).unwrap()), ..PolicyLayer::default() }
}

fn global(layer: PolicyLayer) -> Policy {
    Policy { global: layer, ..Policy::default() }
}

/// Whether one result of that age is shown.
fn fresh(age: i64, policy: &Policy) -> bool {
    let history = Chat::new().user("q").round(&[("a", age)]).says("done").history();
    let (out, report) = shown(&history, policy);
    let is = out == ["user", "a=ok", "text"];
    assert!(is || out == ["user", "text"], "{out:?}");
    assert_eq!(is, report.is_empty(), "{report:?}");
    is
}

#[test]
fn r10_the_window_is_inclusive_and_zero_never_sends() {
    let policy = global(window(300_000.0));
    for (age, want) in
        [(100_000, true), (299_999, true), (300_000, true), (300_001, false), (300_900, false), (400_000, false)]
    {
        assert_eq!(fresh(age, &policy), want, "age {age}");
    }
    for age in [-30_000, 0, 1] {
        assert!(!fresh(age, &global(window(0.0))), "age {age}");
        assert!(!fresh(age, &global(window(0.4))), "age {age}");
    }
    assert!(fresh(NOW as i64, &global(window(f64::INFINITY))));
    assert!(fresh(-86_400_000, &global(window(f64::INFINITY))));
}

#[test]
fn r10_the_built_in_window_is_five_minutes() {
    assert!(fresh(300_000, &Policy::default()));
    let history = Chat::new().user("q").round(&[("a", 300_001)]).says("done").history();
    let (out, report) = shown(&history, &Policy::default());
    assert_eq!((out.len(), report), (2, vec!["stale", "stale_default"]));
}

#[test]
fn r10_an_invalid_window_is_rejected() {
    for bad in [-1.0, -0.5, f64::NAN, f64::NEG_INFINITY] {
        assert_eq!(Window::from_millis(bad).unwrap_err().code, ErrorCode::ConfigInvalid, "{bad}");
    }
    assert_eq!(Window::from_millis(0.0).unwrap(), Window::Millis(0));
    assert_eq!(Window::from_millis(-0.0).unwrap(), Window::Millis(0));
    assert_eq!(Window::from_millis(1e300).unwrap(), Window::Always);
}

#[test]
fn r10_clock_skew_up_to_a_minute_is_tolerated() {
    let policy = global(window(1_000.0));
    for (ahead, want) in [(30_000, true), (60_000, true), (60_001, false), (86_400_000, false)] {
        let history = Chat::new().user("q").round(&[("a", -ahead)]).says("done").history();
        let (out, report) = shown(&history, &policy);
        assert_eq!(out.len() == 3, want, "{ahead} ahead");
        assert_eq!(report, if want { vec![] } else { vec!["future"] });
    }
}

#[test]
fn r10_a_result_without_a_timestamp_is_stale() {
    let history = Chat::new().user("q").round(&[("a", 0)]).says("done").at("a", None).history();
    assert_eq!(shown(&history, &global(window(1e9))), (vec!["user".into(), "text".into()], vec!["stale"]));
    assert_eq!(shown(&history, &global(window(f64::INFINITY))).0.len(), 3);
    let mut report = Report::new();
    let _ = replay(&history, None, None, &global(window(1e9)), NOW, &mut report);
    assert!(report[0].message.contains("no time stamp"));
}

#[test]
fn r10_age_counts_from_the_end_of_the_execution() {
    let mut chat = Chat::new().user("q").round(&[("a", 100)]).says("done");
    chat.started.push("a".into());
    let mut history = chat.history();
    let id = history.invocations()[0].id.clone();
    history.invocation_mut(&id).unwrap().started_at = Some(NOW - 5_000_000);
    assert_eq!(shown(&history, &global(window(1_000.0))).0.len(), 3);
}

#[test]
fn r10_the_innermost_level_that_sets_a_field_is_used() {
    let chat = Chat::new().user("q").round(&[("a", 1_000)]).says("done").history();
    let with = |levels: [Option<f64>; 5]| {
        let [call, tool, session, channel, global] = levels;
        let layer = |value: Option<f64>| value.map_or_else(PolicyLayer::default, window);
        Policy {
            fallback: None,
            call: layer(call),
            tools: tool.map(|tool| ("a".to_owned(), Window::from_millis(tool).unwrap())).into_iter().collect(),
            session: layer(session),
            channel: layer(channel),
            global: layer(global),
            has_dropped: false,
        }
    };
    let is_fresh = |policy: &Policy| shown(&chat, policy).0.len() == 3;
    // Each level against all below it; below the built-in 300 seconds there is only 0.
    for at in 0..5 {
        for (own, below) in [(2_000.0, 10.0), (10.0, 2_000.0)] {
            let mut levels = [None; 5];
            levels[at] = Some(own);
            levels[at + 1..].fill(Some(below));
            assert_eq!(is_fresh(&with(levels)), own > 1_000.0, "level {at}: {own} against {below}");
        }
    }
    assert!(is_fresh(&with([None; 5])));
    // By name, in each level but the tool's own, it beats the plain one of its level, and loses to a higher level.
    let named = |freshness: f64, tool: f64| PolicyLayer {
        tool_freshness: [("a".to_owned(), Window::from_millis(tool).unwrap())].into_iter().collect(),
        ..window(freshness)
    };
    assert!(is_fresh(&global(named(10.0, 2_000.0))));
    assert!(!is_fresh(&global(named(2_000.0, 10.0))));
    assert!(!is_fresh(&Policy { session: window(10.0), ..global(named(10.0, 2_000.0)) }));
    let other = PolicyLayer {
        tool_freshness: [("b".to_owned(), Window::Millis(1))].into_iter().collect(),
        ..PolicyLayer::default()
    };
    assert!(is_fresh(&Policy { call: other, ..Policy::default() }));
    // What the tool said when it ran, where this call brings no tools.
    let mut stored = chat.clone();
    let id = stored.invocations()[0].id.clone();
    stored.invocation_mut(&id).unwrap().freshness = Some(Window::Millis(10));
    assert!(shown(&stored, &global(window(2_000.0))).0.len() == 2);
    assert!(shown(&stored, &Policy { call: window(2_000.0), ..Policy::default() }).0.len() == 3);
    assert!(shown(&stored, &with([None, Some(2_000.0), None, None, None])).0.len() == 3);
}

#[test]
fn r11_error_results_can_have_their_own_window() {
    let mut chat = Chat::new().user("q").round(&[("a", 1_000), ("b", 1_000)]).says("done");
    chat.errors.push("a".into());
    let history = chat.history();
    let layer = |freshness, error| PolicyLayer { error_freshness: Some(error), ..window(freshness) };
    assert_eq!(shown(&history, &global(window(2_000.0))).0[1], "a=error b=ok");
    assert_eq!(shown(&history, &global(layer(2_000.0, Window::Millis(0)))).0[1], "b=ok");
    assert_eq!(shown(&history, &global(layer(10.0, Window::Always))).0[1], "a=error");
    // Field by field: an error window far down counts before a plain one above it.
    assert_eq!(
        shown(&history, &Policy { call: window(f64::INFINITY), ..global(layer(1.0, Window::Millis(0))) }).0[1],
        "b=ok"
    );
}

#[test]
fn r11_a_stale_result_drops_its_call_round_or_turn() {
    let history = Chat::new()
        .user("q")
        .round(&[("a", 10), ("b", 9_999)])
        .round(&[("c", 10)])
        .says("x")
        .user("q")
        .round(&[("d", 10)])
        .says("y")
        .history();
    let by = |unit| shown(&history, &global(PolicyLayer { stale_unit: Some(unit), ..window(1_000.0) }));
    assert_eq!(by(StaleUnit::Call).0, ["user", "a=ok", "c=ok", "text", "user", "d=ok", "text"]);
    assert_eq!(by(StaleUnit::Round).0, ["user", "c=ok", "text", "user", "d=ok", "text"]);
    assert_eq!(by(StaleUnit::Turn).0, ["user", "text", "user", "d=ok", "text"]);
    assert_eq!(
        [by(StaleUnit::Call), by(StaleUnit::Round), by(StaleUnit::Turn)].map(|(_, report)| report.len()),
        [1, 2, 3]
    );
}

#[test]
fn r11_when_all_rounds_are_stale_the_text_is_kept() {
    // Prose has no age. A round goes, the next one stays.
    let history = Chat::new().user("q").round(&[("a", 9_999)]).round(&[("b", 9_999)]).says("shipped").history();
    assert_eq!(shown(&history, &global(window(1_000.0))).0, ["user", "text"]);
    let history = Chat::new().user("q").round(&[("a", 9_999)]).round(&[("b", 10)]).says("x").history();
    assert_eq!(shown(&history, &global(window(1_000.0))).0, ["user", "b=ok", "text"]);
}

#[test]
fn r11_a_placeholder_keeps_call_and_result_together() {
    let history = Chat::new().user("q").round(&[("a", 10), ("b", 9_999)]).says("x").history();
    let layer = |unit| PolicyLayer { on_stale: Some(OnStale::Placeholder), stale_unit: Some(unit), ..window(1_000.0) };
    assert_eq!(shown(&history, &global(layer(StaleUnit::Call))).0, ["user", "a=ok b=expired", "text"]);
    assert_eq!(shown(&history, &global(layer(StaleUnit::Round))).0, ["user", "a=expired b=expired", "text"]);
    // A call that was never answered has nothing that could expire.
    let mut chat = Chat::new().user("q").round(&[("a", 10), ("b", 9_999)]).says("x");
    chat.open.push("a".into());
    assert_eq!(shown(&chat.history(), &global(layer(StaleUnit::Round))).0, ["user", "a=interrupted b=expired", "text"]);
}

#[test]
fn r10_the_live_turn_is_never_stale() {
    // Results were appended, the model has not had its last word.
    let history = Chat::new().user("q").round(&[("a", 9_999)]).says("x").user("q").round(&[("b", 9_999)]).history();
    assert_eq!(shown(&history, &global(window(1.0))).0, ["user", "text", "user", "b=ok"]);
    // A live turn behind it ends that one; and of the live turn nothing is stale.
    let live = Chat::new().user("now").round(&[("c", 9_999)]).history();
    let mut report = Report::new();
    let draft = replay(&history, Some(&live), None, &global(window(1.0)), NOW, &mut report);
    let ids: Vec<_> =
        draft.messages.iter().flat_map(|item| &item.calls).map(|call| call.invocation.call_id.as_str()).collect();
    assert_eq!(ids, ["c"]);
    // A run without input goes on with it.
    let more = Chat::new().round(&[("c", 9_999)]).history();
    let draft = replay(&history, Some(&more), None, &global(window(1.0)), NOW, &mut report);
    let ids: Vec<_> =
        draft.messages.iter().flat_map(|item| &item.calls).map(|call| call.invocation.call_id.as_str()).collect();
    assert_eq!(ids, ["b", "c"]);
}

#[test]
fn r04_open_calls_are_closed_or_omitted() {
    let with = |run: Option<&str>, open: &[&str], started: &[&str]| {
        let mut chat = Chat::new().user("q").round(&[("a", 1), ("b", 1)]).says("x");
        chat.run = run.map(str::to_owned);
        chat.open = open.iter().map(|id| (*id).to_owned()).collect();
        chat.started = started.iter().map(|id| (*id).to_owned()).collect();
        chat.history()
    };
    let plain = Policy::default();
    // Of a run, nothing started: the round is left out; dangling, and never stale.
    assert_eq!(
        shown(&with(Some("r"), &["a", "b"], &[]), &global(window(0.0))),
        (vec!["user".into(), "text".into()], vec!["dangling_call", "dangling_call"])
    );
    // Started: nobody knows. The sibling that was not started says so; one that was answered stays.
    assert_eq!(shown(&with(Some("r"), &["a", "b"], &["a"]), &plain).0[1], "a=interrupted b=not_run");
    assert_eq!(shown(&with(Some("r"), &["a"], &["a", "b"]), &plain).0[1], "a=interrupted b=ok");
    assert_eq!(shown(&with(Some("r"), &["b"], &["a"]), &plain).0[1], "a=ok b=not_run");
    // It came in by `append`: it may have run.
    assert_eq!(shown(&with(None, &["a", "b"], &[]), &plain).0[1], "a=interrupted b=interrupted");
    let omit = global(PolicyLayer { dangling_calls: Some(DanglingCalls::Omit), ..PolicyLayer::default() });
    assert_eq!(shown(&with(None, &["a", "b"], &[]), &omit).0, ["user", "text"]);
    assert_eq!(shown(&with(None, &["a"], &[]), &omit).0[1], "b=ok");
    assert_eq!(shown(&with(Some("r"), &["a"], &["a"]), &omit).0[1], "b=ok");
}

#[test]
fn r03_rounds_precede_the_answer_in_order() {
    let history = Chat::new().user("q").round(&[("a", 0), ("b", 0)]).round(&[("c", 0)]).says("x").history();
    assert_eq!(shown(&history, &Policy::default()).0, ["user", "a=ok b=ok", "c=ok", "text"]);
}

#[test]
fn replay_is_deterministic_and_changes_no_history() {
    let history = Chat::new().user("q").round(&[("a", 10), ("b", 9_999)]).says("x").history();
    let before = (history.messages().to_vec(), history.invocations().to_vec());
    let policy = global(window(1_000.0));
    assert_eq!(shown(&history, &policy), shown(&history, &policy));
    assert_eq!((history.messages().to_vec(), history.invocations().to_vec()), before);
    let _: &[Message] = history.messages();
}

proptest! {
    #[test]
    fn r04_r11_after_freshness_every_call_has_one_result_and_no_message_is_empty(
        rounds in proptest::collection::vec((proptest::collection::vec((0_u8..4, 0_i64..3_000, 0_u8..5), 1..4), any::<bool>()), 0..6),
        unit in 0_u8..3, placeholder: bool, omit: bool, freshness in 0.0_f64..3_000.0, run: bool,
    ) {
        let mut chat = Chat::new().user("q");
        chat.run = run.then(|| "r".to_owned());
        for (at, (calls, ends)) in rounds.iter().enumerate() {
            let ids: Vec<String> = calls.iter().enumerate().map(|(place, (name, ..))| format!("{}{at}{place}", char::from(b'a' + name))).collect();
            for (id, (_, _, fate)) in ids.iter().zip(calls) {
                match fate {
                    0 => chat.open.push(id.clone()),
                    1 => chat.errors.push(id.clone()),
                    2 => chat.started.push(id.clone()),
                    _ => {}
                }
            }
            let list: Vec<_> = ids.iter().zip(calls).map(|(id, (_, age, _))| (id.as_str(), *age)).collect();
            chat = chat.round(&list);
            if *ends {
                chat = chat.says("x").user("q");
            }
        }
        let history = chat.history();
        let layer = PolicyLayer {
            stale_unit: Some([StaleUnit::Call, StaleUnit::Round, StaleUnit::Turn][usize::from(unit)]),
            on_stale: Some(if placeholder { OnStale::Placeholder } else { OnStale::Omit }),
            dangling_calls: Some(if omit { DanglingCalls::Omit } else { DanglingCalls::Synthesize }),
            ..window(freshness)
        };
        let policy = global(layer);
        let mut report = Report::new();
        let draft = replay(&history, None, None, &policy, NOW, &mut report);
        for item in &draft.messages {
            prop_assert!(item.message.role != Role::Assistant || item.has_content() || !item.calls.is_empty());
            prop_assert!(item.calls.iter().all(|call| call.result.is_some()));
            prop_assert!(item.calls.windows(2).all(|pair| pair[0].invocation.place < pair[1].invocation.place));
        }
        // Whatever is not shown as it is stored is told of.
        let stored = history.invocations().len();
        let as_stored = draft.messages.iter().flat_map(|item| &item.calls).filter(|call| matches!(call.result, Some(DraftResult::Stored(_)))).count();
        let told = report.iter().filter(|finding| matches!(finding.code.as_str(), "stale" | "future" | "dangling_call")).count();
        prop_assert!(told >= stored - as_stored);
    }
}
