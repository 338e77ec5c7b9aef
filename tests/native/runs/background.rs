//! Answers on which the service works in the background: a run picks them up where they are (R18).

use super::*;
use crate::background_service::{BackgroundService, Reply, Serves};
use crate::stateful_service::{Service, rounds};
use rethread::clock::Clock;
use rethread::json::Json;
use rethread::owner::StateOwner;
use rethread::provider::StreamEvent;
use rethread::run::{EffectKind, EffectReply, JournalEntry, RunEvent, RunInput, RunOutcome, RunSetup};
use rethread::store::read_journal;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod broken_bodies;
mod failures;
mod handoffs;
mod interactions;
mod interleavings;
mod limits;
mod owners;
mod refusals;
mod reordered_output;
mod stored_pauses;
mod unsaved_ids;

const STORY: &str = "Once upon a time in the west";

/// What becomes of a model call.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    /// The number of events of a stream that arrive; all that there are without it.
    events: Option<usize>,
    how: How,
}

/// How a model call ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum How {
    /// As the service ends it. A stream of an answer that is not ready breaks off.
    #[default]
    Ends,
    /// The connection breaks, which the host reports.
    Breaks,
    /// The process is killed.
    Kill,
    /// The request does not arrive.
    Unreachable,
    /// The service refuses it with this status.
    Refused(u16),
    /// A proxy answers with the status 200 and this body.
    Says(&'static str),
    /// The host aborts it.
    Aborts,
}

const ALL: Fate = Fate { events: None, how: How::Ends };

fn in_background(id: &str, stream: bool) -> RunSetup {
    let mut setup = setup(id, RESPONSES, stream);
    setup.provider.url = "https://model.example/v1/responses?api-version=7".into();
    setup.provider.params = Json::parse(r#"{"model":"m","background":true}"#).unwrap();
    setup
}

fn owned(id: &str, stream: bool, owner: StateOwner) -> RunSetup {
    RunSetup { owner, ..in_background(id, stream) }
}

fn story() -> BackgroundService {
    BackgroundService::new(Service::new(|_| Ok(STORY.into())))
}

/// Drives the run with this service, until it is over; none if it is killed. `fate` says what becomes of each call.
fn drive<S: Serves>(host: &mut Host<'_>, service: &mut S, mut fate: impl FnMut(&mut S) -> Fate) -> Option<RunOutcome> {
    for _ in 0..2_000 {
        if !host.write() {
            return None;
        }
        let run = host.run.as_ref().unwrap();
        if run.status() != RunStatus::Running {
            return Some(run.outcome());
        }
        let effect = run.effects()[0].clone();
        match effect.kind {
            EffectKind::CallModel { method, url, headers, body, stream, .. } => {
                let has_type = headers.iter().any(|(name, _)| name == "content-type");
                assert_eq!(has_type, method.as_str() == "POST", "{headers:?}");
                service.expect(method.as_str());
                let fate = fate(service);
                if fate.how == How::Unreachable {
                    fail(host, &effect.id, Some(false));
                    continue;
                }
                if let How::Refused(status) = fate.how {
                    let body = json!({ "error": { "message": "no", "code": "refused" } }).to_string().into_bytes();
                    host.reply(&effect.id, EffectReply::Response { status, headers: Vec::new(), body }).unwrap();
                    continue;
                }
                if let How::Says(body) = fate.how {
                    host.reply(&effect.id, EffectReply::ResponseStarted { status: 200, headers: Vec::new() }).unwrap();
                    let bytes = body.as_bytes().to_vec();
                    host.handle(RunInput::Bytes { effect: effect.id.clone(), bytes }).unwrap();
                    host.reply(&effect.id, EffectReply::ResponseEnd).unwrap();
                    continue;
                }
                let reply = service.request(method.as_str(), &url, &body);
                if !receive(host, &effect.id, reply, stream, fate) {
                    return None;
                }
            }
            EffectKind::RunTool { call_id, invocation, attempt, name, .. } => {
                host.reply(&effect.id, EffectReply::Started).unwrap();
                if !host.write() {
                    return None;
                }
                host.ran.push((call_id, invocation, attempt));
                if let Some(handoff) = (host.handoff_of_tool)(&name) {
                    host.handle(RunInput::HandOff(Box::new(handoff))).unwrap();
                }
                let content = Json::parse("\"found\"").unwrap();
                host.reply(&effect.id, EffectReply::ToolResult { content, is_error: false }).unwrap();
            }
            EffectKind::Wait { ms } => {
                host.waits.push(ms);
                host.clock.advance(ms);
                host.reply(&effect.id, EffectReply::Waited).unwrap();
            }
        }
    }
    panic!("the run goes on for ever");
}

fn fail(host: &mut Host<'_>, effect: &str, sent: Option<bool>) {
    let failed = EffectReply::Failed { code: None, message: "reset by peer".into(), sent };
    host.reply(effect, failed).unwrap();
}

/// Passes a reply to the run; false if the host is killed meanwhile.
fn receive(host: &mut Host<'_>, effect: &str, reply: Reply, stream: bool, fate: Fate) -> bool {
    let Reply { status, events, body, .. } = reply;
    if status != 200 || !stream {
        if matches!(fate.how, How::Kill) {
            return false;
        }
        if matches!(fate.how, How::Breaks) {
            fail(host, effect, Some(true));
            return true;
        }
        host.reply(effect, EffectReply::Response { status, headers: Vec::new(), body }).unwrap();
        return true;
    }
    host.reply(effect, EffectReply::ResponseStarted { status, headers: Vec::new() }).unwrap();
    let count = fate.events.unwrap_or(events.len()).min(events.len());
    let mut bytes: Vec<u8> = events[..count].concat();
    // A connection breaks in the middle of an event.
    if let Some(next) = events.get(count).filter(|_| fate.how == How::Breaks) {
        bytes.extend(&next[..next.len() / 2]);
    }
    for bytes in bytes.chunks(host.stream_piece).map(<[u8]>::to_vec) {
        host.handle(RunInput::Bytes { effect: effect.into(), bytes }).unwrap();
        // The run does not wait for what it stores meanwhile.
        if !host.write() {
            return false;
        }
    }
    match fate.how {
        How::Kill => return false,
        How::Breaks => fail(host, effect, Some(true)),
        How::Aborts => {
            let code = Some("AbortError".to_owned());
            host.reply(effect, EffectReply::Failed { code, message: "aborted".into(), sent: None }).unwrap();
        }
        _ => host.reply(effect, EffectReply::ResponseEnd).unwrap(),
    }
    true
}

/// The text in the events since the start of the host.
fn text_of(host: &Host<'_>) -> String {
    let mut text = String::new();
    for event in &host.events {
        if let RunEvent::Stream { event: StreamEvent::TextDelta(more), .. } = event {
            text.push_str(&more.decode());
        }
    }
    text
}

/// The texts of the session's answers.
fn answers(host: &mut Host<'_>) -> Vec<String> {
    let body: serde_json::Value = serde_json::from_slice(&host.render(RESPONSES).body).unwrap();
    crate::stateful_service::words_of(body["input"].as_array().unwrap())
}

fn journal(host: &Host<'_>) -> Vec<JournalEntry> {
    let (log, entry) = (host.log.borrow(), host.pending().remove(0));
    let records = block_on(read_journal(host.store, &log.head.id, &entry)).unwrap();
    records.iter().map(|record| open_record(RecordKind::Journal, record).unwrap()).collect()
}

#[test]
fn r18_r20_an_answer_of_a_run_that_was_killed_is_picked_up_and_not_asked_for_again() {
    for stream in [false, true] {
        for at in 1..=crate::background_service::EVENTS {
            let store = MemoryStore::default();
            let mut service = story();
            let mut host = Host::open(&store, "s", "first");
            host.start(in_background("run", stream), "Go").unwrap();
            service.work(0);
            let mut calls = 0;
            let killed = drive(&mut host, &mut service, |service| {
                calls += 1;
                service.pace = if stream { at - 1 } else { 1 };
                // What came as one value is in the journal when the run waits for the next.
                Fate { events: Some(at), how: if stream || calls > 1 { How::Kill } else { How::Ends } }
            });
            assert!(killed.is_none());
            drop(host);
            // The service goes on without a reader.
            service.work(100);
            let mut host = Host::open(&store, "s", "second");
            assert_eq!(host.pending().len(), 1);
            host.resume(in_background("run", stream)).unwrap();
            let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
            assert_eq!(outcome.status, RunStatus::Finished, "{at}: {:?}", outcome.error);
            assert_eq!((service.posts, outcome.model_calls), (1, 1), "{stream} {at}");
            assert_eq!((outcome.text.decode().as_ref(), text_of(&host).as_str()), (STORY, STORY));
            assert_eq!(answers(&mut host), ["user: Go", &format!("assistant: {STORY}")]);
            let query = if stream { "api-version=7&stream=true" } else { "api-version=7" };
            assert_eq!(service.gets.last().unwrap(), &format!("https://model.example/v1/responses/resp_1?{query}"));
            assert!(host.pending().is_empty());
        }
    }
}

#[test]
fn r18_r20_a_stream_that_breaks_off_goes_on_after_its_last_event_and_no_text_comes_twice() {
    for how in [How::Ends, How::Breaks] {
        for at in 1..crate::background_service::EVENTS {
            let store = MemoryStore::default();
            let mut service = story();
            let mut host = Host::open(&store, "s", "h");
            host.start(in_background("run", true), "Go").unwrap();
            let outcome = drive(&mut host, &mut service, |service| {
                service.pace = 3;
                // A server that repeats events brings fewer new ones.
                service.repeats = if at > 3 { 2 } else { 0 };
                Fate { events: Some(at), how }
            })
            .unwrap();
            assert_eq!(outcome.status, RunStatus::Finished, "{how:?} {at}: {:?}", outcome.error);
            assert_eq!((text_of(&host).as_str(), service.posts), (STORY, 1), "{how:?} {at}");
            assert_eq!(answers(&mut host), ["user: Go", &format!("assistant: {STORY}")]);
            let begun = |event: &&RunEvent| matches!(event, RunEvent::MessageStarted { .. });
            assert_eq!(host.events.iter().filter(begun).count(), 1);
            assert!(service.gets.iter().all(|url| url.contains("stream=true&starting_after=")), "{:?}", service.gets);
            // Each attempt brought something, so each is followed by a first pause.
            assert!(host.waits.iter().all(|ms| *ms == 100), "{:?}", host.waits);
        }
    }
}

#[test]
fn r18_the_answer_is_shown_while_its_rest_is_waited_for() {
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = Host::open(&store, "s", "h");
    host.start(in_background("run", true), "Go").unwrap();
    service.pace = 5;
    host.write();
    let effect = host.run.as_ref().unwrap().effects()[0].clone();
    let EffectKind::CallModel { body, url, .. } = effect.kind else { panic!("no call") };
    let reply = service.request("POST", &url, &body);
    receive(&mut host, &effect.id, reply, true, Fate { events: Some(6), how: How::Breaks });
    let run = host.run.as_ref().unwrap();
    let shown = run.partial_answer(host.clock.now()).unwrap().to_message();
    assert!(STORY.starts_with(&rethread_text(&shown)) && !shown.parts.is_empty());
    assert_eq!(run.retry_at(), Some(host.clock.now() + 100));
    // The run can be stopped meanwhile, with what it has.
    let outcome = host.cancel().unwrap();
    assert_eq!(outcome.status, RunStatus::Cancelled);
    assert!(STORY.starts_with(outcome.text.decode().as_ref()) && !outcome.text.is_empty());
}

fn rethread_text(message: &rethread::message::Message) -> String {
    let mut text = String::new();
    for part in &message.parts {
        if let rethread::message::PartBody::Text(own) = &part.body {
            text.push_str(&own.decode());
        }
    }
    text
}

#[test]
fn r18_an_answer_that_is_not_ready_is_polled_and_no_poll_is_an_attempt() {
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = Host::open(&store, "s", "h");
    host.start(in_background("run", false), "Go").unwrap();
    service.pace = 1;
    let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
    assert_eq!(outcome.status, RunStatus::Finished);
    assert_eq!(text_of(&host), STORY);
    // More polls than attempts of a request.
    assert!(host.waits.len() > 6 && host.waits.iter().all(|ms| *ms == 2_000), "{:?}", host.waits);
    assert_eq!((service.posts, service.gets.len()), (1, host.waits.len()));
    assert!(!host.events.iter().any(|event| matches!(event, RunEvent::Retrying { .. })));
    let message = host.log.borrow().history.messages()[1].clone();
    assert_eq!(message.answer.unwrap().duration_ms, Some(host.waits.len() as u64 * 2_000));
}

#[test]
fn r18_the_name_of_an_answer_is_stored_at_its_first_event_and_once() {
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = Host::open(&store, "s", "h");
    host.start(in_background("run", true), "Go").unwrap();
    assert!(drive(&mut host, &mut service, |_| Fate { events: Some(1), how: How::Kill }).is_none());
    let named: Vec<_> =
        journal(&host).into_iter().filter(|entry| matches!(entry, JournalEntry::Background(_))).collect();
    let [JournalEntry::Background(Some(answer))] = &named[..] else { panic!("{named:?}") };
    assert_eq!((answer.response.as_str(), answer.call, answer.is_streamed), ("resp_1", 0, true));
    // What is not in the background is not named.
    let store = MemoryStore::default();
    let mut host = Host::open(&store, "s", "h");
    host.start(setup("run", RESPONSES, true), "Go").unwrap();
    drive(&mut host, &mut service, |_| Fate { events: Some(6), how: How::Kill });
    assert!(!journal(&host).iter().any(|entry| matches!(entry, JournalEntry::Background(_))));
}

#[test]
fn r18_a_round_of_tools_in_the_background_runs_each_tool_once() {
    for stream in [false, true] {
        let kept = || BackgroundService::new(Service::new(rounds(2)));
        let mut uncut = kept();
        uncut.pace = 100;
        let store = MemoryStore::default();
        let mut host = Host::open(&store, "s", "h");
        host.start(in_background("run", stream), "Go").unwrap();
        drive(&mut host, &mut uncut, |_| ALL).unwrap();
        let expected = answers(&mut host);
        for kill in 1..12 {
            let (store, mut service, mut calls, mut ran) = (MemoryStore::default(), kept(), 0, Vec::new());
            let mut host = Host::open(&store, "s", "first");
            host.start(in_background("run", stream), "Go").unwrap();
            for process in 0.. {
                let ended = drive(&mut host, &mut service, |service| {
                    calls += 1;
                    service.pace = 2;
                    let how = if calls % kill == 0 && calls < 30 { How::Kill } else { How::Ends };
                    Fate { events: Some(3), how }
                });
                ran.append(&mut host.ran);
                if let Some(outcome) = ended {
                    assert_eq!(outcome.status, RunStatus::Finished, "{kill}: {:?}", outcome.error);
                    break;
                }
                host = Host::open(&store, "s", &format!("process {process}"));
                host.resume(in_background("run", stream)).unwrap();
            }
            // A whole answer whose name nobody received is asked for again.
            if stream {
                assert_eq!(service.posts, 3, "{kill}");
            }
            assert_eq!(ran.len(), 2, "{kill}: {ran:?}");
            assert_eq!(answers(&mut host).len(), expected.len());
        }
    }
}

#[test]
fn r18_r28_a_snapshot_of_a_run_in_the_background_picks_its_answer_up_in_another_store() {
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = Host::open(&store, "s", "first");
    host.start(in_background("run", true), "Go").unwrap();
    service.pace = 5;
    assert!(drive(&mut host, &mut service, |_| Fate { events: Some(5), how: How::Kill }).is_none());
    let snapshot = snapshots::snapshot(&mut host).unwrap();
    service.pace = 100;
    let elsewhere = MemoryStore::default();
    let mut host = Host::open(&elsewhere, "s", "second");
    snapshots::resume(&mut host, &snapshot, in_background("run", true)).unwrap();
    let outcome = drive(&mut host, &mut service, |_| ALL).unwrap();
    assert_eq!((outcome.status, service.posts), (RunStatus::Finished, 1));
    assert_eq!(answers(&mut host), ["user: Go", &format!("assistant: {STORY}")]);
}

#[test]
fn r18_a_run_that_was_cancelled_picks_nothing_up() {
    let store = MemoryStore::default();
    let mut service = story();
    let mut host = Host::open(&store, "s", "h");
    host.start(in_background("run", false), "Go").unwrap();
    host.write();
    let effect = host.run.as_ref().unwrap().effects()[0].clone();
    let EffectKind::CallModel { body, url, .. } = effect.kind else { panic!("no call") };
    let reply = service.request("POST", &url, &body);
    receive(&mut host, &effect.id, reply, false, ALL);
    assert_eq!(host.cancel().unwrap().status, RunStatus::Cancelled);
    assert_eq!(host.resume(in_background("run", false)).unwrap_err().code, ErrorCode::Conflict);
    assert_eq!(service.gets.len(), 0);
}
