//! Reducers, seen in the bodies that go out (R14, R36).

use super::*;
use crate::finding::{Action, Severity};
use crate::history::{Origin as Came, join};
use crate::id::{CountingIds, Seed};
use crate::json::{JsonRef, JsonStr};
use crate::provider::decode_body;
use crate::replay::{Callback, HistoryScope, PolicyLayer, QuestionKind, Reducer, ReducerReplies, ReducerReply};
use crate::tool::Window;
use std::rc::Rc;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const CHAT: Dialect = Dialect::OpenAiChat;

fn provider(dialect: Dialect) -> ProviderRequest {
    ProviderRequest {
        dialect,
        url: "https://model.example/v1".into(),
        params: Json::parse(r#"{"model":"m","max_tokens":9,"stream_options":{"include_usage":true}}"#).unwrap(),
        stream: true,
        headers: Vec::new(),
        settings: Settings::default(),
    }
}

/// Turns in short: `s` a system message, `u` the user, `a` an answer, `r2` a round of two calls, each with its number.
fn talk(script: &str) -> History {
    let mut messages = Vec::new();
    for (at, word) in script.split(' ').filter(|word| !word.is_empty()).enumerate() {
        let (kind, calls) = word.split_at(1);
        match kind {
            "s" => messages.push(format!(r#"{{"role":"system","content":"s{at}"}}"#)),
            "u" => messages.push(format!(r#"{{"role":"user","content":"u{at}"}}"#)),
            "a" => messages.push(format!(r#"{{"role":"assistant","content":"a{at}"}}"#)),
            _ => {
                let ids = || (0..calls.parse::<usize>().unwrap_or(1)).map(|place| format!("c{at}-{place}"));
                let list: Vec<_> = ids()
                    .map(|id| {
                        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#)
                    })
                    .collect();
                messages.push(format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, list.join(",")));
                messages
                    .extend(ids().map(|id| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"r{at}"}}"#)));
            }
        }
    }
    history_of(&format!("[{}]", messages.join(",")))
}

fn history_of(body: &str) -> History {
    let mut history = History::new(Seed(1));
    append(&mut history, body, &CountingIds::default());
    history
}

fn append(history: &mut History, body: &str, ids: &CountingIds) {
    append_in(CHAT, None, history, body, ids);
}

/// `before` is the history that precedes a live turn.
fn append_in(dialect: Dialect, before: Option<&History>, history: &mut History, body: &str, ids: &CountingIds) {
    let items = decode_body(dialect, JsonRef::parse(body).unwrap()).unwrap();
    let entries =
        join(crate::history::JoinBase { before, history }, items, &Came { at: 1_000, ..Came::default() }, ids).entries;
    for entry in entries {
        history.apply(entry);
    }
}

fn policy(reducers: Vec<Reducer>) -> Policy {
    let call = PolicyLayer { freshness: Some(Window::Always), reducers: Some(reducers), ..PolicyLayer::default() };
    Policy { call, ..Policy::default() }
}

fn callback(id: u32) -> Callback {
    Callback { id, hook: Rc::new(()) }
}

fn count(count: usize) -> Reducer {
    Reducer::MessageCount { count, keep_tools: true, first_system_only: false }
}

fn budget(tokens: u64) -> Reducer {
    Reducer::TokenBudget { tokens, count: None }
}

fn summarize(target: usize, threshold: usize) -> Reducer {
    Reducer::Summarize { target, threshold, summarize: callback(7) }
}

/// What an application that answers everything does with a question.
type Answers<'a> = &'a mut dyn FnMut(&QuestionKind) -> ReducerReply;

/// Renders as a binding does; every body is valid.
#[expect(clippy::too_many_arguments, reason = "a test names what it sets")]
fn body(
    renderer: &mut Renderer,
    history: &History,
    live: Option<&History>,
    dialect: Dialect,
    policy: &Policy,
    answers: Answers<'_>,
) -> Rendered {
    let provider = provider(dialect);
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy };
    let mut progress = ReducerReplies::default();
    for _ in 0..20 {
        match renderer
            .step(
                RenderInput {
                    history,
                    live,
                    owner: &crate::owner::StateOwner::Session,
                    begins_chain: false,
                    handoffs: &[],
                    scope: HistoryScope::Whole,
                    sent: None,
                    agent: None,
                    now: 2_000,
                },
                &request,
                &progress,
            )
            .unwrap()
        {
            RenderStep::Done(rendered) => {
                let errors: Vec<_> = validate(&rendered.body, dialect)
                    .into_iter()
                    .filter(|finding| finding.severity == Severity::Error)
                    .collect();
                assert!(errors.is_empty(), "{errors:?}\n{}", String::from_utf8_lossy(&rendered.body));
                return rendered;
            }
            RenderStep::HeadChanged => panic!("no service keeps a head"),
            RenderStep::Question(ask) => {
                let given = answers(&ask.question);
                renderer.take_reply(ask, given, &mut progress);
            }
        }
    }
    panic!("it asks without end");
}

/// In short what a chat body holds.
fn short(body: &[u8]) -> String {
    let body = Json::parse(std::str::from_utf8(body).unwrap()).unwrap();
    let words = body.view().get("messages").unwrap().items().map(|message| {
        match (message.get("tool_calls"), message.text("content")) {
            (Some(calls), _) => format!("r{}", calls.items().count()),
            (None, Some(text)) if message.get("tool_call_id").is_none() => text
                .strip_prefix("Summary of the conversation before this:\n")
                .map_or(text.to_string(), |text| format!("[{text}]")),
            _ => "-".to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn nobody(_: &QuestionKind) -> ReducerReply {
    panic!("nobody is asked")
}

fn reduced(script: &str, reducers: Vec<Reducer>) -> String {
    short(&body(&mut Renderer::default(), &talk(script), None, CHAT, &policy(reducers), &mut nobody).body)
}

#[test]
fn r36_message_count_keeps_the_newest_and_all_system_messages() {
    assert_eq!(reduced("u a u a u a u a", vec![count(5)]), "a3 u4 a5 u6 a7");
    assert_eq!(reduced("s u a s u a u a", vec![count(2)]), "s0 s3 u6 a7");
    let first = Reducer::MessageCount { count: 2, keep_tools: true, first_system_only: true };
    assert_eq!(reduced("s u a s u a u a", vec![first]), "s0 u6 a7");
    assert_eq!(reduced("u a", vec![count(9)]), "u0 a1");
    assert_eq!(reduced("u a u", vec![count(1)]), "u2");
}

#[test]
fn r36_a_round_counts_as_one_message_and_is_never_split() {
    assert_eq!(reduced("u r3 a u a", vec![count(4)]), "a2 u3 a4", "a round does not come first");
    assert_eq!(reduced("u r3 a u a", vec![count(5)]), "u0 r3 - - - a2 u3 a4");
    assert_eq!(
        reduced("u a u r1 r1 r1", vec![count(2)]),
        "u2 r1 - r1 -",
        "the newest question stays with its newest rounds"
    );
}

#[test]
fn r36_reasoning_is_kept_or_dropped_with_its_round() {
    let history = history_of(
        r#"[{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"user","content":"v"},{"role":"assistant","content":null,"reasoning_content":"hm"},{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"x","content":"r"},{"role":"assistant","content":"b"},{"role":"user","content":"w"}]"#,
    );
    let told = |count: usize| {
        let rules = policy(vec![Reducer::MessageCount { count, keep_tools: true, first_system_only: false }]);
        let rendered = body(&mut Renderer::default(), &history, None, CHAT, &rules, &mut nobody);
        rendered.report.iter().filter(|found| found.action == Some(Action::Dropped)).count()
    };
    // w and b; with the round comes its question, and the reasoning between them counts for nothing.
    assert_eq!([told(2), told(4), told(5)], [5, 2, 1]);
}

#[test]
fn r36_message_count_without_tools_drops_earlier_rounds_and_keeps_their_text() {
    let bare = || vec![Reducer::MessageCount { count: 9, keep_tools: false, first_system_only: false }];
    assert_eq!(reduced("u r2 a u r1", bare()), "u0 a2 u3 r1 -", "what the model waits for stays");
    let history = history_of(
        r#"[{"role":"user","content":"u"},{"role":"assistant","content":"let me look","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"x","content":"r"},{"role":"assistant","content":"a"},{"role":"user","content":"v"}]"#,
    );
    let rendered = body(&mut Renderer::default(), &history, None, CHAT, &policy(bare()), &mut nobody);
    assert_eq!(short(&rendered.body), "u let me look a v");
    let found: Vec<_> =
        rendered.report.iter().map(|finding| (finding.code.as_str(), finding.call_id.as_deref())).collect();
    assert_eq!(found, [("reduced", Some("x"))]);
}

#[test]
fn r36_sliding_turns_drops_whole_turns() {
    let turns = |turns| vec![Reducer::SlidingTurns { turns }];
    assert_eq!(reduced("s u r2 a u r1 r1 a u", turns(2)), "s0 u4 r1 - r1 - a7 u8");
    assert_eq!(reduced("s u r2 a u r1 r1 a u", turns(1)), "s0 u8");
    assert_eq!(reduced("u a u a", turns(7)), "u0 a1 u2 a3");
    // Two questions in a row are one turn.
    assert_eq!(reduced("u a u u a u a", turns(2)), "u2 u3 a4 u5 a6");
}

#[test]
fn r36_reducers_run_in_their_order() {
    let turns = || Reducer::SlidingTurns { turns: 2 };
    assert_eq!(reduced("u a u a u a", vec![turns(), count(3)]), "a3 u4 a5");
    assert_eq!(reduced("u a u a u a", vec![count(1), turns()]), "u4 a5");
}

#[test]
fn r36_every_drop_is_reported_and_nothing_stored_changes() {
    let history = talk("u r2 a u a u");
    let before = (history.messages().to_vec(), history.invocations().to_vec());
    let rendered = body(&mut Renderer::default(), &history, None, CHAT, &policy(vec![count(1)]), &mut nobody);
    let told: Vec<_> = rendered.report.iter().filter(|found| found.code.as_str() == "reduced").collect();
    let ids: Vec<_> = told.iter().filter_map(|found| found.message_id.clone()).collect();
    let gone: Vec<_> = history.messages().iter().take(5).map(|message| message.id.clone()).collect();
    assert_eq!(ids, gone);
    assert!(told.iter().all(|found| found.action == Some(Action::Dropped) && found.message.contains("message_count")));
    assert_eq!((history.messages().to_vec(), history.invocations().to_vec()), before);
}

// ---- results and tokens

fn with_results(results: &[&str]) -> History {
    let mut list = Vec::new();
    for (at, result) in results.iter().enumerate() {
        list.push(format!(r#"{{"role":"user","content":"u{at}"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{at}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c{at}","content":{}}},{{"role":"assistant","content":"a{at}"}}"#, JsonStr::new(result).token()));
    }
    history_of(&format!("[{}]", list.join(",")))
}

/// The results of a chat body.
fn results(body: &[u8]) -> Vec<String> {
    let body = Json::parse(std::str::from_utf8(body).unwrap()).unwrap();
    let tools = body.view().get("messages").unwrap().items().filter(|message| message.get("tool_call_id").is_some());
    tools.filter_map(|message| message.text("content").map(|text| text.into_owned())).collect()
}

#[test]
fn r36_long_results_of_older_turns_are_shortened() {
    let long = "\u{e9}".repeat(3_000);
    let history = with_results(&[&long, "short", &long]);
    let cut = |keep_newest_turns, max_bytes| Reducer::ToolResults { keep_newest_turns, max_bytes };
    let of = |reducers| body(&mut Renderer::default(), &history, None, CHAT, &policy(reducers), &mut nobody);
    let rendered = of(vec![cut(1, 100)]);
    let shown = results(&rendered.body);
    assert!(shown[0].len() <= 100 && shown[0].len() > 90 && shown[0].ends_with("[shortened]"), "{}", shown[0]);
    assert_eq!((shown[1].as_str(), shown[2].as_str()), ("short", long.as_str()));
    let told: Vec<_> =
        rendered.report.iter().map(|found| (found.code.as_str(), found.call_id.as_deref(), found.action)).collect();
    assert_eq!(told, [("reduced", Some("c0"), Some(Action::Rewritten))]);
    // Twice is once, and the smaller one counts.
    assert_eq!(of(vec![cut(1, 100), cut(1, 100), cut(1, 4_000)]).body, rendered.body);
    assert_eq!(results(&of(vec![cut(0, 0)]).body)[2], "\n[shortened]");
    // A kept encoding is made again when it is cut, and again when it is not.
    let mut renderer = Renderer::default();
    let mut next = |reducers| results(&body(&mut renderer, &history, None, CHAT, &policy(reducers), &mut nobody).body);
    assert_eq!(next(vec![])[0], long);
    assert!(next(vec![cut(1, 100)])[0].len() <= 100);
    assert!(next(vec![cut(1, 200)])[0].len() > 100);
    assert_eq!(next(vec![])[0], long);
}

#[test]
fn r14_long_results_are_shortened_before_turns_are_dropped() {
    let long = "x".repeat(40_000);
    let history = with_results(&[&long, "b", "c"]);
    let of = |tokens| body(&mut Renderer::default(), &history, None, CHAT, &policy(vec![budget(tokens)]), &mut nobody);
    assert_eq!(results(&of(20_000).body)[0], long);
    let shrunk = results(&of(1_000).body);
    assert_eq!((shrunk.len(), shrunk[0].len()), (3, 1_000));
    assert_eq!(short(&of(150).body), "u1 r1 - a1 u2 r1 - a2", "then the oldest turn goes, whole");
    assert_eq!(short(&of(39).body), "u2 r1 - a2");
    let least = of(1);
    assert_eq!(short(&least.body), "u2 a2", "the newest question and the newest message stay");
    assert!(least.report.iter().any(|found| found.severity == Severity::Warning && found.code.as_str() == "reduced"));
}

#[test]
fn r14_arguments_count_towards_the_budget() {
    let arguments = JsonStr::new(&format!(r#"{{"q":"{}"}}"#, "x".repeat(8_000)));
    let list = format!(
        r#"[{{"role":"user","content":"u0"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"f","arguments":{}}}}}]}},{{"role":"tool","tool_call_id":"c","content":"r"}},{{"role":"assistant","content":"a0"}},{{"role":"user","content":"u1"}}]"#,
        arguments.token()
    );
    let history = history_of(&list);
    let of = |tokens| {
        short(&body(&mut Renderer::default(), &history, None, CHAT, &policy(vec![budget(tokens)]), &mut nobody).body)
    };
    assert_eq!(of(2_100), "u0 r1 - a0 u1");
    assert_eq!(of(1_000), "u1");
}

#[test]
fn r14_in_a_running_turn_the_oldest_rounds_are_dropped_and_none_is_split() {
    let history = talk("u a");
    let live = talk("u r2 r2 r2");
    let of = |tokens| {
        short(
            &body(&mut Renderer::default(), &history, Some(&live), CHAT, &policy(vec![budget(tokens)]), &mut nobody)
                .body,
        )
    };
    assert_eq!(of(1_000), "u0 a1 u0 r2 - - r2 - - r2 - -");
    assert_eq!(of(40), "u0 r2 - - r2 - -");
    assert_eq!(of(0), "u0 r2 - -");
}

#[test]
fn r14_a_counter_gets_all_texts_of_a_render_in_one_batch_and_its_counts_are_cached() {
    let long = "x".repeat(5_000);
    let ids = CountingIds::default();
    let mut history = History::new(Seed(1));
    append(
        &mut history,
        &format!(
            r#"[{{"role":"user","content":"one"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"look","arguments":"{{\"n\":1}}"}}}}]}},{{"role":"tool","tool_call_id":"c","content":"{long}"}},{{"role":"assistant","content":"two"}}]"#
        ),
        &ids,
    );
    let batches = std::cell::RefCell::new(Vec::new());
    let mut answers = |question: &QuestionKind| {
        let QuestionKind::Count(texts) = question else { panic!("{question:?}") };
        batches.borrow_mut().push(texts.clone());
        ReducerReply::Counts(texts.iter().map(|text| text.len() as u64).collect())
    };
    let mut renderer = Renderer::default();
    let with = |tokens| policy(vec![Reducer::TokenBudget { tokens, count: Some(callback(1)) }]);
    let first = body(&mut renderer, &history, None, CHAT, &with(1_100), &mut answers);
    assert_eq!(results(&first.body)[0].len(), 1_000);
    let batch = batches.take();
    assert_eq!(batch.len(), 1);
    // The long result as it is and as it would be shrunk.
    let sizes: Vec<_> = batch[0].iter().map(|text| text.len()).collect();
    assert_eq!((sizes, batch[0][1].as_str()), (vec![3, "look\n{\"n\":1}".len(), 5_000, 1_000, 3], "look\n{\"n\":1}"));
    assert_eq!(body(&mut renderer, &history, None, CHAT, &with(1_100), &mut answers).body, first.body);
    assert_eq!(batches.take().len(), 0, "nothing is counted twice");
    // What is new is counted, and nothing else; another limit counts nothing.
    append(&mut history, r#"[{"role":"user","content":"three"}]"#, &ids);
    assert_eq!(short(&body(&mut renderer, &history, None, CHAT, &with(500), &mut answers).body), "three");
    assert_eq!(batches.take(), [["three"]]);
    // Another function has answers of its own.
    let other = policy(vec![Reducer::TokenBudget { tokens: 9, count: Some(callback(2)) }]);
    body(&mut renderer, &history, None, CHAT, &other, &mut answers);
    assert_eq!(batches.take()[0].len(), 6);
}

#[test]
fn r36_a_reducer_whose_callback_fails_is_skipped() {
    let history = talk("u a u a u");
    let all = [
        Reducer::TokenBudget { tokens: 1, count: Some(callback(1)) },
        summarize(1, 0),
        Reducer::Custom { reduce: callback(2) },
    ];
    for reducer in all {
        for wrong in [
            ReducerReply::Failed("boom".into()),
            ReducerReply::Counts(vec![1]),
            ReducerReply::Summary(" ".into()),
            ReducerReply::Messages(Json::parse("[7]").unwrap()),
            ReducerReply::Messages(Json::null()),
        ] {
            let rules = policy(vec![reducer.clone(), Reducer::SlidingTurns { turns: 2 }]);
            let rendered = body(&mut Renderer::default(), &history, None, CHAT, &rules, &mut |_| wrong.clone());
            assert_eq!(short(&rendered.body), "u2 a3 u4", "{reducer:?} {wrong:?}");
            let failed: Vec<_> =
                rendered.report.iter().filter(|found| found.code.as_str() == "callback_failed").collect();
            assert!(
                failed.len() == 1
                    && failed[0].severity == Severity::Warning
                    && failed[0].message.contains(reducer.name())
            );
        }
    }
    // Where nobody can be asked it is the same.
    let rules = policy(vec![Reducer::Custom { reduce: callback(2) }]);
    let provider = provider(CHAT);
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &rules };
    let rendered = Renderer::default().render(&history, None, &request, 2_000).unwrap();
    assert_eq!(short(&rendered.body), "u0 a1 u2 a3 u4");
}

#[test]
fn r14_a_different_counter_counts_again() {
    let history = history_of(
        r#"[{"role":"user","content":"u"},{"role":"assistant","content":"look","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"long\":1}"}}]},{"role":"tool","tool_call_id":"x","content":"r"},{"role":"assistant","content":"a"},{"role":"user","content":"v"}]"#,
    );
    let seen = std::cell::RefCell::new(Vec::new());
    let mut answers = |question: &QuestionKind| {
        let QuestionKind::Count(texts) = question else { panic!("{question:?}") };
        seen.borrow_mut().extend(texts.clone());
        ReducerReply::Counts(vec![1; texts.len()])
    };
    let budget = Reducer::TokenBudget { tokens: 9, count: Some(callback(1)) };
    let bare = Reducer::MessageCount { count: 9, keep_tools: false, first_system_only: false };
    let mut renderer = Renderer::default();
    body(&mut renderer, &history, None, CHAT, &policy(vec![bare, budget.clone()]), &mut answers);
    assert_eq!(seen.take(), ["u", "look", "a", "v"]);
    body(&mut renderer, &history, None, CHAT, &policy(vec![budget]), &mut answers);
    assert_eq!(seen.take(), ["look\nf\n{\"long\":1}", "r"]);
}

// ---- summaries

#[test]
fn r36_the_summarys_role_alternates_with_the_next_message() {
    let roles = |target: usize| {
        let rules = policy(vec![summarize(target, 0)]);
        let rendered = body(&mut Renderer::default(), &talk("u a u a u"), None, CHAT, &rules, &mut |_| {
            ReducerReply::Summary("sum".into())
        });
        let text = Json::parse(std::str::from_utf8(&rendered.body).unwrap()).unwrap();
        let list = text.view().get("messages").unwrap();
        list.items().map(|message| message.text("role").unwrap().into_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(roles(3), "assistant user assistant user");
    assert_eq!(roles(2), "user assistant user");
}

#[test]
fn r36_summarize_starts_at_the_threshold_and_keeps_the_target() {
    let mut asked = 0;
    let mut of = |script: &str| {
        let rendered =
            body(&mut Renderer::default(), &talk(script), None, CHAT, &policy(vec![summarize(5, 2)]), &mut |_| {
                asked += 1;
                ReducerReply::Summary("sum".into())
            });
        short(&rendered.body)
    };
    assert_eq!(of("u a u a u a u"), "u0 a1 u2 a3 u4 a5 u6");
    assert_eq!(of("u a u a u a u u"), "[sum] u2 a3 u4 a5 u6 u7", "back to where the user speaks");
    assert_eq!(of("s u u u u u u u u"), "s0 [sum] u4 u5 u6 u7 u8");
    assert_eq!(asked, 2);
}

#[test]
fn r36_a_summary_covers_whole_rounds_with_their_results() {
    let mut seen = Vec::new();
    let rendered = body(
        &mut Renderer::default(),
        &talk("s u r2 r1 a u a"),
        None,
        CHAT,
        &policy(vec![summarize(2, 0)]),
        &mut |question| {
            let QuestionKind::Summarize(body) = question else { panic!("{question:?}") };
            seen.clone_from(body);
            ReducerReply::Summary("sum".into())
        },
    );
    assert_eq!(short(&rendered.body), "s0 [sum] u5 a6");
    let text = String::from_utf8(seen.clone()).unwrap();
    assert!(validate(&seen, CHAT).iter().all(|found| found.severity != Severity::Error), "{text}");
    assert!(text.starts_with(r#"{"model":"m","max_tokens":9,"messages":["#), "{text}");
    assert!(short(&seen).starts_with("u1 r2 - - r1 - a4 Summarize"), "{text}");
    assert!(text.contains("r2") && text.contains("r3"), "{text}");
}

#[test]
fn r36_a_summary_is_requested_once_and_again_above_the_threshold() {
    let ids = CountingIds::default();
    let mut history = History::new(Seed(1));
    let mut renderer = Renderer::default();
    let mut bodies = Vec::new();
    let mut shown = Vec::new();
    for turn in 0..6 {
        append(
            &mut history,
            &format!(r#"[{{"role":"user","content":"u{turn}"}},{{"role":"assistant","content":"a{turn}"}}]"#),
            &ids,
        );
        for _ in 0..2 {
            let rendered = body(&mut renderer, &history, None, CHAT, &policy(vec![summarize(2, 2)]), &mut |question| {
                let QuestionKind::Summarize(body) = question else { panic!("{question:?}") };
                bodies.push(short(body).split(" Summarize").next().unwrap().to_owned());
                ReducerReply::Summary(format!("sum{}", bodies.len()))
            });
            shown.push(short(&rendered.body));
        }
    }
    assert_eq!(bodies, ["u0 a0 u1 a1", "[sum1] u2 a2 u3 a3"]);
    let last = |at: usize| (shown[at].clone(), shown[at + 1].clone());
    assert_eq!(last(2).0, "u0 a0 u1 a1");
    assert_eq!(last(4), ("[sum1] u2 a2".into(), "[sum1] u2 a2".into()));
    assert_eq!(last(6).0, "[sum1] u2 a2 u3 a3");
    assert_eq!(last(8), ("[sum2] u4 a4".into(), "[sum2] u4 a4".into()));
    // A failure later keeps the summary that there is.
    append(
        &mut history,
        r#"[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z"}]"#,
        &ids,
    );
    let rendered = body(&mut renderer, &history, None, CHAT, &policy(vec![summarize(2, 2)]), &mut |_| {
        ReducerReply::Failed("no".into())
    });
    assert_eq!(short(&rendered.body), "[sum2] u4 a4 u5 a5 x y z");
}

#[test]
fn r36_two_summarizers_produce_one_summary() {
    let rules = policy(vec![summarize(2, 0), summarize(2, 0)]);
    let mut asked = 0;
    let rendered = body(&mut Renderer::default(), &talk("u a u a u a"), None, CHAT, &rules, &mut |_| {
        asked += 1;
        ReducerReply::Summary("sum".into())
    });
    assert_eq!((short(&rendered.body).as_str(), asked), ("[sum] u4 a5", 1));
}

// ---- custom

/// The messages of a question as a list of texts, to be chosen from.
fn items(question: &QuestionKind) -> Vec<String> {
    let QuestionKind::Reduce(messages) = question else { panic!("{question:?}") };
    messages.view().items().map(|message| message.as_raw().to_owned()).collect()
}

fn given(items: &[String]) -> ReducerReply {
    ReducerReply::Messages(Json::parse(&format!("[{}]", items.join(","))).unwrap())
}

fn custom() -> Policy {
    policy(vec![Reducer::Custom { reduce: callback(3) }])
}

fn chosen(script: &str, choose: impl Fn(Vec<String>) -> Vec<String>) -> Rendered {
    body(&mut Renderer::default(), &talk(script), None, CHAT, &custom(), &mut |question| {
        given(&choose(items(question)))
    })
}

#[test]
fn r36_custom_can_choose_change_and_add_messages() {
    let all = chosen("s u r2 a u", |items| items);
    assert_eq!(short(&all.body), "s0 u1 r2 - - a3 u4");
    assert!(all.report.is_empty());
    let fewer = chosen("s u r2 a u", |items| [&items[..1], &items[3..]].concat());
    assert_eq!(short(&fewer.body), "s0 a3 u4");
    assert_eq!(fewer.report.iter().filter(|found| found.action == Some(Action::Dropped)).count(), 2);
    let changed = chosen("u a u", |items| items.iter().map(|item| item.replace("a1", "other")).collect());
    assert_eq!(short(&changed.body), "u0 other u2");
    let added = chosen("u a u", |mut items| {
        items.insert(0, r#"{"role":"user","parts":[{"type":"text","text":"first"}]}"#.into());
        items
    });
    assert_eq!(short(&added.body), "first u0 a1 u2");
    // A round without its calls; the words of a message with calls that was changed.
    let bare = chosen("u r2 a u", |items| items.iter().map(|item| item.replace("tool_call", "gone")).collect());
    assert_eq!(short(&bare.body), "u0 a2 u3");
}

#[test]
fn r36_custom_cannot_drop_the_newest_question_or_duplicate_a_message() {
    assert_eq!(short(&chosen("u a u r1", |_| Vec::new()).body), "u2");
    assert_eq!(short(&chosen("u a u r1", |items| vec![items[1].clone(), items[3].clone()]).body), "a1 u2 r1 -");
    assert_eq!(short(&chosen("u a u", |items| [items.clone(), items].concat()).body), "u0 a1 u2");
}

mod properties;
