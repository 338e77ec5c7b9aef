//! The tracker of R32 alone, natively: what a service that keeps the conversation has not acknowledged, found twice in
//! each turn of a growing history, and of the whole history at once: `cargo bench --bench delta`. With PEER_PYTHON, a
//! Python that has `openai-agents`, the same by its tracker (`openai_agents_deltas.py`). `npm run bench -- r32`
//! measures whole requests in wasm.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a bench reads the clock, and its history is well-formed

use rethread::history::{History, HistoryEntry};
use rethread::id::Seed;
use rethread::json::{Json, JsonStr};
use rethread::message::{AnswerMeta, Dialect, Message, Part, PartBody, Role, ServiceMark};
use rethread::owner::{Delta, StateOwner};
use rethread::tool::{Arguments, InvocationStatus, ToolInvocation, ToolResult};
use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

const SAMPLES: usize = 5;

/// Creates the message number `seq` of a turn. An answer has the mark of its service.
fn message(role: Role, turn: u32, seq: u64) -> Message {
    let mut message = Message::from_text(role, "A text of some words.");
    (message.id, message.turn, message.seq) = (format!("m{seq}"), turn, seq);
    message.run_id = Some(format!("r{turn}"));
    if role == Role::Assistant {
        let mark = ServiceMark { conversation: Some("conv_1".into()), until: seq, ..ServiceMark::default() };
        message.answer = Some(Box::new(AnswerMeta { service_mark: Some(Box::new(mark)), ..AnswerMeta::default() }));
    }
    message
}

fn call(turn: u32, seq: u64) -> ToolInvocation {
    ToolInvocation {
        id: format!("i{turn}"),
        number: u64::from(turn),
        record: 0,
        message_id: format!("m{seq}"),
        turn,
        call_id: format!("call_{turn}"),
        replay_id: None,
        name: "look".into(),
        arguments: Arguments::Text(JsonStr::new("{}")),
        round: 0,
        place: 0,
        status: InvocationStatus::Ok,
        started_at: Some(1),
        finished_at: Some(2),
        stored_at: 3,
        redacted: false,
        channel: None,
        freshness: None,
        append_freshness: None,
        result: Some(ToolResult {
            content: Json::parse("\"found\"").unwrap(),
            is_error: false,
            dialect: None,
            template: None,
        }),
        template: None,
        stored_during_run: false,
        is_deferred: false,
        has_persist: false,
        has_redacted_result: false,
        is_async: false,
    }
}

/// Counts what the next request contains.
fn delta(owner: &StateOwner, history: &History) -> usize {
    let delta = Delta::new(owner, Dialect::OpenAiResponses, history, None);
    delta.stored().len() + delta.live().len()
}

/// Returns the time of the deltas of so many turns, and that of one delta of the whole history.
fn own(turns: u32) -> (Duration, Duration) {
    let owner = StateOwner::Conversation { id: "conv_1".into() };
    let mut history = History::new(Seed(1));
    let mut took = Duration::ZERO;
    let mut timed = |history: &History| {
        let start = Instant::now();
        black_box(delta(&owner, history));
        took += start.elapsed();
    };
    for turn in 0..turns {
        let seq = u64::from(turn) * 3;
        history.apply(HistoryEntry::Message(message(Role::User, turn, seq)));
        timed(&history);
        let mut asks = message(Role::Assistant, turn, seq + 1);
        asks.parts = vec![Part::from(PartBody::ToolCall { invocation: format!("i{turn}"), round: 0, place: 0 })];
        history.apply(HistoryEntry::Message(asks));
        history.apply(HistoryEntry::Invocation(call(turn, seq + 1)));
        timed(&history);
        history.apply(HistoryEntry::Message(message(Role::Assistant, turn, seq + 2)));
    }
    // Without the marks of this owner everything is new: the worst case of a delta.
    let other = StateOwner::Conversation { id: "conv_2".into() };
    let start = Instant::now();
    assert_eq!(black_box(delta(&other, &history)), history.messages().len());
    (took, start.elapsed())
}

fn peer(turns: u32) -> Option<f64> {
    let python = std::env::var_os("PEER_PYTHON")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/openai_agents_deltas.py");
    let output = Command::new(python).args([script, "newest", &turns.to_string()]).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

fn main() {
    for turns in [1_000, 3_000] {
        let (mut each, mut whole, mut others) = (f64::MAX, f64::MAX, f64::MAX);
        for _ in 0..SAMPLES {
            let (deltas, one) = own(turns);
            each = each.min(deltas.as_secs_f64() * 1e3);
            whole = whole.min(one.as_secs_f64() * 1e3);
            others = others.min(peer(turns).unwrap_or(f64::MAX));
        }
        println!("{turns} turns: every delta {each:.3} ms in all, one of everything {whole:.3} ms");
        if others < f64::MAX {
            println!("  the peer's tracker: {others:.0} ms, {:.0} times as long", others / each);
        }
    }
}
