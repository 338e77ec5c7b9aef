//! Cases 51 to 61 of persistence-and-providers.md, each by its number: what makes a history shorter. The sessions come
//! from every dialect and are rendered to every dialect.

use crate::wire_talk as talk;

use rethread::finding::{Report, Severity};
use rethread::history::{History, JoinBase, Origin, join};
use rethread::id::{CountingIds, Seed};
use rethread::json::{Json, JsonRef};
use rethread::message::Dialect;
use rethread::provider::{ProviderRequest, Settings, decode_body, validate};
use rethread::render::{RenderInput, RenderRequest, RenderStep, Renderer};
use rethread::replay::{
    Callback, DanglingCalls, Policy, PolicyLayer, QuestionKind, Reducer, ReducerReplies, ReducerReply,
};
use rethread::tool::Window;
use serde_json::{Value, json};
use std::rc::Rc;
use talk::{list_name, read, write};

/// A session, appended in pieces of one dialect or of several.
struct Session {
    history: History,
    ids: CountingIds,
    report: Report,
}

impl Session {
    fn new() -> Self {
        Self { history: History::new(Seed(2)), ids: CountingIds::default(), report: Report::new() }
    }

    fn of(dialect: Dialect, talk: &str) -> Self {
        Self::new().and(dialect, &write(dialect, talk))
    }

    fn and(mut self, dialect: Dialect, body: &Value) -> Self {
        let text = body.to_string();
        let items = decode_body(dialect, JsonRef::parse(&text).unwrap()).unwrap();
        let origin = Origin { at: 1_000, ..Origin::default() };
        let joined = join(JoinBase::history(&self.history), items, &origin, &self.ids);
        self.report.extend(joined.report);
        joined.entries.into_iter().for_each(|entry| self.history.apply(entry));
        self
    }

    /// The steps of the body that goes out, and the report.
    fn shown(
        &self,
        to: Dialect,
        policy: &Policy,
        answer: &mut dyn FnMut(&QuestionKind) -> ReducerReply,
    ) -> (String, Report) {
        let params = if to == Dialect::Anthropic { r#"{"max_tokens":9}"# } else { "{}" };
        let provider = ProviderRequest {
            dialect: to,
            url: "https://model.example/v1".into(),
            params: Json::parse(params).unwrap(),
            stream: false,
            headers: Vec::new(),
            settings: Settings::default(),
        };
        let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy };
        let (mut renderer, mut progress) = (Renderer::default(), ReducerReplies::default());
        let input = RenderInput {
            history: &self.history,
            live: None,
            owner: &rethread::owner::StateOwner::Session,
            begins_chain: false,
            handoffs: &[],
            scope: rethread::replay::HistoryScope::Whole,
            sent: None,
            agent: None,
            now: 2_000,
        };
        for _ in 0..9 {
            match renderer.step(input, &request, &progress).unwrap() {
                RenderStep::Done(done) => {
                    let errors = validate(&done.body, to).into_iter().filter(|found| found.severity == Severity::Error);
                    assert_eq!(errors.collect::<Vec<_>>(), [], "{to:?} {}", String::from_utf8_lossy(&done.body));
                    let body = serde_json::from_slice(&done.body).unwrap();
                    return (
                        read(to, &body).replace("Summary of the conversation before this:\n", "SUM "),
                        done.report,
                    );
                }
                RenderStep::HeadChanged => panic!("no service keeps a head"),
                RenderStep::Question(ask) => {
                    let given = answer(&ask.question);
                    renderer.take_reply(ask, given, &mut progress);
                }
            }
        }
        panic!("it goes on asking")
    }
}

fn policy(reducers: Vec<Reducer>) -> Policy {
    let call = PolicyLayer { freshness: Some(Window::Always), reducers: Some(reducers), ..PolicyLayer::default() };
    Policy { call, ..Policy::default() }
}

fn nobody(_: &QuestionKind) -> ReducerReply {
    panic!("nobody is asked")
}

fn sums_up(_: &QuestionKind) -> ReducerReply {
    ReducerReply::Summary("in short".into())
}

fn count(count: usize) -> Reducer {
    Reducer::MessageCount { count, keep_tools: true, first_system_only: false }
}

fn summarize(target: usize, threshold: usize) -> Reducer {
    Reducer::Summarize { target, threshold, summarize: Callback { id: 7, hook: Rc::new(()) } }
}

/// From every dialect to every dialect a session is shown so.
fn shows(talk: &str, reducers: &[Reducer], answer: fn(&QuestionKind) -> ReducerReply, want: &str) {
    for from in Dialect::ALL {
        let session = Session::of(from, talk);
        let before = (session.history.messages().to_vec(), session.history.invocations().to_vec());
        for to in Dialect::ALL {
            let (got, _) = session.shown(to, &policy(reducers.to_vec()), &mut |question| answer(question));
            // A conversation of Bedrock starts with a message of the user.
            let begun = format!("u Continue.; {want}");
            let is_begun = to == Dialect::Bedrock && want.starts_with("a ");
            assert_eq!(got, if is_begun { begun.as_str() } else { want }, "{from:?} to {to:?}, {reducers:?}");
        }
        assert_eq!((session.history.messages(), session.history.invocations()), (&before.0[..], &before.1[..]));
    }
}

#[test]
fn pp_51_message_count_keeps_the_newest() {
    shows("u 0; a 1; u 2; a 3; u 4; a 5; u 6; u 7", &[count(5)], nobody, "a 3; u 4; a 5; u 6; u 7");
    // All system messages stay (R36); the first one alone where that is asked for.
    let first = Reducer::MessageCount { count: 2, keep_tools: true, first_system_only: true };
    for from in [Dialect::OpenAiChat, Dialect::Mistral, Dialect::OpenAiResponses] {
        let session = Session::of(from, "s one; u 0; a 1; s two; u 2; a 3; u 4");
        let shown = |reducer| session.shown(Dialect::OpenAiChat, &policy(vec![reducer]), &mut nobody).0;
        assert_eq!(shown(count(2)), "s one; s two; a 3; u 4", "{from:?}");
        assert_eq!(shown(first.clone()), "s one; a 3; u 4", "{from:?}");
    }
    // Calls are kept with their round; none of earlier turns where that is asked for.
    let bare = Reducer::MessageCount { count: 9, keep_tools: false, first_system_only: false };
    let tools = "u 0; c a b; r a=1 b=2; c c; r c=3; u 1";
    shows(tools, &[count(9)], nobody, "u 0; c 1; c 2; r 1=1; r 2=2; c 3; r 3=3; u 1");
    shows(tools, &[bare], nobody, "u 0; u 1");
}

#[test]
fn pp_52_a_summary_is_requested_above_the_threshold() {
    shows("u 0; a 1; u 2; a 3; u 4; a 5; u 6", &[summarize(5, 2)], nobody, "u 0; a 1; u 2; a 3; u 4; a 5; u 6");
    let want = "a SUM in short; u 3; a 4; u 5; a 6; u 7";
    shows("u 0; u 1; a 2; u 3; a 4; u 5; a 6; u 7", &[summarize(5, 2)], sums_up, want);
}

const ROUNDS: &str = "u 0; a so + c a b; r b=2 a=1; c c; r c=3; a 1; u 2; c d e; r d=4 e=5; a 3; u 4";

/// Every call of a body has its result, and every round is there whole or not at all.
fn whole(steps: &str) {
    let has = |step: &str| steps.split("; ").any(|own| own == step);
    for text in ["so", "1=1"] {
        assert_eq!(has("a so"), steps.contains("=1"), "{text} {steps}");
    }
    for (one, two) in [("=1", "=2"), ("=4", "=5")] {
        assert_eq!(steps.contains(one), steps.contains(two), "{steps}");
    }
    let count = |kind: &str| steps.split("; ").filter(|step| step.starts_with(kind)).count();
    assert_eq!(count("c "), count("r "), "{steps}");
}

#[test]
fn pp_53_a_summary_limit_inside_a_round_keeps_or_covers_the_whole_round() {
    for from in Dialect::ALL {
        let session = Session::of(from, ROUNDS);
        for target in 1..12 {
            for to in Dialect::ALL {
                let covered = std::cell::RefCell::new(String::new());
                let (shown, _) = session.shown(to, &policy(vec![summarize(target, 0)]), &mut |question| {
                    let QuestionKind::Summarize(body) = question else { panic!("{question:?}") };
                    // What is summed up is a body of the same dialect, its rounds whole.
                    let errors = validate(body, to).into_iter().filter(|found| found.severity == Severity::Error);
                    assert_eq!(errors.collect::<Vec<_>>(), [], "{to:?} {}", String::from_utf8_lossy(body));
                    *covered.borrow_mut() = read(to, &serde_json::from_slice(body).unwrap());
                    ReducerReply::Summary("in short".into())
                });
                whole(&shown);
                whole(&covered.borrow());
                for result in ["=1", "=2", "=3", "=4", "=5"] {
                    let times = usize::from(shown.contains(result)) + usize::from(covered.borrow().contains(result));
                    assert_eq!(times, 1, "{from:?} {to:?} {target} {result}: {shown}");
                }
            }
        }
    }
}

#[test]
fn pp_54_a_call_and_its_results_are_kept_or_dropped_together() {
    for from in Dialect::ALL {
        let session = Session::of(from, ROUNDS);
        let mut seen = Vec::new();
        for at in 0..14 {
            for reducer in [
                count(at),
                Reducer::TokenBudget { tokens: at as u64 * 9, count: None },
                Reducer::SlidingTurns { turns: at },
            ] {
                for to in Dialect::ALL {
                    let (shown, _) = session.shown(to, &policy(vec![reducer.clone()]), &mut nobody);
                    whole(&shown);
                    assert!(shown.ends_with("u 4"), "{from:?} {to:?} {reducer:?} {shown}");
                    seen.push(shown.matches("c ").count());
                }
            }
        }
        seen.sort_unstable();
        seen.dedup();
        // Without its first round the turn would begin with a call and no question: then the second goes, too.
        assert_eq!(seen, [0, 2, 5], "{from:?}");
    }
}

#[test]
fn pp_55_reasoning_is_kept_or_dropped_with_the_call_after_it() {
    // Stored as messages of their own.
    let think = json!([{ "role": "assistant", "content": null, "reasoning_content": "hm" }]);
    let session = Session::of(Dialect::OpenAiChat, "u 0; a 1; u 2")
        .and(Dialect::OpenAiChat, &think)
        .and(Dialect::OpenAiChat, &json!(write(Dialect::OpenAiChat, "c a b; r a=1 b=2; a 3; u 4")["messages"]));
    let ids: Vec<&str> = session.history.messages().iter().map(|message| message.id.as_str()).collect();
    let (thought, round) = (ids[3], ids[4]);
    let mut seen = Vec::new();
    for at in 1..8 {
        let (_, report) = session.shown(Dialect::OpenAiChat, &policy(vec![count(at)]), &mut nobody);
        let gone = |id: &str| {
            report.iter().any(|found| found.code.as_str() == "reduced" && found.message_id.as_deref() == Some(id))
        };
        assert_eq!(gone(thought), gone(round), "{at} {report:?}");
        seen.push(gone(round));
    }
    assert!(seen.contains(&true) && seen.contains(&false));
    // Or of one answer: then the items go out side by side.
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e" });
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}" });
    let mut body = write(Dialect::OpenAiResponses, "u 0; a 1; u 2; r a=1; a 3; u 4");
    let list = body["input"].as_array_mut().unwrap();
    list.splice(3..3, [reasoning, call]);
    let session = Session::new().and(Dialect::OpenAiResponses, &body);
    for at in 1..8 {
        let provider = ProviderRequest {
            dialect: Dialect::OpenAiResponses,
            url: String::new(),
            params: Json::parse("{}").unwrap(),
            stream: false,
            headers: Vec::new(),
            settings: Settings::default(),
        };
        let rules = policy(vec![count(at)]);
        let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &rules };
        let out = Renderer::default().render(&session.history, None, &request, 2_000).unwrap().body;
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out.contains("rs_1"), out.contains("fc_1"), "{at} {out}");
    }
}

#[test]
fn pp_56_an_orphan_result_is_dropped_and_reported() {
    for from in Dialect::ALL {
        let session = Session::of(from, "u 0; r z=9; a 1; u 2");
        assert!(
            session.report.iter().any(|found| found.code.as_str() == "orphan_result"),
            "{from:?} {:?}",
            session.report
        );
        assert_eq!(session.history.set_aside().len(), 1);
        for reducers in [vec![], vec![count(2)], vec![Reducer::SlidingTurns { turns: 9 }]] {
            for to in Dialect::ALL {
                let (shown, _) = session.shown(to, &policy(reducers.clone()), &mut nobody);
                assert!(!shown.contains("=9") && shown.ends_with("a 1; u 2"), "{from:?} {to:?} {shown}");
            }
        }
    }
}

#[test]
fn pp_57_a_late_result_is_assigned_to_its_call() {
    shows("u 0; c a; u 1; r a=1; a 2; u 3", &[], nobody, "u 0; c 1; r 1=1; u 1; a 2; u 3");
    // A call that was left out while it was open is shown again with its result.
    let omit = Policy {
        call: PolicyLayer { dangling_calls: Some(DanglingCalls::Omit), ..policy(vec![count(9)]).call },
        ..Policy::default()
    };
    for from in Dialect::ALL {
        let open = Session::of(from, "u 0; c a; u 1");
        let shown = |session: &Session, to| session.shown(to, &omit, &mut nobody).0;
        for to in Dialect::ALL {
            assert_eq!(shown(&open, to), "u 0; u 1", "{from:?} {to:?}");
        }
        let late = open.and(from, &json!(write(from, "r a=1; a 2; u 3")[list_name(from)]));
        for to in Dialect::ALL {
            assert_eq!(shown(&late, to), "u 0; c 1; r 1=1; u 1; a 2; u 3", "{from:?} {to:?}");
        }
    }
}

#[test]
fn pp_58_a_reused_call_id_makes_two_pairs() {
    let again = "u 0; c a; r a=1; a 1; u 2; c a; r a=2; a 3; u 4";
    shows(again, &[], nobody, "u 0; c 1; r 1=1; a 1; u 2; c 2; r 2=2; a 3; u 4");
    shows(again, &[Reducer::SlidingTurns { turns: 2 }], nobody, "u 2; c 1; r 1=2; a 3; u 4");
    // Two open at once: no result is doubled or lost.
    for from in Dialect::ALL {
        let session = Session::of(from, "u 0; c a; u 1; c a; r a=1; r a=2; u 2");
        for to in Dialect::ALL {
            let (shown, _) = session.shown(to, &policy(vec![]), &mut nobody);
            assert!(shown.contains("=1") && shown.contains("=2"), "{from:?} {to:?} {shown}");
            assert_eq!((shown.matches("c ").count(), shown.matches("r ").count()), (2, 2), "{from:?} {to:?} {shown}");
        }
    }
}

#[test]
fn pp_59_a_failed_summary_drops_nothing() {
    let talk = "u 0; a 1; u 2; a 3; u 4; a 5; u 6; a 7; u 8";
    for wrong in [ReducerReply::Failed("boom".into()), ReducerReply::Summary("  ".into())] {
        for from in Dialect::ALL {
            let session = Session::of(from, talk);
            for to in Dialect::ALL {
                let (shown, report) = session.shown(to, &policy(vec![summarize(2, 0)]), &mut |_| wrong.clone());
                assert_eq!(shown, talk, "{from:?} {to:?}");
                let failed: Vec<_> = report.iter().filter(|found| found.code.as_str() == "callback_failed").collect();
                assert!(failed.len() == 1 && failed[0].severity == Severity::Warning, "{report:?}");
            }
        }
    }
}

#[test]
fn pp_60_one_oversized_group_is_still_kept() {
    let long = "x".repeat(600);
    for from in Dialect::ALL {
        let session = Session::of(from, &format!("u {long}; c a b; r a={long} b={long}"));
        for reducer in [Reducer::TokenBudget { tokens: 1, count: None }, count(1), Reducer::SlidingTurns { turns: 1 }] {
            for to in Dialect::ALL {
                let (shown, _) = session.shown(to, &policy(vec![reducer.clone()]), &mut nobody);
                let want = format!("u {long}; c 1; c 2; r 1={long}; r 2={long}");
                assert_eq!(shown, want, "{from:?} {to:?} {reducer:?}");
            }
        }
    }
}

#[test]
fn pp_61_the_result_is_deterministic() {
    let long = "y".repeat(900);
    let talk = format!("u 0; c a; r a={long}; a 1; u 2; c b; r b={long}; a 3; u 4");
    let cut = || Reducer::ToolResults { keep_newest_turns: 1, max_bytes: 100 };
    for from in Dialect::ALL {
        let session = Session::of(from, &talk);
        for to in Dialect::ALL {
            let shown = |reducers| session.shown(to, &policy(reducers), &mut sums_up).0;
            let once = shown(vec![cut()]);
            assert!(once.contains("[shortened]") && !once.contains(&long), "{from:?} {to:?} {once}");
            assert_eq!(shown(vec![cut(), cut()]), once, "{from:?} {to:?}");
            let once = shown(vec![summarize(2, 0)]);
            assert!(once.contains("SUM in short"), "{once}");
            assert_eq!(shown(vec![summarize(2, 0), summarize(2, 0)]), once, "{from:?} {to:?}");
        }
    }
}
