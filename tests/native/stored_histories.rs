//! Whatever is stored, cut, concatenated, trimmed at every index, and whatever the policy says: every dialect takes
//! what is rendered, and nothing that was said or answered is lost (R3, R4, R5, R11, R41).

mod copies;
mod kept;
mod recorded;
mod session_copies;
mod tabs;

use crate::any_bodies;
use kept::check;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use rethread::history::{History, HistoryEntry, JoinBase, Origin, join};
use rethread::id::{IdSource, Seed};
use rethread::json::JsonRef;
use rethread::message::Dialect;
use rethread::provider::decode_body;
use rethread::render::{RenderRequest, Renderer};
use rethread::replay::{Callback, Citations, DanglingCalls, OnStale, Policy, PolicyLayer, Reducer, StaleUnit};
use rethread::synthetic_result::NO_RESULT;
use rethread::tool::Window;
use serde_json::Value;
use std::cell::Cell;
use std::rc::Rc;

/// Ids of one writer.
pub struct Ids(u32, Cell<u64>);

impl Ids {
    pub fn new(writer: u32) -> Self {
        Self(writer, Cell::new(0))
    }
}

impl IdSource for Ids {
    fn new_id(&self) -> String {
        self.1.set(self.1.get() + 1);
        format!("w{}-{}", self.0, self.1.get())
    }
}

/// One append: items of a dialect.
#[derive(Clone, Debug)]
pub struct Piece {
    pub dialect: Dialect,
    pub list: Vec<Value>,
    pub at: u64,
    /// A run made it, not `append`.
    pub run: bool,
}

/// What a session's log holds after these appends.
pub fn log_of(pieces: &[Piece], writer: u32) -> Vec<HistoryEntry> {
    log_behind(None, pieces, writer)
}

/// What a turn holds that is not in `before` yet.
pub fn log_behind(before: Option<&History>, pieces: &[Piece], writer: u32) -> Vec<HistoryEntry> {
    let (mut history, mut log, ids) = (History::new(Seed(5)), Vec::new(), Ids::new(writer));
    for piece in pieces {
        let text = Value::from(piece.list.clone()).to_string();
        let items = decode_body(piece.dialect, JsonRef::parse(&text).unwrap()).unwrap();
        let origin = Origin { at: piece.at, run_id: piece.run.then(|| "run".into()), ..Origin::default() };
        for entry in join(JoinBase { before, history: &history }, items, &origin, &ids).entries {
            history.apply(entry.clone());
            log.push(entry);
        }
    }
    log
}

pub fn fold(log: &[HistoryEntry]) -> History {
    let mut history = History::new(Seed(9));
    log.iter().cloned().for_each(|entry| history.apply(entry));
    history
}

/// Makes every text another one, so that a lost one is seen.
fn numbered(value: &mut Value, count: &mut u32) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| numbered(item, count)),
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(text)
                        if !text.trim().is_empty()
                            && matches!(key.as_str(), "content" | "text" | "output" | "result") =>
                    {
                        *count += 1;
                        text.push_str(&format!("#{count}."));
                    }
                    value => numbered(value, count),
                }
            }
        }
        _ => {}
    }
}

fn piece() -> impl Strategy<Value = Piece> {
    let dialect = select(Dialect::ALL.to_vec());
    let list = dialect.prop_flat_map(|dialect| (Just(dialect), prop::collection::vec(any_bodies::item(dialect), 1..6)));
    (list, 0_u64..900_000, any::<bool>()).prop_map(|((dialect, mut list), at, run)| {
        list.retain(|item| any_bodies::is_taken(dialect, item));
        Piece { dialect, list, at, run }
    })
}

/// A session, each of its texts its own.
fn session() -> impl Strategy<Value = Vec<Piece>> {
    prop::collection::vec(piece(), 1..4).prop_map(|mut pieces| {
        let mut count = 0;
        pieces.iter_mut().flat_map(|piece| &mut piece.list).for_each(|item| numbered(item, &mut count));
        pieces
    })
}

/// What happens to a log.
#[derive(Clone, Debug)]
pub struct Change(u8, Index, Index);

fn changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec((0_u8..6, any::<Index>(), any::<Index>()).prop_map(|(kind, a, b)| Change(kind, a, b)), 0..4)
}

pub fn changed(mut log: Vec<HistoryEntry>, changes: &[Change]) -> Vec<HistoryEntry> {
    for Change(kind, from, to) in changes {
        if log.is_empty() {
            break;
        }
        let (from, to) = (from.index(log.len()), to.index(log.len()));
        match kind {
            0 => drop(log.drain(..from)),
            1 => log.truncate(from),
            2 => drop(log.remove(from)),
            // The same entry once more: a reply was lost.
            3 => log.insert(to, log[from].clone()),
            // Results and calls out of their order.
            4 => {
                let entry = log.remove(from);
                log.insert(to, entry);
            }
            _ => {
                let (from, to) = (from.min(to), from.max(to));
                drop(log.drain(from..to));
            }
        }
    }
    log
}

fn window() -> impl Strategy<Value = Option<Window>> {
    select(vec![
        None,
        Some(Window::Always),
        Some(Window::Millis(0)),
        Some(Window::Millis(1_000)),
        Some(Window::Millis(400_000)),
    ])
}

fn reducer() -> impl Strategy<Value = Reducer> {
    prop_oneof![
        (0_usize..8, any::<bool>(), any::<bool>()).prop_map(|(count, keep_tools, first_system_only)| {
            Reducer::MessageCount { count, keep_tools, first_system_only }
        }),
        (0_u64..300).prop_map(|tokens| Reducer::TokenBudget { tokens, count: None }),
        (0_usize..4).prop_map(|turns| Reducer::SlidingTurns { turns }),
        (0_usize..3, 0_u32..60)
            .prop_map(|(keep_newest_turns, max_bytes)| { Reducer::ToolResults { keep_newest_turns, max_bytes } }),
        // Nobody is there to be asked: it is skipped.
        Just(Reducer::Summarize { target: 1, threshold: 0, summarize: Callback { id: 1, hook: Rc::new(()) } }),
    ]
}

fn reducers() -> impl Strategy<Value = Option<Vec<Reducer>>> {
    prop_oneof![2 => Just(None), 1 => prop::collection::vec(reducer(), 0..4).prop_map(Some)]
}

pub fn policy() -> impl Strategy<Value = Policy> {
    let stale = (
        select(vec![OnStale::Omit, OnStale::Placeholder]),
        select(vec![StaleUnit::Call, StaleUnit::Round, StaleUnit::Turn]),
    );
    let dangling = select(vec![DanglingCalls::Synthesize, DanglingCalls::Omit]);
    let citations = select(vec![None, Some(Citations::Off), Some(Citations::Replay)]);
    let rest = (dangling, citations, reducers());
    (window(), window(), window(), stale, rest).prop_map(
        |(freshness, tool, error_freshness, (on_stale, unit), rest)| {
            let mut call = PolicyLayer {
                freshness,
                error_freshness,
                on_stale: Some(on_stale),
                stale_unit: Some(unit),
                dangling_calls: Some(rest.0),
                citations: rest.1,
                reducers: rest.2,
                ..PolicyLayer::default()
            };
            if let Some(window) = tool {
                call.tool_freshness.insert("f".to_owned(), window);
            }
            Policy { call, ..Policy::default() }
        },
    )
}

pub fn always() -> Policy {
    let call = PolicyLayer {
        freshness: Some(Window::Always),
        error_freshness: Some(Window::Always),
        ..PolicyLayer::default()
    };
    Policy { call, ..Policy::default() }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases: any_bodies::many(cases),
        max_shrink_iters: 3_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn r04_r41_a_truncated_and_shuffled_log_is_valid_in_every_dialect(
        pieces in session(), changes in changes(), policy in policy(), now in 0_u64..1_500_000,
    ) {
        check(&fold(&changed(log_of(&pieces, 0), &changes)), None, &policy, now)?;
    }

    #[test]
    fn r04_r41_concatenated_sessions_and_a_live_turn_are_valid_in_every_dialect(
        one in session(), two in session(), live in session(), changes in changes(), policy in policy(), now in 0_u64..1_500_000,
    ) {
        let history = fold(&changed([log_of(&one, 0), log_of(&two, 1)].concat(), &changes));
        let live = fold(&log_behind(Some(&history), &live, 2));
        check(&history, Some(&live), &policy, now)?;
    }

    #[test]
    fn r03_fresh_results_are_kept_whatever_is_appended(pieces in session()) {
        check(&fold(&log_of(&pieces, 0)), None, &always(), 1_000_000)?;
    }
}

fn session_act() -> impl Strategy<Value = session_copies::Act> {
    prop_oneof![
        4 => piece().prop_map(session_copies::Act::Append),
        1 => any::<Index>().prop_map(session_copies::Act::Fork),
    ]
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn r37_r41_a_copy_up_to_any_message_is_the_beginning_and_valid_in_every_dialect(
        acts in prop::collection::vec(session_act(), 1..7),
    ) {
        session_copies::check_session_copies(&acts)?;
    }
}

fn act() -> impl Strategy<Value = tabs::Act> {
    prop_oneof![
        4 => piece().prop_map(tabs::Act::Append),
        1 => Just(tabs::Act::Refresh),
        1 => Just(tabs::Act::Reopen),
        2 => (0_usize..5).prop_map(tabs::Act::Render),
    ]
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn r47_tabs_opened_at_any_time_converge_to_the_same_history_and_request(
        acts in prop::collection::vec((0_usize..3, act()), 1..12), policy in policy(),
    ) {
        tabs::check_tabs(&acts, &policy)?;
    }
}

/// Found by the properties: a result in the assistant's own message was no result, so that a second one took its place.
#[test]
fn r02_a_result_beside_its_call_answers_it() {
    let list = serde_json::json!([{ "role": "assistant", "content": [
        { "type": "tool_use", "id": "a", "name": "f", "input": {} },
        { "type": "tool_result", "tool_use_id": "a", "content": "one" },
    ] }]);
    let output = serde_json::json!([{ "type": "function_call_output", "call_id": "a", "output": "two" }]);
    let piece = |dialect, list: &Value| Piece { dialect, list: list.as_array().unwrap().clone(), at: 1, run: false };
    let log = log_of(&[piece(Dialect::Anthropic, &list), piece(Dialect::OpenAiResponses, &output)], 0);
    let history = fold(&log);
    assert_eq!(history.invocations()[0].result.as_ref().unwrap().content.as_str(), "\"one\"");
    assert_eq!(history.set_aside().len(), 1);
    check(&history, None, &always(), 2).unwrap();
}

/// Found by the properties: an item of the server that names a call's id, beside a placeholder in the call's place.
#[test]
fn r04_an_output_beside_a_placeholder_of_its_id_is_the_only_one_sent() {
    let call = serde_json::json!([{ "role": "assistant", "content": "c", "tool_calls": [
        { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } },
    ] }]);
    let placeholder = serde_json::json!([{ "role": "tool", "tool_call_id": "a", "content": NO_RESULT }]);
    let server_items = serde_json::json!([
        { "type": "function_call_output", "call_id": "a", "output": "an output" },
        { "type": "shell_call", "call_id": "a", "environment": { "type": "container_auto" } },
    ]);
    let pieces =
        [(Dialect::OpenAiChat, &call), (Dialect::OpenAiChat, &placeholder), (Dialect::OpenAiResponses, &server_items)];
    let pieces =
        pieces.map(|(dialect, list)| Piece { dialect, list: list.as_array().unwrap().clone(), at: 1, run: true });
    let history = fold(&log_of(&pieces, 0));
    check(&history, None, &always(), 2).unwrap();
    let provider = kept::provider(Dialect::OpenAiResponses);
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &always() };
    let body = Renderer::default().render(&history, None, &request, 2).unwrap().body;
    let text = String::from_utf8(body).unwrap();
    assert_eq!(text.matches("function_call_output").count(), 1, "{text}");
    assert!(text.contains("an output") && !text.contains(NO_RESULT), "{text}");
}

proptest! {
    #![proptest_config(config(1_000))]

    /// What is kept between bodies is only ever a shortcut.
    #[test]
    fn r03_r41_a_long_lived_renderer_gives_the_same_bodies_as_a_new_one(
        pieces in session(), changes in changes(), policies in prop::collection::vec(policy(), 1..4),
        steps in prop::collection::vec((any::<Index>(), 0_usize..5, any::<Index>(), 0_u64..1_500_000), 1..12),
    ) {
        let log = changed(log_of(&pieces, 0), &changes);
        kept::check_growth(&log, &policies, &steps)?;
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn r04_r41_histories_trimmed_at_every_index_from_both_ends_are_valid(pieces in session(), policy in policy(), now in 0_u64..1_500_000) {
        let log = log_of(&pieces, 0);
        for at in 0..=log.len() {
            check(&fold(&log[at..]), None, &policy, now)?;
            check(&fold(&log[..at]), None, &policy, now)?;
        }
    }
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn r57_messages_appended_to_an_empty_session_render_the_same_bodies(
        pieces in session(), policy in policy(), now in 0_u64..1_500_000,
    ) {
        copies::check_copy(&log_of(&pieces, 0), &policy, now)?;
    }
}
