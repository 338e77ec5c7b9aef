//! Compactions: what is stored, what a request contains, and what other writers do meanwhile (R30).

use super::*;
use proptest::prelude::*;
use rethread::finding::Severity;
use rethread::history::{Compactable, History, HistoryEntry, LogRecord, StoredSummary};
use rethread::json::Json;
use rethread::message::{Dialect, Message};
use rethread::owner::{Delta, StateOwner};
use rethread::provider::{ProviderRequest, Settings, compacted_items, compaction_request, validate};
use rethread::render::{RenderInput, RenderRequest, RenderStep, Renderer, compaction_body};
use rethread::replay::{Policy, PolicyLayer, ReducerReplies};
use rethread::store::{SessionArchive, merge_oldest};
use rethread::tool::Window;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn always() -> Policy {
    Policy { call: PolicyLayer { freshness: Some(Window::Always), ..PolicyLayer::default() }, ..Policy::default() }
}

fn provider(dialect: Dialect) -> ProviderRequest {
    let params = Json::parse("{}").unwrap();
    ProviderRequest {
        dialect,
        url: String::new(),
        params,
        stream: false,
        headers: Vec::new(),
        settings: Settings::default(),
    }
}

/// The next request's body of a session with this owner, which its dialect must accept.
fn body_of(history: &History, dialect: Dialect, owner: &StateOwner) -> String {
    let (provider, policy) = (provider(dialect), always());
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
    let mut live = History::new(SEED);
    for entry in join(
        JoinBase::history(history),
        items(r#"[{"role":"user","content":"<next>"}]"#),
        &Origin::default(),
        &Named("live", 0.into()),
    )
    .entries
    {
        live.apply(entry);
    }
    let input = RenderInput {
        history,
        live: Some(&live),
        owner,
        begins_chain: false,
        handoffs: &[],
        agent: None,
        scope: rethread::replay::HistoryScope::Whole,
        sent: None,
        now: 2_000,
    };
    let RenderStep::Done(rendered) = Renderer::default().step(input, &request, &ReducerReplies::default()).unwrap()
    else {
        panic!("nothing asks a question")
    };
    let errors: Vec<_> =
        validate(&rendered.body, dialect).into_iter().filter(|finding| finding.severity == Severity::Error).collect();
    let text = String::from_utf8(rendered.body).unwrap();
    assert!(errors.is_empty(), "{dialect:?} {errors:?} {text}");
    text
}

fn shown(log: &RefCell<SessionLog>) -> String {
    body_of(&log.borrow().history, CHAT, &StateOwner::Session)
}

/// A finished turn of a question, a call with its result, and an answer: three items that count.
fn turn(name: &str) -> String {
    format!(
        r#"[{{"role":"user","content":"<q {name}>"}},
        {{"role":"assistant","content":null,"tool_calls":[{{"id":"{name}","type":"function","function":{{"name":"get","arguments":"{{}}"}}}}]}},
        {{"role":"tool","tool_call_id":"{name}","content":"<r {name}>"}},
        {{"role":"assistant","content":"<a {name}>"}}]"#
    )
}

/// A compaction as the binding makes it, before it is stored.
pub(super) fn compaction(log: &RefCell<SessionLog>, text: &str) -> Option<StoredSummary> {
    let history = &log.borrow().history;
    let Compactable::Turns { end, .. } = history.compactable(&|_| false) else { return None };
    Some(StoredSummary::compaction(history.coverage(end)?, text, None))
}

pub(super) fn store_compaction(
    store: &dyn LogStore,
    log: &RefCell<SessionLog>,
    operation: &str,
    summary: StoredSummary,
) -> Result<u64, Error> {
    let change = Change { operation: operation.into(), at: 1_000, summaries: vec![summary], ..Change::default() };
    written(commit(store, log, &change))
}

fn compact(store: &dyn LogStore, log: &RefCell<SessionLog>, text: &str) {
    let summary = compaction(log, text).unwrap();
    store_compaction(store, log, text, summary).unwrap();
}

fn ids(log: &RefCell<SessionLog>) -> Vec<String> {
    log.borrow().history.messages().iter().map(|message| message.id.clone()).collect()
}

fn two_turns() -> (MemoryStore, RefCell<SessionLog>) {
    let store = MemoryStore::default();
    let log = open(&store, "s");
    append(&store, &log, "one", &turn("one")).unwrap();
    append(&store, &log, "two", &turn("two")).unwrap();
    (store, log)
}

#[test]
fn r30_the_summary_is_sent_and_the_originals_stay_stored() {
    let (store, log) = two_turns();
    let (before, revision) = (ids(&log), log.borrow().head.history_revision);
    compact(&store, &log, "<sum>");
    append(&store, &log, "three", &turn("three")).unwrap();
    let reopened = open(&store, "s");
    let archive = block_on(SessionArchive::read(&store, "s", SEED)).unwrap().0;
    let lines = archive.to_json_lines(&rethread::run::ARCHIVE_DESCRIPTIONS);
    let restored = MemoryStore::default();
    block_on(archive.restore(&restored, "copy", ("restore", None))).unwrap();
    block_on(SessionArchive::from_json_lines(&lines).unwrap().restore(&restored, "lines", ("lines", None))).unwrap();
    assert!(lines.contains("<sum>"), "a person reads the summary in an export");
    for log in [&log, &reopened, &open(&restored, "copy"), &open(&restored, "lines")] {
        assert_eq!(ids(log)[..before.len()], before);
        assert_eq!(ids(log).len(), before.len() + 3);
        let text = shown(log);
        assert!(!text.contains("one") && !text.contains("two"), "{text}");
        let order = ["<sum>", "<q three>", "<r three>", "<a three>", "<next>"].map(|part| text.find(part).unwrap());
        assert!(order.is_sorted(), "{text}");
    }
    // The public revision counts changes of the history, and a compaction is none.
    assert_eq!(reopened.borrow().head.history_revision, revision + 1);
}

#[test]
fn r30_a_compaction_is_compacted_with_what_follows_and_system_messages_stay() {
    let store = MemoryStore::default();
    let log = open(&store, "s");
    append(&store, &log, "system", r#"[{"role":"system","content":"<rules>"}]"#).unwrap();
    append(&store, &log, "one", &turn("one")).unwrap();
    compact(&store, &log, "<first>");
    append(&store, &log, "two", &turn("two")).unwrap();
    let (provider, policy) = (provider(CHAT), always());
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
    let end = ids(&log).len();
    let body = compaction_body(&log.borrow().history, end, &request, 2_000).unwrap();
    let body = String::from_utf8(body).unwrap();
    assert!(body.contains("<first>") && body.contains("<r two>") && !body.contains("<q one>"), "{body}");
    assert!(!body.contains("<rules>") && body.contains("Summarize the conversation"), "{body}");
    compact(&store, &log, "<second>");
    let text = shown(&log);
    assert!(
        text.find("<rules>") < text.find("<second>") && !text.contains("<first>") && !text.contains("two"),
        "{text}"
    );
    assert_eq!(log.borrow().history.compactable(&|_| false), Compactable::Nothing);
}

#[test]
fn r30_calls_are_summarized_in_a_request_that_defines_their_tools() {
    let (_store, log) = two_turns();
    let policy = always();
    for dialect in [CHAT, Dialect::Anthropic, Dialect::Gemini] {
        for params in ["{}", r#"{"tools":[]}"#, r#"{"tools":[{"name":"given"}]}"#] {
            let provider = ProviderRequest { params: Json::parse(params).unwrap(), ..provider(dialect) };
            let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
            let body = compaction_body(&log.borrow().history, 6, &request, 2_000).unwrap();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let tools = body["tools"].to_string();
            let expected = if params.contains("given") { r#""given""# } else { r#""get""# };
            assert!(tools.matches(r#""name":"#).count() == 1 && tools.contains(expected), "{dialect:?} {tools}");
        }
    }
}

#[test]
fn r30_a_turn_that_a_tool_ended_is_over() {
    let store = MemoryStore::default();
    let log = open(&store, "s");
    let mut messages: Vec<serde_json::Value> = serde_json::from_str(&turn("one")).unwrap();
    messages.pop();
    let ended = serde_json::to_string(&messages).unwrap();
    let mut change = change(&log, "one", &ended);
    for entry in &mut change.entries {
        if let HistoryEntry::Message(message) = entry {
            message.run_id = Some("run".into());
        }
    }
    written(commit(&store, &log, &change)).unwrap();
    let history = &log.borrow().history;
    assert_eq!(history.compactable(&|_| true), Compactable::Unfinished);
    assert_eq!(history.compactable(&|_| false), Compactable::Turns { end: 2, item_count: 2 });
}

#[test]
fn r30_stale_results_are_not_summarized() {
    let (_store, log) = two_turns();
    let provider = provider(CHAT);
    let policy = Policy::default();
    let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
    let body = compaction_body(&log.borrow().history, 6, &request, 1_000 + 300_001).unwrap();
    let body = String::from_utf8(body).unwrap();
    assert!(!body.contains("<r one>") && body.contains("<a one>"), "{body}");
}

#[test]
fn r30_what_is_appended_while_the_summary_is_written_survives() {
    let (store, log) = two_turns();
    let summary = compaction(&log, "<sum>").unwrap();
    let other = open(&store, "s");
    append(&store, &other, "three", &turn("three")).unwrap();
    store_compaction(&store, &log, "c", summary).unwrap();
    for log in [&log, &open(&store, "s")] {
        let text = shown(log);
        assert!(text.contains("<sum>") && text.contains("<r three>") && !text.contains("two"), "{text}");
        assert_eq!(ids(log).len(), 9);
    }
}

#[test]
fn r30_of_two_writers_one_compacts_and_the_other_learns_of_it() {
    let (store, log) = two_turns();
    let other = open(&store, "s");
    let (first, second) = (compaction(&log, "<first>").unwrap(), compaction(&other, "<second>").unwrap());
    store_compaction(&store, &log, "first", first).unwrap();
    let error = store_compaction(&store, &other, "second", second).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
    for log in [&log, &other, &open(&store, "s")] {
        let text = shown(log);
        assert!(text.contains("<first>") && !text.contains("<second>"), "{text}");
    }
}

#[test]
fn r30_a_result_that_comes_late_is_not_hidden_by_a_summary() {
    let store = MemoryStore::default();
    let log = open(&store, "s");
    let open_call = r#"[{"role":"user","content":"<q>"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"late","type":"function","function":{"name":"get","arguments":"{}"}}]}]"#;
    append(&store, &log, "open", open_call).unwrap();
    append(&store, &log, "one", &said("<other>")).unwrap();
    let before = compaction(&log, "<before>").unwrap();
    let answer = r#"[{"role":"tool","tool_call_id":"late","content":"<late>"}]"#;
    append(&store, &open(&store, "s"), "answer", answer).unwrap();
    // The summary was made without the result.
    assert_eq!(store_compaction(&store, &log, "before", before).unwrap_err().code, ErrorCode::Conflict);
    assert!(shown(&log).contains("<late>"));
    // One with the result is stored, and one before a later result does not apply any more.
    compact(&store, &log, "<with>");
    assert!(!shown(&log).contains("<late>"));
    append(&store, &log, "open again", &open_call.replace("late", "later")).unwrap();
    append(&store, &log, "two", &said("<another>")).unwrap();
    compact(&store, &log, "<without>");
    append(&store, &log, "later", &answer.replace("late", "later")).unwrap();
    for log in [&log, &open(&store, "s")] {
        let text = shown(log);
        assert!(text.contains("<later>") && text.contains("<with>") && !text.contains("<without>"), "{text}");
    }
}

/// The history of the entries of a session's records for which `keeps` is true, with the summaries.
fn refolded(store: &MemoryStore, keeps: &dyn Fn(&HistoryEntry) -> bool) -> History {
    let mut history = History::new(SEED);
    for record in block_on(store.read("s", Query::all(Table::Log))).unwrap() {
        let log: LogRecord = open_record(RecordKind::Log, &record.value).unwrap();
        log.entries.into_iter().filter(keeps).for_each(|entry| history.apply(entry));
        log.summaries.into_iter().for_each(|summary| history.apply_summary(summary));
    }
    history
}

#[test]
fn r30_a_summary_of_an_erased_message_is_not_sent() {
    let (store, log) = two_turns();
    compact(&store, &log, "<the secret is one>");
    assert!(body_of(&refolded(&store, &|_| true), CHAT, &StateOwner::Session).contains("<the secret is one>"));
    for erased in ids(&log) {
        let is_kept = |entry: &HistoryEntry| !matches!(entry, HistoryEntry::Message(message) if message.id == erased);
        let text = body_of(&refolded(&store, &is_kept), CHAT, &StateOwner::Session);
        assert!(!text.contains("secret") && text.contains("<next>"), "{text}");
    }
}

#[test]
fn r30_a_compaction_counts_only_where_all_its_messages_are() {
    let (_store, log) = two_turns();
    let summary = compaction(&log, "<sum>").unwrap();
    // Another side of a fork has the first turn, and as many messages.
    let store = MemoryStore::default();
    let side = open(&store, "s");
    append(&store, &side, "one", &turn("one")).unwrap();
    append(&store, &side, "fork", &turn("fork")).unwrap();
    assert_eq!(ids(&side).len(), ids(&log).len());
    assert_eq!(store_compaction(&store, &side, "c", summary.clone()).unwrap_err().code, ErrorCode::Conflict);
    let mut history = side.borrow().history.clone();
    history.apply_summary(summary.clone());
    assert!(history.compaction().is_none());
    // One of the shared turn alone counts on both.
    let shared = StoredSummary::compaction(log.borrow().history.coverage(3).unwrap(), "<shared>", None);
    store_compaction(&store, &side, "shared", shared).unwrap();
    let text = shown(&side);
    assert!(text.contains("<shared>") && text.contains("<q fork>") && !text.contains("<q one>"), "{text}");
}

#[test]
fn r30_the_running_turn_is_never_compacted() {
    let compactable = |log: &RefCell<SessionLog>| log.borrow().history.compactable(&|run| run == "pending");
    let store = MemoryStore::default();
    let log = open(&store, "s");
    assert_eq!(compactable(&log), Compactable::Nothing);
    append(&store, &log, "one", &turn("one")).unwrap();
    assert_eq!(compactable(&log), Compactable::Turns { end: 3, item_count: 3 });
    // A question without an answer stays, and so does everything from a call on that waits for the model.
    append(&store, &log, "question", r#"[{"role":"user","content":"u"}]"#).unwrap();
    assert_eq!(compactable(&log), Compactable::Turns { end: 3, item_count: 3 });
    let call = r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"get","arguments":"{}"}}]}]"#;
    append(&store, &log, "call", call).unwrap();
    assert_eq!(compactable(&log), Compactable::Unfinished);
    append(&store, &log, "result", r#"[{"role":"tool","tool_call_id":"x","content":"r"}]"#).unwrap();
    assert_eq!(compactable(&log), Compactable::Unfinished);
    append(&store, &log, "answer", r#"[{"role":"assistant","content":"done"}]"#).unwrap();
    assert_eq!(compactable(&log), Compactable::Turns { end: 6, item_count: 6 });
    // What a run has stored of its turn, while another writer went on.
    let mut change = change(&log, "run", &turn("run"));
    for entry in &mut change.entries {
        if let HistoryEntry::Message(message) = entry {
            message.run_id = Some("pending".into());
        }
    }
    written(commit(&store, &log, &change)).unwrap();
    append(&store, &log, "two", &turn("two")).unwrap();
    assert_eq!(compactable(&log), Compactable::Turns { end: 6, item_count: 6 });
}

#[test]
fn r30_a_compaction_survives_merging() {
    let store = MemoryStore::default();
    let log = open(&store, "s");
    for at in 0..40 {
        append(&store, &log, &format!("n{at}"), &said(&"long ".repeat(2000))).unwrap();
    }
    compact(&store, &log, "<sum>");
    for at in 40..80 {
        append(&store, &log, &format!("n{at}"), &said(&"more ".repeat(2000))).unwrap();
    }
    while block_on(merge_oldest(&store, &log, &format!("merge {}", log.borrow().revision))).unwrap()
        == rethread::store::MergeOutcome::Progress
    {}
    assert!(block_on(store.read("s", Query::all(Table::Log))).unwrap().iter().any(|record| record.last_key.is_some()));
    let text = shown(&open(&store, "s"));
    assert!(text.contains("<sum>") && !text.contains("long") && text.contains("more"));
}

/// An answer of a service with a chain of responses.
fn chained(id: &str, until: u64) -> impl Fn(&mut Message) {
    let (id, until) = (id.to_owned(), until);
    move |message| {
        let mark = rethread::message::ServiceMark { until, ..Default::default() };
        message.dialect = Some(Dialect::OpenAiResponses);
        message.answer = Some(Box::new(rethread::message::AnswerMeta {
            response_id: Some(id.clone()),
            service_mark: Some(Box::new(mark)),
            ..Default::default()
        }));
    }
}

fn append_chained(store: &dyn LogStore, log: &RefCell<SessionLog>, name: &str) {
    let until = log.borrow().head.next_seq;
    append_chained_until(store, log, (name, until));
}

fn append_chained_until(store: &dyn LogStore, log: &RefCell<SessionLog>, (name, until): (&str, u64)) {
    let mut change = change(log, name, &said(&format!("<{name}>")));
    for entry in &mut change.entries {
        if let HistoryEntry::Message(message) = entry {
            message.run_id = Some(name.into());
            if message.role == rethread::message::Role::Assistant {
                chained(&format!("resp_{name}"), until)(message);
            }
        }
    }
    written(commit(store, log, &change)).unwrap();
}

#[test]
fn r30_a_chain_of_responses_is_restarted_with_the_summary() {
    let responses = Dialect::OpenAiResponses;
    let auto = StateOwner::response(None);
    let store = MemoryStore::default();
    let log = open(&store, "s");
    append(&store, &log, "system", r#"[{"role":"system","content":"<rules>"}]"#).unwrap();
    append_chained(&store, &log, "one");
    assert!(body_of(&log.borrow().history, responses, &auto).contains(r#""previous_response_id":"resp_one""#));
    compact(&store, &log, "<sum>");
    let text = body_of(&log.borrow().history, responses, &auto);
    assert!(!text.contains("previous_response_id") && !text.contains("<one>"), "{text}");
    assert!(text.find("<rules>") < text.find("<sum>") && text.find("<sum>") < text.find("<next>"), "{text}");
    // The next answer continues the new chain.
    append_chained(&store, &log, "two");
    let text = body_of(&open(&store, "s").borrow().history, responses, &auto);
    assert!(text.contains(r#""previous_response_id":"resp_two""#) && !text.contains("<sum>"), "{text}");
    // A chain that begins with a response of the application's goes on: the summary does not contain that response.
    let given = StateOwner::response(Some("resp_0".into()));
    let text = body_of(&log.borrow().history, responses, &given);
    assert!(text.contains(r#""previous_response_id":"resp_0""#), "{text}");
}

#[test]
fn r30_a_service_shortens_its_chain() {
    let responses = Dialect::OpenAiResponses;
    let owner = StateOwner::response(None);
    let store = MemoryStore::default();
    let log = open(&store, "s");
    append_chained(&store, &log, "one");
    append_chained(&store, &log, "two");
    let body = compaction_request(responses, Some("m"), "resp_two").unwrap();
    assert_eq!(String::from_utf8(body).unwrap(), r#"{"model":"m","previous_response_id":"resp_two"}"#);
    let end = Delta::new(&owner, Dialect::OpenAiResponses, &log.borrow().history, None).chain_end();
    assert_eq!(end, Some(4));
    let answer = r#"{"object":"response.compaction","output":[
        {"type":"message","role":"user","content":[{"type":"input_text","text":"<kept>"}]},
        {"id":"cmp_1","type":"compaction","encrypted_content":"<sealed>"}]}"#;
    let items = compacted_items(responses, answer).unwrap();
    for wrong in
        ["{}", r#"{"object":"response","output":[{}]}"#, r#"{"object":"response.compaction","output":[]}"#, "5"]
    {
        assert!(compacted_items(responses, wrong).is_none(), "{wrong}");
    }
    let coverage = log.borrow().history.coverage(4).unwrap();
    store_compaction(&store, &log, "c", StoredSummary::of_items(coverage, responses, items, None)).unwrap();
    for log in [&log, &open(&store, "s")] {
        let history = &log.borrow().history;
        for owner in [&owner, &StateOwner::Session] {
            let text = body_of(history, responses, owner);
            assert!(text.find("<kept>") < text.find(r#""encrypted_content":"<sealed>""#), "{text}");
            assert!(text.find("<sealed>") < text.find("<next>") && !text.contains("<one>"), "{text}");
            assert!(!text.contains("previous_response_id"), "{text}");
        }
        // What only OpenAI can read is for no other provider.
        for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != responses) {
            let text = body_of(history, dialect, &StateOwner::Session);
            assert!(text.contains("<one>") && text.contains("<two>") && !text.contains("<sealed>"), "{text}");
        }
    }
    append_chained(&store, &log, "three");
    assert!(body_of(&log.borrow().history, responses, &owner).contains(r#""previous_response_id":"resp_three""#));
    // What another writer appended is in no chain.
    append(&store, &log, "other", &said("<other>")).unwrap();
    append_chained_until(&store, &log, ("four", 6));
    assert_eq!(Delta::new(&owner, Dialect::OpenAiResponses, &log.borrow().history, None).chain_end(), None);
}

#[test]
fn r30_a_chain_after_a_given_response_is_restarted_with_its_items() {
    let responses = Dialect::OpenAiResponses;
    let given = StateOwner::response(Some("resp_one".into()));
    let store = MemoryStore::default();
    let log = open(&store, "s");
    append_chained(&store, &log, "one");
    let items = vec![Json::parse(r#"{"type":"compaction","encrypted_content":"<sealed>"}"#).unwrap()];
    let coverage = log.borrow().history.coverage(2).unwrap();
    let summary = StoredSummary::of_items(coverage, responses, items, Some("resp_one".into()));
    store_compaction(&store, &log, "c", summary).unwrap();
    let text = body_of(&open(&store, "s").borrow().history, responses, &given);
    assert!(text.contains("<sealed>") && !text.contains("previous_response_id"), "{text}");
}

/// What happens to a session.
#[derive(Clone, Debug)]
enum Action {
    /// A writer appends a turn.
    Append(bool),
    /// A writer appends a question and a call.
    OpenCall(bool),
    /// A writer answers the oldest open call.
    Answer(bool),
    /// A writer asks for a summary.
    Ask(bool),
    /// A writer stores the summary that it asked for.
    Store(bool),
    /// The session goes on elsewhere.
    Restore,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => any::<bool>().prop_map(Action::Append),
        1 => any::<bool>().prop_map(Action::OpenCall),
        2 => any::<bool>().prop_map(Action::Answer),
        3 => any::<bool>().prop_map(Action::Ask),
        3 => any::<bool>().prop_map(Action::Store),
        1 => Just(Action::Restore),
    ]
}

/// A session of two writers.
struct Writers {
    store: MemoryStore,
    logs: [RefCell<SessionLog>; 2],
    summaries: [Option<StoredSummary>; 2],
    count: usize,
}

impl Writers {
    fn of(store: MemoryStore) -> Self {
        Self { logs: [open(&store, "s"), open(&store, "s")], store, summaries: [None, None], count: 0 }
    }

    fn act(&mut self, action: &Action) {
        self.count += 1;
        let name = format!("n{}", self.count);
        let at = |second: bool| usize::from(second);
        match action {
            Action::Append(second) => {
                append(&self.store, &self.logs[at(*second)], &name, &turn(&name)).unwrap();
            }
            Action::OpenCall(second) => {
                let call = format!(
                    r#"[{{"role":"user","content":"<q {name}>"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"{name}","type":"function","function":{{"name":"get","arguments":"{{}}"}}}}]}}]"#
                );
                append(&self.store, &self.logs[at(*second)], &name, &call).unwrap();
            }
            Action::Answer(second) => {
                let log = &self.logs[at(*second)];
                let oldest = log.borrow().history.open_calls().next().map(|call| call.call_id.clone());
                if let Some(call) = oldest {
                    let result = format!(r#"[{{"role":"tool","tool_call_id":"{call}","content":"<late {call}>"}}]"#);
                    append(&self.store, log, &name, &result).unwrap();
                }
            }
            Action::Ask(second) => {
                let writer = at(*second);
                // A turn that waits for the model is not compacted.
                self.summaries[writer] = compaction(&self.logs[writer], &format!("<sum {name}>"));
            }
            Action::Store(second) => {
                let writer = at(*second);
                let Some(summary) = self.summaries[writer].take() else { return };
                if let Err(error) = store_compaction(&self.store, &self.logs[writer], &name, summary) {
                    assert_eq!(error.code, ErrorCode::Conflict);
                }
            }
            Action::Restore => {
                let Ok((archive, _)) = block_on(SessionArchive::read(&self.store, "s", SEED)) else { return };
                let elsewhere = MemoryStore::default();
                block_on(archive.restore(&elsewhere, "s", ("restore", None))).unwrap();
                let (summaries, count) = (self.summaries.clone(), self.count);
                *self = Self { summaries, count, ..Self::of(elsewhere) };
            }
        }
    }

    /// Checks that the summary and what follows it are sent, and nothing else.
    fn check(&self, appended: &[String]) {
        let log = open(&self.store, "s");
        let log = log.borrow();
        let history = &log.history;
        let stored: Vec<&str> = history.messages().iter().map(|message| message.id.as_str()).collect();
        assert_eq!(stored, appended, "originals stay");
        let end = history.compaction().map_or(0, |compaction| compaction.end);
        // A service that has nothing of it gets the same.
        let response = StateOwner::response(None);
        let bodies = Dialect::ALL.map(|dialect| body_of(history, dialect, &StateOwner::Session));
        for text in bodies.into_iter().chain([body_of(history, Dialect::OpenAiResponses, &response)]) {
            if let Some(compaction) = history.compaction() {
                let rethread::message::PartBody::Text(summary) = &compaction.stored.message.parts[0].body else {
                    panic!()
                };
                assert_eq!(text.matches(summary.inside()).count(), 1, "{text}");
            }
            assert_eq!(text.matches("<sum").count(), usize::from(end > 0), "{text}");
            for (index, message) in history.messages().iter().enumerate() {
                if let Some(rethread::message::PartBody::Text(words)) = message.parts.first().map(|part| &part.body) {
                    assert_eq!(text.contains(words.inside()), index >= end, "{text}");
                }
                for call in history.calls_of(message) {
                    let Some(result) = call.result.as_ref() else { continue };
                    let result = result.content.as_str().trim_matches('"');
                    assert_eq!(text.contains(result), index >= end, "{result} {text}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r30_any_interleaving_of_writers_loses_nothing(actions in proptest::collection::vec(action(), 1..24)) {
        let mut writers = Writers::of(MemoryStore::default());
        let mut appended: Vec<String> = Vec::new();
        for action in &actions {
            writers.act(action);
            let now = ids(&open(&writers.store, "s"));
            prop_assert_eq!(&now[..appended.len()], &appended[..]);
            appended = now;
        }
        writers.check(&appended);
    }
}
