//! R78: a provider's own compaction stands for what it covers, and the reasoning after it stays valid. The provider is
//! a stand-in that compares prefixes as JSON and refuses a compaction that it did not make, or that is not first.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::bound_reasoning::{BINDING, Chat, setup_of};
use super::cuts::prefixes;
use super::reopened;
use super::scripted_host::*;
use proptest::prelude::*;
use rethread::clock::Clock;
use rethread::finding::PrefixChange;
use rethread::history::{Compactable, Coverage, StoredSummary};
use rethread::message::{AnswerMeta, Dialect};
use rethread::owner::StateOwner;
use rethread::provider::{ProviderSummary, read_provider_summary};
use rethread::render::{ProviderCompactionBody, RenderRequest, compaction_body, provider_compaction_body};
use rethread::run::{EffectKind, EffectReply, RunSetup};
use rethread::store::{Change, MemoryStore, commit};
use serde_json::{Value, json};

fn request(setup: &RunSetup) -> RenderRequest<'_> {
    let RunSetup { provider, instructions, tools, policy, .. } = setup;
    RenderRequest { provider, instructions: instructions.as_deref(), tools, policy }
}

/// Has the provider compact what is over. The answer is not stored yet.
fn compaction(chat: &Chat<'_>, setup: &RunSetup) -> Option<StoredSummary> {
    let log = chat.host.log.borrow();
    let Compactable::Turns { end, .. } = log.history.compactable(&|_| false) else { return None };
    let coverage: Coverage = log.history.coverage(end)?;
    let now = chat.host.clock.now();
    let ProviderCompactionBody { body, mark } =
        provider_compaction_body(&log.history, end, &request(setup), now).unwrap().unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    valid(&body, setup.provider.dialect);
    let answer = chat.provider.borrow_mut().compact(&body);
    let ProviderSummary::Items(items) = read_provider_summary(setup.provider.dialect, &answer) else {
        panic!("{answer}")
    };
    let answer = AnswerMeta { maker: Some(setup.provider.maker()), prefix: mark, ..AnswerMeta::default() };
    Some(StoredSummary::of_items(coverage, setup.provider.dialect, items, None).made_by(answer))
}

/// Stores a compaction, by one append; false if it does not apply any more.
fn store(chat: &Chat<'_>, name: &str, summary: StoredSummary) -> bool {
    let at = chat.host.clock.now();
    let change = Change { operation: name.into(), at, summaries: vec![summary], ..Change::default() };
    let before = chat.host.log.borrow().revision;
    let is_stored = block_on(commit(chat.host.store, &chat.host.log, &change)).is_ok();
    assert_eq!(chat.host.log.borrow().revision, before + u64::from(is_stored));
    is_stored
}

/// The body of the next request.
fn next_body(chat: &mut Chat<'_>, setup: &RunSetup) -> Value {
    let log = chat.host.log.borrow();
    let rendered = chat.host.renderer.render(&log.history, None, &request(setup), 1).unwrap();
    serde_json::from_slice(&rendered.body).unwrap()
}

fn texts(body: &Value) -> String {
    body.to_string()
}

#[test]
fn r78_the_tails_reasoning_is_valid_after_the_providers_compaction() {
    for dialect in BINDING {
        for is_reopened in [false, true] {
            let data = MemoryStore::default();
            let mut chat = Chat::new(&data, dialect);
            chat.ask(setup_of("one", dialect));
            chat.tell(setup_of("two", dialect));
            let earlier = chat.made();
            let stored = chat.host.log.borrow().history.messages().len();
            let summary = compaction(&chat, &setup_of("c", dialect)).unwrap();
            // The conversation goes on while the provider compacts.
            chat.ask(setup_of("three", dialect));
            chat.tell(setup_of("four", dialect));
            let tail: Vec<String> = chat.made().into_iter().filter(|made| !earlier.contains(made)).collect();
            assert!(tail.len() >= 3, "{tail:?}");
            assert!(store(&chat, "compaction", summary));
            if is_reopened {
                chat.host = reopened(&chat.host);
            }
            assert!(chat.host.log.borrow().history.messages().len() > stored + 3, "the originals are there");
            chat.tell(setup_of("five", dialect));
            assert_eq!(chat.last_sent(), tail, "{dialect:?}");
            // What is made after the compaction follows it.
            let made = chat.made();
            chat.ask(setup_of("six", dialect));
            assert_eq!(
                chat.sent.borrow()[chat.sent.borrow().len() - 2],
                [tail, made[made.len() - 1..].to_vec()].concat()
            );
            // Another one covers the first.
            let summary = compaction(&chat, &setup_of("c", dialect)).unwrap();
            let before = chat.made();
            chat.tell(setup_of("seven", dialect));
            assert!(store(&chat, "again", summary));
            chat.tell(setup_of("eight", dialect));
            assert_eq!(chat.last_sent(), chat.made()[before.len()..chat.made().len() - 1]);
        }
    }
}

#[test]
fn r78_reasoning_is_left_out_where_the_compaction_was_made_for_something_else() {
    for dialect in BINDING {
        for changed in ["instructions", "tools", "model"] {
            let data = MemoryStore::default();
            let mut chat = Chat::new(&data, dialect);
            chat.tell(setup_of("one", dialect));
            let mut other = setup_of("c", dialect);
            match changed {
                "instructions" => other.instructions = Some("Be long.".into()),
                "tools" => drop(other.tools.pop()),
                _ => {
                    let model = if dialect == CLAUDE { "claude-haiku-5-5" } else { "gpt-6.1-sol" };
                    let params = json!({ "model": model, "max_tokens": 9 }).to_string();
                    other.provider.params = rethread::json::Json::parse(&params).unwrap();
                }
            }
            let summary = compaction(&chat, &other).unwrap();
            chat.tell(setup_of("two", dialect));
            assert!(store(&chat, "compaction", summary));
            chat.tell(setup_of("three", dialect));
            let sent = chat.last_sent();
            if changed == "model" {
                // Another model cannot be known to read it: the originals go with all reasoning.
                assert_eq!(sent.len(), 2, "{dialect:?}");
            } else {
                assert_eq!(sent, [""; 0], "{dialect:?} {changed}");
            }
        }
    }
}

#[test]
fn r78_only_who_made_a_compaction_gets_it_and_others_get_the_originals() {
    for dialect in BINDING {
        let data = MemoryStore::default();
        let mut chat = Chat::new(&data, dialect);
        chat.ask(setup_of("one", dialect));
        let originals = texts(&next_body(&mut chat, &setup_of("x", dialect)));
        let summary = compaction(&chat, &setup_of("c", dialect)).unwrap();
        assert!(store(&chat, "compaction", summary));
        let own = setup_of("x", dialect);
        let body = texts(&next_body(&mut chat, &own));
        assert!(body.contains("cmp-0") && !body.contains("Go"), "{body}");
        let headers = request(&own).added_headers(&StateOwner::Session, &chat.host.log.borrow().history);
        let header = ("anthropic-beta".to_owned(), "compact-2026-09-04".to_owned());
        assert_eq!(headers.contains(&header), dialect == CLAUDE, "{headers:?}");
        let mut elsewhere = setup_of("x", dialect);
        elsewhere.provider.url = "https://gateway.example/v1".into();
        let body = texts(&next_body(&mut chat, &elsewhere));
        assert!(!body.contains("cmp-0") && body.contains("Go"), "{body}");
        assert_eq!(request(&elsewhere).added_headers(&StateOwner::Session, &chat.host.log.borrow().history), []);
        for other in Dialect::ALL.into_iter().filter(|other| *other != dialect) {
            let body = texts(&next_body(&mut chat, &setup("x", other, false)));
            assert!(!body.contains("cmp-0") && body.contains("Go") && body.contains("Done."), "{other:?} {body}");
        }
        assert!(originals.contains("Go"));
    }
}

#[test]
fn r78_the_request_is_what_the_provider_takes() {
    let data = MemoryStore::default();
    let mut chat = Chat::new(&data, CLAUDE);
    chat.ask(setup_of("one", CLAUDE));
    let log = chat.host.log.borrow();
    let end = log.history.messages().len();
    let mut setup = setup_of("c", CLAUDE);
    let params = json!({ "model": "claude-opus-5-5", "max_tokens": 9, "stream": true, "tool_choice": { "type": "any" },
        "context_management": { "edits": [] }, "compaction": { "type": "other" }, "metadata": { "user_id": "u" } });
    setup.provider.params = rethread::json::Json::parse(&params.to_string()).unwrap();
    setup.provider.stream = true;
    let made = provider_compaction_body(&log.history, end, &request(&setup), 1).unwrap().unwrap();
    let body: Value = serde_json::from_slice(&made.body).unwrap();
    assert_eq!(body["compaction"], json!({ "type": "summarize" }));
    assert_eq!((&body["system"], &body["metadata"]), (&json!("Be brief."), &json!({ "user_id": "u" })));
    assert_eq!(body["tools"].as_array().unwrap().len(), 2);
    assert!(body.get("context_management").is_none() && body.get("tool_choice").is_none(), "{body:#}");
    assert!(body["stream"] != true && body["messages"].as_array().unwrap().len() == 4, "{body:#}");
    assert!(made.body.windows(5).any(|part| part == b"sig-0"), "its reasoning is in it");
    for dialect in Dialect::ALL.into_iter().filter(|dialect| !BINDING.contains(dialect)) {
        let setup = super::setup("c", dialect, false);
        assert_eq!(provider_compaction_body(&log.history, end, &request(&setup), 1).unwrap(), None, "{dialect:?}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Ask,
    Tell,
    Append,
    System,
    /// Has the provider compact, and stores that at [`Step::Swap`].
    Compact,
    Swap,
    Reopen,
    OtherInstructions,
}

fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Ask),
        3 => Just(Step::Tell),
        1 => Just(Step::Append),
        1 => Just(Step::System),
        2 => Just(Step::Compact),
        3 => Just(Step::Swap),
        1 => Just(Step::Reopen),
        1 => Just(Step::OtherInstructions),
    ]
}

/// Each request is checked by the rules of the dialect and by the stand-in. Returns how often a compaction was sent.
fn play(dialect: Dialect, steps: &[Step]) -> usize {
    let data = MemoryStore::default();
    let mut chat = Chat::new(&data, dialect);
    let mut instructions = "Be brief.".to_owned();
    let (mut waiting, mut said, mut count) = (None, Vec::new(), 0);
    for (at, step) in steps.iter().enumerate() {
        let name = format!("step{at}");
        let setup = RunSetup { instructions: Some(instructions.clone()), ..setup_of(&name, dialect) };
        match step {
            Step::Ask => drop(chat.ask(setup)),
            Step::Tell => drop(chat.tell(setup)),
            Step::Append => {
                let word = format!("<said {at}>");
                let body = json!([{ "role": "user", "content": word }, { "role": "assistant", "content": "I see." }]);
                chat.host.append(&body, CHAT).unwrap();
                said.push(word);
            }
            Step::System => {
                let word = format!("<rule {at}>");
                chat.host.append(&json!([{ "role": "system", "content": word }]), CHAT).unwrap();
                said.push(word);
            }
            Step::Compact => waiting = waiting.or_else(|| compaction(&chat, &setup)),
            Step::Swap => drop(waiting.take().map(|summary| store(&chat, &name, summary))),
            Step::Reopen => {
                drop(reopened(&chat.host));
                // With ids of its own.
                chat.host = Host::open(&data, "s", &name);
            }
            Step::OtherInstructions => instructions = format!("Be brief {at}."),
        }
        let body = texts(&next_body(&mut chat, &setup_of("x", dialect)));
        let seal =
            (0..steps.len()).map(|number| format!("cmp-{number}")).find(|seal| body.contains(&format!("\"{seal}\"")));
        count += usize::from(seal.is_some());
        let covered = seal.map(|seal| chat.provider.borrow().compacted_text(&seal)).unwrap_or_default();
        for word in &said {
            assert!(body.contains(word) || covered.contains(word), "{word} is lost\n{body}\n{covered}");
        }
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r78_any_order_of_turns_compactions_and_swaps_gives_requests_that_the_provider_takes(
        steps in proptest::collection::vec(a_step(), 0..16),
        is_claude in any::<bool>(),
    ) {
        play(if is_claude { CLAUDE } else { RESPONSES }, &steps);
    }
}

#[test]
fn r78_compactions_are_sent_in_such_an_order() {
    let steps = [Step::Ask, Step::System, Step::Tell, Step::Compact, Step::Tell, Step::Append, Step::Swap, Step::Tell];
    for dialect in BINDING {
        assert_eq!(play(dialect, &steps), 2);
    }
}

/// An answer that begins with what stands for all before it.
pub(super) fn answer_with_compaction(dialect: Dialect) -> Answer {
    let answer = if dialect == CLAUDE {
        json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "content": [
            { "type": "compaction", "content": "They talked.", "signature": "<sealed>" },
            { "type": "thinking", "thinking": "", "signature": "<thought>" }, { "type": "text", "text": "<well>" }],
            "usage": { "input_tokens": 1, "output_tokens": 1 } })
    } else {
        json!({ "id": "resp_1", "object": "response", "model": "m", "status": "completed", "error": null, "output": [
            { "type": "compaction", "id": "cmp_1", "encrypted_content": "<sealed>" },
            { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "<thought>" },
            { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "annotations": [], "text": "<well>" }] }] })
    };
    Answer::Status(200, Vec::new(), answer.to_string())
}

#[test]
fn r78_what_precedes_a_compaction_in_an_answer_is_not_sent_to_who_made_it() {
    for (dialect, has_rules) in BINDING.into_iter().flat_map(|dialect| [(dialect, true), (dialect, false)]) {
        let data = MemoryStore::default();
        let mut host = Host::open(&data, "s", "h");
        if has_rules {
            host.append(&json!([{ "role": "system", "content": "<rules>" }]), CHAT).unwrap();
        }
        host.ask(setup_of("one", dialect), "<one>", |_| Answer::Say(text("Well.")));
        if has_rules {
            host.append(&json!([{ "role": "system", "content": "<more rules>" }]), CHAT).unwrap();
        }
        host.ask(setup_of("two", dialect), "<two>", |_| answer_with_compaction(dialect));
        let mut bodies = Vec::new();
        for name in ["three", "four"] {
            host = reopened(&host);
            host.ask(setup_of(name, dialect), "<next>", |body| {
                bodies.push(body.clone());
                Answer::Say(text("Well."))
            });
        }
        for body in &bodies {
            let text = body.to_string();
            let list = if dialect == CLAUDE { &body["messages"] } else { &body["input"] };
            // OpenAI has the system message in the list, and reasoning after it is left out.
            let rules_in_list = has_rules && dialect != CLAUDE;
            assert!(list[usize::from(rules_in_list)].to_string().contains("<sealed>"), "{body:#}");
            assert_eq!(text.contains("<thought>"), !rules_in_list, "{body:#}");
            let has = |word: &str| text.contains(word);
            assert!(has("<rules>") == has_rules && has("<more rules>") == has_rules && has("<well>"), "{body:#}");
            assert!(!text.contains("<one>") && !text.contains("<two>"), "{body:#}");
        }
        assert_eq!(host.log.borrow().history.messages().len(), 8 + 2 * usize::from(has_rules), "the originals stay");
        let mut elsewhere = setup_of("x", dialect);
        elsewhere.provider.url = "https://gateway.example/v1".into();
        for other in [elsewhere, setup("x", CHAT, false)] {
            let log = host.log.borrow();
            let body = host.renderer.render(&log.history, None, &request(&other), 1).unwrap().body;
            let body = String::from_utf8(body).unwrap();
            assert!(body.contains("<one>") && body.contains("<two>"), "{body}");
        }
    }
}

/// A conversation that went on without the result of a call, and the result.
pub(super) fn open_call_and_result() -> (Value, Value) {
    let call = json!({ "id": "call_open", "type": "function", "function": { "name": "look", "arguments": "{}" } });
    let open = json!([{ "role": "user", "content": "<one>" }, { "role": "assistant", "tool_calls": [call] },
        { "role": "user", "content": "Well?" }, { "role": "assistant", "content": "I do not know." }]);
    (open, json!([{ "role": "tool", "tool_call_id": "call_open", "content": "<mild>" }]))
}

#[test]
fn r78_a_result_that_comes_after_an_answers_compaction_reaches_who_made_that() {
    for (dialect, during_run) in BINDING.into_iter().flat_map(|dialect| [(dialect, false), (dialect, true)]) {
        let data = MemoryStore::default();
        let mut host = Host::open(&data, "s", "h");
        let (open, late) = open_call_and_result();
        host.append(&open, CHAT).unwrap();
        host.start(setup_of("two", dialect), "<two>").unwrap();
        assert!(host.drive(|_| Answer::Hang).is_none());
        if during_run {
            host.append(&late, CHAT).unwrap();
        }
        let Answer::Status(_, _, body) = answer_with_compaction(dialect) else { panic!() };
        let effect = host.run.as_ref().unwrap().effects()[0].id.clone();
        let reply = EffectReply::Response { status: 200, headers: Vec::new(), body: body.into_bytes() };
        host.reply(&effect, reply).unwrap();
        host.drive(|_| Answer::Hang).unwrap();
        if !during_run {
            host.append(&late, CHAT).unwrap();
        }
        let mut bodies = Vec::new();
        for name in ["three", "four"] {
            host = reopened(&host);
            host.ask(setup_of(name, dialect), "<next>", |body| {
                bodies.push(body.clone());
                Answer::Say(text("Well."))
            });
        }
        for body in &bodies {
            let text = body.to_string();
            let has = |word: &str| text.contains(word);
            assert!(has("<sealed>") && !has("<one>") && !has("I do not know."), "{body:#}");
            assert_eq!(text.matches("<mild>").count(), 1, "{dialect:?} {during_run} {body:#}");
            assert!(text.find("<well>") < text.find("<mild>") && text.find("<mild>") < text.find("<next>"), "{body:#}");
        }
        // It stays where it was sent.
        let place = |body: &Value| {
            let list = if dialect == CLAUDE { &body["messages"] } else { &body["input"] };
            list.as_array().unwrap().iter().position(|item| item.to_string().contains("<mild>"))
        };
        assert_eq!(place(&bodies[0]), place(&bodies[1]));
        // Others have it at its call.
        let body = String::from_utf8(host.render(CHAT).body).unwrap();
        assert!(body.contains("<one>") && body.matches("<mild>").count() == 1, "{body}");
        assert!(body.find("<mild>") < body.find("I do not know."), "{body}");
    }
}

#[test]
fn r78_a_result_before_an_answers_compaction_is_not_sent_again() {
    for dialect in BINDING {
        let data = MemoryStore::default();
        let mut host = Host::open(&data, "s", "h");
        let (open, late) = open_call_and_result();
        host.append(&open, CHAT).unwrap();
        host.append(&late, CHAT).unwrap();
        host.ask(setup_of("two", dialect), "<two>", |_| Answer::Say(text("Well.")));
        host.ask(setup_of("three", dialect), "<three>", |_| answer_with_compaction(dialect));
        host.ask(setup_of("four", dialect), "<four>", |body| {
            assert!(!body.to_string().contains("<mild>"), "{body:#}");
            Answer::Say(text("Well."))
        });
    }
}

#[test]
fn r78_a_run_that_began_before_an_answers_compaction_keeps_its_history() {
    for dialect in BINDING {
        let data = MemoryStore::default();
        let mut host = Host::open(&data, "s", "h");
        host.ask(setup_of("one", dialect), "<one>", |_| Answer::Say(text("Well.")));
        host.start(setup_of("late", dialect), "<late>").unwrap();
        assert!(host.drive(|_| Answer::Hang).is_none());
        let mut second = Host::open(&data, "s", "h2");
        second.ask(setup_of("two", dialect), "<two>", |_| answer_with_compaction(dialect));
        second.resume(setup_of("late", dialect)).unwrap();
        let mut sent = String::new();
        second.drive(|body| {
            sent = body.to_string();
            Answer::Say(text("Well."))
        });
        assert!(sent.contains("<one>") && sent.contains("<late>"), "{sent}");
        assert!(!sent.contains("<sealed>") && !sent.contains("<two>"), "{sent}");
    }
}

#[test]
fn r78_a_later_answers_compaction_hides_nothing_from_a_summary() {
    for dialect in BINDING {
        let data = MemoryStore::default();
        let mut host = Host::open(&data, "s", "h");
        host.ask(setup_of("one", dialect), "<one>", |_| Answer::Say(text("Well.")));
        host.ask(setup_of("two", dialect), "<two>", |_| answer_with_compaction(dialect));
        let (log, setup) = (host.log.borrow(), setup_of("c", dialect));
        let by_model = compaction_body(&log.history, 2, &request(&setup), 1).unwrap();
        let by_provider = provider_compaction_body(&log.history, 2, &request(&setup), 1).unwrap().unwrap().body;
        for body in [by_model, by_provider] {
            let body = String::from_utf8(body).unwrap();
            assert!(body.contains("<one>") && !body.contains("<two>") && !body.contains("<sealed>"), "{body}");
        }
    }
}

#[test]
fn r78_a_run_keeps_the_header_of_the_compaction_that_it_began_with() {
    let data = MemoryStore::default();
    let mut chat = Chat::new(&data, CLAUDE);
    chat.tell(setup_of("one", CLAUDE));
    let summary = compaction(&chat, &setup_of("c", CLAUDE)).unwrap();
    assert!(store(&chat, "compaction", summary));
    chat.tell(setup_of("more", CLAUDE));
    chat.host.start(setup_of("two", CLAUDE), "<two>").unwrap();
    assert!(chat.host.drive(|_| Answer::Hang).is_none());
    let coverage = chat.host.log.borrow().history.coverage(4).unwrap();
    for is_first in [true, false] {
        let (effect, headers) = next_request(&chat);
        assert!(headers.contains("compact-2026-09-04"), "{headers}");
        if is_first {
            assert!(store(&chat, "text", StoredSummary::compaction(coverage.clone(), "They talked.", None)));
            let body = calls(&[("call_z", "look", "{}")]).body(CLAUDE);
            chat.host.reply(&effect, EffectReply::Response { status: 200, headers: Vec::new(), body }).unwrap();
            assert!(chat.host.drive(|_| Answer::Hang).is_none());
            assert!(String::from_utf8_lossy(chat.host.sent.last().unwrap()).contains("\"compaction\""));
        }
    }
}

#[test]
fn r78_a_run_keeps_the_header_of_a_compaction_that_is_dropped() {
    let data = MemoryStore::default();
    let mut chat = Chat::new(&data, CLAUDE);
    let (open, late) = open_call_and_result();
    chat.host.append(&open, CHAT).unwrap();
    let summary = compaction(&chat, &setup_of("c", CLAUDE)).unwrap();
    assert!(store(&chat, "compaction", summary));
    chat.host.start(setup_of("two", CLAUDE), "<two>").unwrap();
    assert!(chat.host.drive(|_| Answer::Hang).is_none());
    let (effect, _) = next_request(&chat);
    chat.host.append(&late, CHAT).unwrap();
    assert!(chat.host.log.borrow().history.compaction().is_none());
    let body = calls(&[("call_z", "look", "{}")]).body(CLAUDE);
    chat.host.reply(&effect, EffectReply::Response { status: 200, headers: Vec::new(), body }).unwrap();
    assert!(chat.host.drive(|_| Answer::Hang).is_none());
    assert!(String::from_utf8_lossy(chat.host.sent.last().unwrap()).contains("\"compaction\""));
    assert!(next_request(&chat).1.contains("compact-2026-09-04"));
}

/// The effect that asks the model, and its beta headers.
fn next_request(chat: &Chat<'_>) -> (String, String) {
    let effect = chat.host.run.as_ref().unwrap().effects()[0].clone();
    let EffectKind::CallModel { headers, .. } = effect.kind else { panic!("no request") };
    let beta = headers.into_iter().find(|(name, _)| name == "anthropic-beta").map(|(_, value)| value);
    (effect.id, beta.unwrap_or_default())
}

#[test]
fn r72_r78_a_request_that_begins_with_an_answers_compaction_says_that_a_compaction_changed_it() {
    for dialect in BINDING {
        let data = MemoryStore::default();
        let mut host = Host::open(&data, "s", "h");
        host.ask(setup_of("one", dialect), "<one>", |_| Answer::Say(text("Well.")));
        host.ask(setup_of("two", dialect), "<two>", |_| answer_with_compaction(dialect));
        host.events.clear();
        host.ask(setup_of("three", dialect), "<three>", |_| Answer::Say(text("Well.")));
        assert_eq!(prefixes(&host.events)[0].changed_by, Some(PrefixChange::Compaction));
        host.events.clear();
        host.ask(setup_of("four", dialect), "<four>", |_| Answer::Say(text("Well.")));
        assert_eq!(prefixes(&host.events)[0].changed_by, None);
    }
}
