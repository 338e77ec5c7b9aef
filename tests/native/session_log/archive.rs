//! A session as a value: serialized, exported as JSON Lines, restored elsewhere, and cleared.

use super::scripted_host::{rounds_in, setup, three_tools};
use super::*;
use proptest::prelude::*;
use rethread::json::Json;
use rethread::owner::{OnLost, StateOwner};
use rethread::run::{ARCHIVE_DESCRIPTIONS, BackgroundAnswer, JournalEntry};
use rethread::store::{JournalChange, JournalStep, SessionArchive, clear_session, merge_oldest, read_journal};
use rethread::tool::Arguments;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const TOOLS: &str = r#"[{"role":"user","content":"Oslo?"},
    {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{\"n\":1.50}"}}]},
    {"role":"tool","tool_call_id":"c1","content":"\ud800 12345678901234567890"},
    {"role":"assistant","content":"Cold."}]"#;

fn edited(store: &dyn LogStore, log: &RefCell<SessionLog>) {
    let edit = Change {
        operation: "edit".into(),
        at: 5,
        edit: Some(Box::new(|head| {
            head.title = Some("Weather".into());
            head.state = vec![("memory".into(), JsonRef::parse("{\"a\":1e400}").unwrap().to_owned())];
        })),
        ..Change::default()
    };
    written(commit(store, log, &edit)).unwrap();
}

/// A session with merged and separate records, a tool, a state bag and an unfinished run.
fn session() -> MemoryStore {
    let store = MemoryStore::default();
    let log = open(&store, "s");
    for at in 0..40 {
        append(&store, &log, &format!("n{at}"), &said(&"long ".repeat(2000))).unwrap();
    }
    while block_on(merge_oldest(&store, &log, &format!("merge {}", log.borrow().revision))).unwrap()
        == rethread::store::MergeOutcome::Progress
    {}
    let records = block_on(store.read("s", Query::all(Table::Log))).unwrap();
    assert!(records.iter().any(|record| record.last_key.is_some()), "no segment was written");
    append(&store, &log, "tools", TOOLS).unwrap();
    edited(&store, &log);
    let mut host = Host::open(&store, "s", "host");
    // The host is killed after the model's answer, before the tools run.
    host.writes_left = Some(2);
    host.start(setup("run", CHAT, false), "Bergen?").unwrap();
    assert!(host.drive(three_tools).is_none());
    assert_eq!(host.pending().len(), 1);
    store
}

fn archive(store: &dyn LogStore) -> SessionArchive {
    block_on(SessionArchive::read(store, "s", SEED)).unwrap().0
}

fn restored(archive: SessionArchive) -> MemoryStore {
    let store = MemoryStore::default();
    block_on(archive.restore(&store, "copy", ("restore", None))).unwrap();
    store
}

/// Checks that two sessions have the same history, head and journals, and render the same body.
fn assert_same(store: &MemoryStore, copy: &MemoryStore) {
    let (one, two) = (open(store, "s"), open(copy, "copy"));
    let (one, two) = (one.borrow(), two.borrow());
    assert_eq!(one.history.messages(), two.history.messages());
    assert_eq!(one.history.invocations(), two.history.invocations());
    let mut head = two.head.without_leases();
    head.id = "s".into();
    head.merged_until = one.head.merged_until;
    assert_eq!(one.head.without_leases(), head);
    assert!(two.findings.is_empty(), "{:?}", two.findings);
    let journal = |store: &MemoryStore, session: &str, log: &SessionLog| {
        log.head.runs.iter().map(|run| block_on(read_journal(store, session, run)).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(journal(store, "s", &one), journal(copy, "copy", &two));
    assert_eq!(body(store, "s"), body(copy, "copy"));
}

fn body(store: &MemoryStore, session: &str) -> Vec<u8> {
    Host::open(store, session, "reader").render(CHAT).body
}

#[test]
fn r37_a_serialized_session_is_restored_with_everything_in_it() {
    let store = session();
    let bytes = archive(&store).seal();
    assert_same(&store, &restored(SessionArchive::open(&bytes).unwrap()));
}

#[test]
fn r37_an_exported_session_is_imported_with_everything_in_it() {
    let store = session();
    let lines = archive(&store).to_json_lines(&ARCHIVE_DESCRIPTIONS);
    for line in lines.lines() {
        assert!(JsonRef::parse(line).is_ok(), "{line}");
    }
    assert!(
        lines.contains("Oslo?") && lines.contains("\"title\":\"Weather\"") && lines.contains("12345678901234567890")
    );
    let copy = restored(SessionArchive::from_json_lines(&lines).unwrap());
    assert_same(&store, &copy);
    // An editor may have changed the ends of lines, and added an empty one.
    assert_same(&store, &restored(SessionArchive::from_json_lines(&(lines.replace('\n', "\r\n") + "\n")).unwrap()));
}

/// The parsed lines of an export in which a member has this value.
fn lines_with<'l>(lines: &'l str, key: &str, value: &str) -> Vec<JsonRef<'l>> {
    lines.lines().map(|line| JsonRef::parse(line).unwrap()).filter(|line| line.has_text(key, value)).collect()
}

#[test]
fn r37_an_export_shows_a_person_who_owns_the_conversation() {
    let response = |previous: Option<&str>| StateOwner::response(previous.map(Into::into));
    let mut unknown = StateOwner::Session.to_stored();
    unknown.kind = 99;
    let owners = [
        (StateOwner::Session.to_stored(), r#"{"kind":"session"}"#),
        (StateOwner::Caller.to_stored(), r#"{"kind":"caller"}"#),
        (
            StateOwner::Conversation { id: "conv_1".into() }.to_stored(),
            r#"{"kind":"conversation","conversationId":"conv_1"}"#,
        ),
        (response(Some("resp_1")).to_stored(), r#"{"kind":"response","previousResponseId":"resp_1"}"#),
        (response(None).to_stored(), r#"{"kind":"response","auto":true}"#),
        (
            StateOwner::Response { previous: None, on_lost: OnLost::Fail }.to_stored(),
            r#"{"kind":"response","auto":true,"onLost":"fail"}"#,
        ),
        (unknown, "null"),
    ];
    let store = three_turns();
    for (owner, shown) in owners {
        let mut archive = archive(&store);
        archive.head.owner = owner;
        let lines = archive.to_json_lines(&ARCHIVE_DESCRIPTIONS);
        let first = lines_with(&lines, "rethread", "session");
        assert_eq!(first[0].get("owner").unwrap().as_raw(), shown);
        assert_eq!(SessionArchive::from_json_lines(&lines).unwrap().head.owner, archive.head.owner);
        if shown != "null" {
            let edited = lines.replacen(shown, r#"{"kind":"other"}"#, 1);
            assert_eq!(SessionArchive::from_json_lines(&edited).unwrap_err().code, ErrorCode::InvalidInput);
        }
    }
}

/// Writes a journal of this step as the run "described".
fn journal(store: &MemoryStore, step: JournalStep) {
    let log = open(store, "s");
    let journal = JournalChange { run: "described".into(), epoch: 0, lease_until: 0, lease_ended_by: None, step };
    let operation = format!("journal {}", log.borrow().revision);
    written(commit(store, &log, &Change { operation, at: 7, journal: Some(journal), ..Change::default() })).unwrap();
}

fn background_answer() -> BackgroundAnswer {
    BackgroundAnswer {
        response: "resp_1".into(),
        call: 0,
        dialect: rethread::message::Dialect::OpenAiResponses,
        url: "https://model.example".into(),
        is_streamed: true,
        asked_at: 1,
        until: 0,
        pending: Vec::new(),
        kept_head: None,
        prefix: None,
        late_results: Vec::new(),
    }
}

#[test]
fn r37_an_export_shows_a_person_the_journal_of_a_run() {
    let store = session();
    let real = archive(&store).to_json_lines(&ARCHIVE_DESCRIPTIONS);
    let of_run: Vec<_> = lines_with(&real, "run", "run").iter().map(|line| line.get("entry").unwrap()).collect();
    assert_eq!(
        of_run.iter().map(|entry| entry.text("type").unwrap()).collect::<Vec<_>>(),
        ["began", "history_selected", "answered"]
    );
    assert!(
        of_run[0].as_raw().contains("Bergen?") && of_run[0].get("provider").unwrap().has_text("dialect", "openai-chat")
    );
    assert!(of_run[2].get("toolInvocations").unwrap().as_raw().contains("\"name\":"));
}

#[test]
fn r37_an_export_shows_a_person_the_entries_of_a_journal() {
    let store = session();
    let call = || String::from("i-1");
    let arguments = Some(Arguments::Value(Json::parse("{\"n\":1}").unwrap()));
    let entries = [
        (
            JournalEntry::Started { invocation: call(), at: 5, attempt: 2 },
            r#"{"type":"tool_started","invocation":"i-1","at":5,"attempt":2}"#,
        ),
        (
            JournalEntry::ApprovalNeeded { invocation: call(), at: 5 },
            r#"{"type":"approval_needed","invocation":"i-1","at":5}"#,
        ),
        (JournalEntry::Approved { invocation: call(), at: 6 }, r#"{"type":"approved","invocation":"i-1","at":6}"#),
        (
            JournalEntry::Redacted { invocation: call(), arguments },
            r#"{"type":"redacted","invocation":"i-1","argumentsText":"{\"n\":1}"}"#,
        ),
        (
            JournalEntry::Redacted { invocation: call(), arguments: None },
            r#"{"type":"redacted","invocation":"i-1","argumentsText":null}"#,
        ),
        (JournalEntry::Withheld { members: vec!["api_key".into()] }, r#"{"type":"withheld","params":["api_key"]}"#),
        (
            JournalEntry::Retrying { attempt: 2, not_before: 9, is_pick_up: false },
            r#"{"type":"retrying","attempt":2,"notBefore":9}"#,
        ),
        (
            JournalEntry::Healed { refused: vec!["m".into()], restarts_chain: false },
            r#"{"type":"healed","refused":["m"]}"#,
        ),
        (
            JournalEntry::Background(Some(Box::new(background_answer()))),
            r#"{"type":"background_answer","responseId":"resp_1"}"#,
        ),
        (JournalEntry::Background(None), r#"{"type":"background_answer","responseId":null}"#),
        (JournalEntry::HandedOff { agent: "a".into(), at: 5 }, r#"{"type":"handed_off","agent":"a","at":5}"#),
        (JournalEntry::Completed(None), r#"{"type":"completed"}"#),
        (
            JournalEntry::Failed { code: "model_error".into(), message: "no".into(), is_replay_safe: true },
            r#"{"type":"failed","code":"model_error","message":"no"}"#,
        ),
    ];
    let sealed = entries.iter().map(|(entry, _)| entry.seal()).chain([vec![1, 1, 9].into()]).collect();
    journal(&store, JournalStep::Begin(sealed));
    journal(&store, JournalStep::Take);
    let lines = archive(&store).to_json_lines(&ARCHIVE_DESCRIPTIONS);
    let shown: Vec<_> =
        lines_with(&lines, "run", "described").iter().map(|line| line.get("entry").unwrap().as_raw()).collect();
    let expected = entries.iter().map(|(_, shown)| *shown).chain(["null", r#"{"type":"taken_over"}"#]);
    assert_eq!(shown, expected.collect::<Vec<_>>());

    // What is shown is checked like the rest, and nothing of it is read.
    let at = 1 + lines.lines().position(|line| line.contains("model_error")).unwrap() as u64;
    let error = SessionArchive::from_json_lines(&lines.replacen("\"model_error\"", "\"aborted\"", 1)).unwrap_err();
    assert_eq!(error.details.as_ref().unwrap().view().get("line").unwrap().as_u64(), Some(at));
    let imported = SessionArchive::from_json_lines(&lines).unwrap();
    assert_eq!(imported.to_json_lines(&ARCHIVE_DESCRIPTIONS), lines);
}

#[test]
fn r37_an_unfinished_run_is_resumed_where_the_session_was_restored() {
    let copy = restored(SessionArchive::open(&archive(&session()).seal()).unwrap());
    let mut host = Host::open(&copy, "copy", "next");
    host.resume(setup("run", CHAT, false)).unwrap();
    let outcome = host.drive(three_tools).unwrap();
    assert_eq!(outcome.status, rethread::run::RunStatus::Finished);
    // The first model call was acknowledged before the session was serialized.
    assert!(host.asked.iter().all(|body| rounds_in(body) > 0));
    assert!(host.pending().is_empty());
}

#[test]
fn r37_a_restored_session_replaces_no_other_and_follows_a_deleted_one() {
    let archive = archive(&session());
    let store = MemoryStore::default();
    let log = open(&store, "copy");
    append(&store, &log, "a", &said("hello")).unwrap();
    let error = block_on(archive.clone().restore(&store, "copy", ("restore", None))).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
    assert_eq!(texts(&open(&store, "copy")), ["hello"]);
    let deleted = log.borrow().head.history_revision;
    block_on(store.delete_session("copy")).unwrap();
    block_on(archive.restore(&store, "copy", ("again", None))).unwrap();
    // A tab that had the deleted session open does not append to this one.
    let error = append(&store, &log, "b", &said("late")).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound, "{error}");
    let restored = open(&store, "copy");
    assert_eq!(restored.borrow().history.messages().len(), 83);
    // One revision never stands for two histories.
    assert!(restored.borrow().head.history_revision > deleted);
}

#[test]
fn r37_other_versions_and_edited_exports_are_errors_that_name_the_line() {
    let lines = archive(&session()).to_json_lines(&ARCHIVE_DESCRIPTIONS);
    let count = lines.lines().count();
    let line_of = |text: &str| {
        let error = SessionArchive::from_json_lines(text).unwrap_err();
        let line = error.details.as_ref().and_then(|details| details.view().get("line")?.as_u64());
        (error.code, line)
    };
    let invalid = |line: usize| (ErrorCode::InvalidInput, Some(line as u64));
    let edited = lines.replacen("Oslo?", "Rome?", 1);
    let at = 1 + lines.lines().position(|line| line.contains("Oslo?")).unwrap();
    assert_eq!(line_of(&edited), invalid(at));
    let all: Vec<&str> = lines.lines().collect();
    for at in 1..count {
        let without: Vec<&str> = [&all[..at], &all[at + 1..]].concat();
        let place = if at + 1 == count { count - 1 } else { at + 1 };
        assert_eq!(line_of(&without.join("\n")), invalid(place), "without line {}", at + 1);
        assert_eq!(line_of(&all[..at].join("\n")), invalid(at), "cut after {at}");
    }
    assert_eq!(line_of(""), invalid(1));
    assert_eq!(line_of("{\"role\":\"user\"}"), invalid(1));
    assert_eq!(line_of(&lines.replacen("\"version\":1", "\"version\":2", 1)).0, ErrorCode::UnsupportedVersion);
}

#[test]
fn r37_a_cleared_session_is_empty_and_keeps_its_title() {
    let store = session();
    let deferral = Change {
        operation: "deferral".into(),
        edit: Some(Box::new(|head| head.has_deferred_compaction = true)),
        ..Change::default()
    };
    written(commit(&store, &open(&store, "s"), &deferral)).unwrap();
    let (log, other) = (open(&store, "s"), open(&store, "s"));
    let busy = block_on(clear_session(&store, &log, ("early", 0), (&["run".into()], None))).unwrap_err();
    assert_eq!(busy.code, ErrorCode::Busy);
    let later = u64::MAX / 2;
    // A run that the caller does not own is not removed.
    let foreign = block_on(clear_session(&store, &log, ("foreign", later), (&[], None))).unwrap_err();
    assert_eq!(foreign.code, ErrorCode::Busy);
    block_on(clear_session(&store, &log, ("clear", later), (&["run".into()], None))).unwrap();
    let revision = log.borrow().head.history_revision;
    for log in [&log, &open(&store, "s")] {
        assert!(log.borrow().history.messages().is_empty());
        assert_eq!(log.borrow().head.title.as_deref(), Some("Weather"));
        assert!(log.borrow().head.runs.is_empty());
        assert!(!log.borrow().head.has_deferred_compaction);
    }
    for table in [Table::Log, Table::ToolInvocations, Table::Runs] {
        assert!(block_on(store.read("s", Query::all(table))).unwrap().is_empty());
    }
    // Another tab sees the empty session, and what was prepared on the old one is not appended.
    let late = append(&store, &other, "late", &said("late")).unwrap_err();
    assert_eq!(late.code, ErrorCode::NotFound);
    block_on(refresh(&store, &other)).unwrap();
    assert!(other.borrow().history.messages().is_empty());
    assert!(append(&store, &log, "new", &said("new")).unwrap() > revision);
    assert_eq!(texts(&open(&store, "s")), ["new"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn r37_damaged_archives_are_errors(at in any::<prop::sample::Index>(), bit in 0_u8..8, end in any::<prop::sample::Index>()) {
        let store = three_turns();
        let bytes = archive(&store).seal();
        let mut flipped = bytes.to_vec();
        let at = at.index(flipped.len());
        flipped[at] ^= 1 << bit;
        let code = SessionArchive::open(&flipped.into()).unwrap_err().code;
        // The byte after the mark is the oldest version that may read the rest.
        prop_assert!(code == ErrorCode::InvalidInput || at == b"rethread session\n".len() && code == ErrorCode::UnsupportedVersion);
        let cut = bytes.slice(..end.index(bytes.len()));
        prop_assert_eq!(SessionArchive::open(&cut).unwrap_err().code, ErrorCode::InvalidInput);
    }
}
