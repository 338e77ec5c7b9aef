//! Loops that the application drives and checkpoints here (R19), in every dialect.

mod late_results;
mod placeholders;

use crate::wire_talk as talk;
use proptest::prelude::*;
use rethread::error::{Error, ErrorCode};
use rethread::finding::{FindingCode, Severity};
use rethread::history::{History, Origin};
use rethread::id::{CountingIds, Seed};
use rethread::json::{Json, JsonRef};
use rethread::message::{Dialect, Role};
use rethread::provider::{ProviderRequest, Settings};
use rethread::render::{RenderRequest, Renderer};
use rethread::replay::{Policy, PolicyLayer, Reducer};
use rethread::run::{ExternalBody, ExternalContext, ExternalLoop, Persistence};
use rethread::tool::{InvocationStatus, ToolInvocation};
use serde_json::{Value, json};
use talk::{read, write};

const PER_CALL: [Persistence; 2] = [Persistence::Call, Persistence::Result];

/// A session, and a loop that checkpoints into it as the binding does.
struct Driven {
    history: History,
    ids: CountingIds,
    renderer: Renderer,
    policy: Policy,
    now: u64,
    external: ExternalLoop,
    appends: usize,
}

impl Driven {
    fn new(persistence: Persistence) -> Self {
        Self {
            history: History::new(Seed(2)),
            ids: CountingIds::default(),
            renderer: Renderer::default(),
            policy: Policy::default(),
            now: 1_000,
            external: ExternalLoop::new(persistence),
            appends: 0,
        }
    }

    /// A loop begins, in this process or in one after a crash.
    fn again(&mut self, persistence: Persistence) {
        self.external = ExternalLoop::new(persistence);
    }

    fn apply(&mut self, body: &ExternalBody) -> Result<(), Error> {
        let origin = Origin { at: self.now, ..Origin::default() };
        let mut context = ExternalContext {
            history: &self.history,
            policy: &self.policy,
            origin: &origin,
            now: self.now,
            ids: &self.ids,
        };
        let joined = self.external.join(body, &mut context)?;
        assert!(joined.report.is_empty(), "{:?}", joined.report);
        if self.external.stores_checkpoints() {
            self.appends += usize::from(!joined.entries.is_empty());
            joined.entries.into_iter().for_each(|entry| self.history.apply(entry));
        }
        Ok(())
    }

    fn checkpoint(&mut self, dialect: Dialect, body: &Value) -> Result<(), Error> {
        self.external.check_open()?;
        let text = body.to_string();
        let body = ExternalBody::decode(dialect, JsonRef::parse(&text).unwrap())?;
        self.apply(&body)?;
        self.external.accept(body, &self.history);
        Ok(())
    }

    /// The code of the warning, if there is one.
    fn end(&mut self) -> Option<FindingCode> {
        if let Some(body) = self.external.pending() {
            let origin = Origin { at: self.now, ..Origin::default() };
            let mut context = ExternalContext {
                history: &self.history,
                policy: &self.policy,
                origin: &origin,
                now: self.now,
                ids: &self.ids,
            };
            let joined = self.external.join(&body, &mut context).unwrap();
            self.appends += 1;
            joined.entries.into_iter().for_each(|entry| self.history.apply(entry));
        }
        self.external.end().map(|finding| finding.code)
    }

    /// The body that a request of this dialect has now.
    fn body(&mut self, dialect: Dialect) -> Value {
        let provider = ProviderRequest {
            dialect,
            url: "about:render".into(),
            params: Json::parse(if dialect == Dialect::Anthropic { r#"{"max_tokens":9}"# } else { "{}" }).unwrap(),
            stream: false,
            headers: Vec::new(),
            settings: Settings::default(),
        };
        let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &self.policy };
        let rendered = self.renderer.render(&self.history, None, &request, self.now).unwrap();
        let mut body: Value = serde_json::from_slice(&rendered.body).unwrap();
        // A request to Gemini ends with the user; an application that adds a question does not send this.
        let list = body[talk::list_name(dialect)].as_array_mut().unwrap();
        if list.last().is_some_and(|last| last["parts"][0]["text"] == "Continue.") {
            list.pop();
        }
        body
    }

    /// The conversation in short, whatever a request would leave out of it.
    fn whole(&mut self) -> String {
        let policy = std::mem::take(&mut self.policy);
        let body = self.body(Dialect::OpenAiChat);
        self.policy = policy;
        read(Dialect::OpenAiChat, &body)
    }
}

/// The first steps of a conversation.
fn steps(talk: &str, count: usize) -> String {
    talk.split("; ").take(count).collect::<Vec<_>>().join("; ")
}

const TALK: &str = "s be brief; u hi; a let me look + c x y; r x=1 y=2; c z; r z=3; a done; u yes; a ok; u yes; a ok";
/// The same as `read` gives it.
const READ: &str =
    "s be brief; u hi; a let me look; c 1; c 2; r 1=1; r 2=2; c 3; r 3=3; a done; u yes; a ok; u yes; a ok";

#[test]
fn r19_each_checkpoint_stores_what_is_new_and_a_repeated_one_nothing() {
    for dialect in Dialect::ALL {
        for mode in PER_CALL {
            let mut driven = Driven::new(mode);
            for count in 2..=11 {
                let body = write(dialect, &steps(TALK, count));
                driven.checkpoint(dialect, &body).unwrap();
                driven.checkpoint(dialect, &body).unwrap();
                assert_eq!(driven.appends, count - 1, "{dialect:?} after {count} steps");
                // A process that begins after a crash finds the same.
                driven.again(mode);
                driven.checkpoint(dialect, &body).unwrap();
                assert_eq!(driven.appends, count - 1, "{dialect:?} after {count} steps");
            }
            assert_eq!(driven.end(), None);
            assert_eq!(driven.whole(), READ, "{dialect:?}");
            assert!(driven.history.set_aside().is_empty());
        }
    }
}

#[test]
fn r19_in_mode_run_the_end_stores_the_last_checkpoint_in_one_append() {
    for dialect in Dialect::ALL {
        let mut driven = Driven::new(Persistence::Run);
        for count in 2..=7 {
            driven.checkpoint(dialect, &write(dialect, &steps(TALK, count))).unwrap();
            assert!(driven.history.messages().is_empty());
        }
        assert_eq!(driven.end(), None);
        assert_eq!((driven.appends, driven.whole()), (1, steps(READ, 10)));
    }
}

#[test]
fn r19_the_rendered_body_of_any_dialect_can_be_continued() {
    for from in Dialect::ALL {
        for to in Dialect::ALL {
            let mut driven = Driven::new(Persistence::Call);
            driven.checkpoint(from, &write(from, &steps(TALK, 7))).unwrap();
            driven.again(Persistence::Call);
            let mut body = driven.body(to);
            let mut more = write(to, "u and?; a yes");
            let list = talk::list_name(to);
            body[list].as_array_mut().unwrap().append(more[list].as_array_mut().unwrap());
            driven.checkpoint(to, &body).unwrap();
            driven.checkpoint(to, &body).unwrap();
            assert_eq!((driven.appends, driven.whole()), (2, format!("{}; u and?; a yes", steps(READ, 10))), "{to:?}");
        }
    }
}

#[test]
fn r19_a_body_without_stale_calls_or_reduced_messages_can_be_continued() {
    for dialect in Dialect::ALL {
        let mut driven = Driven::new(Persistence::Call);
        driven.checkpoint(dialect, &write(dialect, &steps(TALK, 7))).unwrap();
        // Six minutes later the results are stale.
        driven.now += 360_000;
        let mut stale = driven.body(dialect);
        assert_eq!(read(dialect, &stale), "s be brief; u hi; a let me look; a done", "{dialect:?}");
        driven.again(Persistence::Call);
        let list = talk::list_name(dialect);
        let mut more = write(dialect, "u and?; c n; r n=9; a yes");
        stale[list].as_array_mut().unwrap().append(more[list].as_array_mut().unwrap());
        driven.checkpoint(dialect, &stale).unwrap();
        driven.checkpoint(dialect, &stale).unwrap();
        assert_eq!(driven.appends, 2);
        if dialect == Dialect::Gemini {
            // Without an input its request ends with words that `body` removes; with one, one turn is the input alone.
            continue;
        }
        driven.again(Persistence::Call);
        driven.policy.session =
            PolicyLayer { reducers: Some(vec![Reducer::SlidingTurns { turns: 1 }]), ..PolicyLayer::default() };
        let mut reduced = driven.body(dialect);
        assert!(!read(dialect, &reduced).contains("u hi"), "{reduced}");
        let mut more = write(dialect, "u more?; a no");
        reduced[list].as_array_mut().unwrap().append(more[list].as_array_mut().unwrap());
        driven.checkpoint(dialect, &reduced).unwrap();
        assert_eq!(driven.appends, 3, "{dialect:?}");
        let users = driven.history.messages().iter().filter(|message| message.role == Role::User).count();
        assert_eq!(users, 3);
        assert_eq!(driven.history.invocations().len(), 4);
        assert!(driven.history.open_calls().next().is_none());
    }
}

#[test]
fn r19_a_checkpoint_that_is_no_continuation_is_rejected_and_nothing_is_stored() {
    for dialect in Dialect::ALL {
        let mut driven = Driven::new(Persistence::Call);
        let known = write(dialect, &steps(TALK, 9));
        driven.checkpoint(dialect, &known).unwrap();
        for other in [
            // Shorter, without the newest calls, other words, another order, another beginning, nothing of it, an
            // unknown message in between.
            "s be brief; u hi",
            "s be brief; u hi; a let me look; a done; u yes",
            "s be brief; u hello; a let me look + c x y; r x=1 y=2; c z; r z=3; a done; u yes; a ok; u new",
            "u hi; a done; a let me look; u yes; a ok; u new",
            "u yes; a ok; u new",
            "u new",
            "s be brief; u hi; a let me look + c x y; r x=1 y=2; c z; r z=3; a done; u wait; u yes; a ok; u new",
        ] {
            for begins in [false, true] {
                if begins {
                    driven.again(Persistence::Call);
                }
                let error = driven.checkpoint(dialect, &write(dialect, other)).unwrap_err();
                assert_eq!(error.code, ErrorCode::InvalidInput, "{dialect:?} {other}");
                assert!(error.message.contains("does not continue what is stored"), "{}", error.message);
                assert_eq!(driven.appends, 1);
            }
        }
        // A result of a call that nobody has.
        let mut orphan = known.clone();
        let list = talk::list_name(dialect);
        let mut result = write(dialect, "c q; r q=7");
        let result = result[list].as_array_mut().unwrap().pop().unwrap();
        orphan[list].as_array_mut().unwrap().push(result);
        let failed = driven.checkpoint(dialect, &orphan);
        // Gemini's result names a tool; the others a call.
        assert_eq!(failed.unwrap_err().code, ErrorCode::InvalidInput, "{dialect:?}");
        assert_eq!(driven.appends, 1);
        // And the loop goes on.
        driven.checkpoint(dialect, &write(dialect, &steps(TALK, 11))).unwrap();
        assert_eq!(driven.whole(), READ);
    }
}

#[test]
fn r19_an_open_call_is_answered_by_a_later_checkpoint_but_not_by_a_placeholder() {
    for dialect in Dialect::ALL {
        let mut driven = Driven::new(Persistence::Result);
        driven.checkpoint(dialect, &write(dialect, &steps(TALK, 3))).unwrap();
        assert_eq!(driven.history.open_calls().count(), 2);
        driven.again(Persistence::Result);
        // The request closes both calls, since nobody knows whether they ran.
        let closed = driven.body(dialect);
        assert!(closed.to_string().contains("may or may not have run"));
        driven.checkpoint(dialect, &closed).unwrap();
        assert_eq!(driven.history.open_calls().count(), 2, "{dialect:?}: a placeholder is no result");
        driven.checkpoint(dialect, &write(dialect, &steps(TALK, 4))).unwrap();
        assert_eq!(driven.history.open_calls().count(), 0);
        assert_eq!(driven.whole(), steps(READ, 7));
    }
}

#[test]
fn r19_a_call_whose_missing_result_the_model_answered_is_interrupted_and_takes_a_late_result() {
    for dialect in Dialect::ALL {
        let mut driven = Driven::new(Persistence::Result);
        driven.checkpoint(dialect, &write(dialect, &steps(TALK, 3))).unwrap();
        driven.again(Persistence::Result);
        // The next process goes on from the request that closes both calls.
        let closed = driven.body(dialect);
        let answered = answered_body(dialect, &closed);
        driven.checkpoint(dialect, &answered).unwrap();
        let statuses: Vec<_> = driven.history.invocations().iter().map(|call| call.status).collect();
        assert_eq!(statuses, [InvocationStatus::Interrupted; 2], "{dialect:?}");
        let appends = driven.appends;
        driven.checkpoint(dialect, &answered).unwrap();
        assert_eq!(driven.appends, appends, "{dialect:?}: the same again adds nothing");
        assert!(driven.history.invocations().iter().all(ToolInvocation::takes_result));
    }
}

/// Returns the body with another answer of the model at its end.
fn answered_body(dialect: Dialect, body: &Value) -> Value {
    let member = if dialect == Dialect::Gemini {
        "contents"
    } else if matches!(dialect, Dialect::OpenAiResponses | Dialect::GeminiInteractions) {
        "input"
    } else if dialect == Dialect::MistralConversations {
        "inputs"
    } else {
        "messages"
    };
    let mut body = body.clone();
    let answer = write(dialect, "u hi; a Then not.")[member].as_array().unwrap().last().unwrap().clone();
    body[member].as_array_mut().unwrap().push(answer);
    body
}

#[test]
fn r19_instructions_of_a_later_loop_are_not_stored() {
    for dialect in Dialect::ALL {
        let mut driven = Driven::new(Persistence::Call);
        driven.checkpoint(dialect, &write(dialect, "s monday; u hi; a hello")).unwrap();
        driven.again(Persistence::Call);
        driven.checkpoint(dialect, &write(dialect, "s tuesday; u hi; a hello; u how?; a well")).unwrap();
        driven.checkpoint(dialect, &write(dialect, "s wednesday; u hi; a hello; u how?; a well; u ah")).unwrap();
        assert_eq!(driven.whole(), "s monday; u hi; a hello; u how?; a well; u ah", "{dialect:?}");
    }
}

#[test]
fn r19_the_four_cells_of_who_drives_and_whether_checkpoints_are_required() {
    // A run is never asked for checkpoints: `pp_02_pp_03_pp_04_pp_13` shows both of its cells. A loop of the
    // application:
    for (mode, warning) in [
        (Persistence::Run, None),
        (Persistence::Call, Some(FindingCode::NoCheckpoint)),
        (Persistence::Result, Some(FindingCode::NoCheckpoint)),
    ] {
        let mut driven = Driven::new(mode);
        assert_eq!(driven.end(), warning, "{mode:?}");
        assert_eq!(driven.end(), None, "it is reported once");
        let late = driven.checkpoint(Dialect::OpenAiChat, &write(Dialect::OpenAiChat, "u hi")).unwrap_err();
        assert_eq!(late.code, ErrorCode::WrongState);
        let mut driven = Driven::new(mode);
        driven.checkpoint(Dialect::OpenAiChat, &write(Dialect::OpenAiChat, "u hi")).unwrap();
        assert_eq!(driven.end(), None);
        assert_eq!(driven.whole(), "u hi");
    }
}

#[test]
fn pp_21_a_message_that_comes_between_the_rounds_of_a_loop_is_stored_in_its_place() {
    let talk = "u hi; c x; r x=1; u hurry; c y; r y=2; a done";
    for dialect in Dialect::ALL {
        let mut driven = Driven::new(Persistence::Call);
        for count in 1..=7 {
            driven.checkpoint(dialect, &write(dialect, &steps(talk, count))).unwrap();
        }
        assert_eq!(driven.whole(), "u hi; c 1; r 1=1; u hurry; c 2; r 2=2; a done", "{dialect:?}");
    }
}

#[test]
fn r19_calls_without_ids_are_told_apart_by_tool_and_arguments() {
    let call = |n: u32| json!({ "role": "model", "parts": [{ "functionCall": { "name": "f", "args": { "n": n } } }] });
    let result = |n: u32| json!({ "role": "user", "parts": [{ "functionResponse": { "name": "f", "response": { "result": n } } }] });
    let user = json!({ "role": "user", "parts": [{ "text": "go" }] });
    let mut driven = Driven::new(Persistence::Call);
    let mut contents = vec![user.clone()];
    for n in 0..4 {
        contents.extend([call(n), result(n)]);
        driven.checkpoint(Dialect::Gemini, &json!({ "contents": contents })).unwrap();
        assert_eq!(driven.history.invocations().len() as u32, n + 1);
        assert_eq!(driven.history.open_calls().count(), 0);
    }
    // Equal but for the arguments of a call, so another one.
    contents[5] = call(7);
    let error = driven.checkpoint(Dialect::Gemini, &json!({ "contents": contents })).unwrap_err();
    assert_eq!((error.code, driven.history.invocations().len()), (ErrorCode::InvalidInput, 4));
}

#[test]
fn r19_a_long_conversation_is_checkpointed_in_linear_time() {
    // Each checkpoint scans its body once; the count of steps, not a clock, is what grows.
    let mut driven = Driven::new(Persistence::Call);
    let mut talk = String::from("u 0");
    for turn in 1..300 {
        talk.push_str(&format!("; c k{turn}; r k{turn}={turn}; a {turn}; u {turn}"));
        driven.checkpoint(Dialect::OpenAiChat, &write(Dialect::OpenAiChat, &talk)).unwrap();
    }
    assert_eq!((driven.history.messages().len(), driven.appends), (299 * 3 + 1, 299));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any sequence of checkpoints of a growing conversation, with crashes and repeats: each message is stored once, in
    /// order.
    #[test]
    fn r19_any_checkpoints_with_crashes_and_repeats_store_each_message_once(
        dialect in 0..5_usize,
        seen in proptest::collection::vec((1..4_usize, any::<bool>(), any::<bool>()), 1..12),
    ) {
        let dialect = Dialect::ALL[dialect];
        let talk = "u yes; a ok; u yes; a ok; u yes; c a; r a=1; a ok; u yes; a hm + c b c; r b=1 c=1; c d; r d=1; a ok; u yes; a ok";
        let mut driven = Driven::new(Persistence::Call);
        let mut count = 0;
        for (more, repeats, crashes) in seen {
            count += more;
            let body = write(dialect, &steps(talk, count));
            driven.checkpoint(dialect, &body).unwrap();
            if crashes {
                driven.again(Persistence::Call);
            }
            if repeats {
                driven.checkpoint(dialect, &body).unwrap();
            }
        }
        let mut at_once = Driven::new(Persistence::Call);
        at_once.checkpoint(dialect, &write(dialect, &steps(talk, count))).unwrap();
        prop_assert_eq!(driven.whole(), at_once.whole());
    }
}

#[test]
fn r19_r73_a_checkpoint_may_name_the_tool_of_an_output_alone() {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"});
    let named = |text: &str| json!({"type": "function_call_output", "call_id": null, "name": "look", "output": text});
    let mut items = vec![json!({"role": "user", "content": "Hi"}), call("a"), call("b")];
    let mut driven = Driven::new(Persistence::Result);
    let checkpoint = |driven: &mut Driven, items: &[Value]| {
        driven.checkpoint(Dialect::OpenAiResponses, &json!({"input": items})).unwrap();
    };
    checkpoint(&mut driven, &items);
    assert_eq!(driven.history.open_calls().count(), 2);
    items.extend([named("1"), named("2")]);
    checkpoint(&mut driven, &items);
    assert_eq!(driven.history.open_calls().count(), 0);
    // The same again stores nothing, also by another process.
    for text in ["Done.", "And?"] {
        let (whole, appends) = (driven.whole(), driven.appends);
        driven.again(Persistence::Result);
        checkpoint(&mut driven, &items);
        assert_eq!((driven.whole(), driven.appends), (whole, appends));
        items.push(json!({"role": "assistant", "content": text}));
        checkpoint(&mut driven, &items);
    }
    assert_eq!(driven.history.invocations().len(), 2);
}
