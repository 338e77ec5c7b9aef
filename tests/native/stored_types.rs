//! What is stored, byte for byte: a change of layout must show here before it meets a user's data. `BLESS=1` writes the
//! files anew, which is right for a version that nobody has stored anything with, and wrong for every other one.

mod runs;

use rethread::branch_path::BranchPath;
use rethread::finding::FindingCode;
use rethread::history::{Annotation, Coverage, HistoryEntry, LogRecord, ResultEntry, SetAsideItem, StoredSummary};
use rethread::json::{Json, JsonStr};
use rethread::message::{
    AnswerMaker, AnswerMeta, Continuation, Dialect, KeptHead, Media, Message, MessageStatus, Part, PartBody, Phase,
    PrefixMark, Role, ServiceMark, Source, SourceKind, TemplateSlot, Usage, WireTemplate,
};
use rethread::replay::{ReplaySelection, RequestIdentity, SelectedCall, SelectedRange, SentRequest, SentRequestRecord};
use rethread::run::{
    BackgroundAnswer, JournalEntry, Persistence, RunSnapshot, RunStart, SnapshotOrigin, StoredProvider,
};
use rethread::session_head::{
    BranchState, HeadMark, Overview, Preview, RunEntry, SessionHead, StoredOwner, UnfinishedErasure,
};
use rethread::store::{
    AdoptedSide, AuditRow, BranchRow, JournalMark, RecordKind, RenamedId, StoredValue, open_record, seal_payload,
    seal_record,
};
use rethread::tool::{Arguments, InvocationStatus, ToolInvocation, ToolResult, Window};
use std::path::PathBuf;

fn fixed<T: StoredValue + PartialEq + std::fmt::Debug>(name: &str, kind: RecordKind, value: &T) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/native/fixtures").join(format!("{name}.bin"));
    let bytes = seal_record(kind, value);
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &bytes).unwrap();
    }
    let stored = std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let read: T = open_record(kind, &stored.clone().into())
        .unwrap_or_else(|error| panic!("{name} is not read any more: {error}"));
    assert_eq!(&read, value, "{name} reads as something else");
    assert_eq!(bytes, stored, "{name} is written otherwise");
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn token(text: &str) -> JsonStr {
    JsonStr::from_token(text).unwrap()
}

fn template() -> WireTemplate {
    let slots = [
        TemplateSlot::Raw(json("{\"a\": 1e3}")),
        TemplateSlot::Part(300),
        TemplateSlot::Parts,
        TemplateSlot::ResultsThenParts,
        TemplateSlot::Calls,
        TemplateSlot::Text,
        TemplateSlot::Id,
        TemplateSlot::Name,
        TemplateSlot::Arguments,
        TemplateSlot::Content,
        TemplateSlot::Object(WireTemplate(vec![(token("\"in\\u0073ide\""), TemplateSlot::Text)])),
    ];
    WireTemplate(slots.into_iter().enumerate().map(|(at, slot)| (JsonStr::new(&format!("k{at}")), slot)).collect())
}

fn media() -> Media {
    Media {
        url: Some(token("\"https:\\/\\/x\"")),
        data: Some(token("\"QUJD\"")),
        file_id: Some(token("\"f1\"")),
        media_type: Some("image/png".into()),
        name: Some("a.png".into()),
    }
}

fn message() -> Message {
    let bodies = [
        PartBody::Text(token("\"t\\ud800\"")),
        PartBody::Image(media()),
        PartBody::File(Media::default()),
        PartBody::Data { name: "chart".into(), value: json("[1,2]") },
        PartBody::Reasoning(token("\"r\"")),
        PartBody::Refusal(token("\"no\"")),
        PartBody::ToolCall { invocation: "i".into(), round: 2, place: 3 },
        PartBody::Opaque(json("{\"type\":\"x\"}")),
    ];
    Message {
        id: "m".into(),
        seq: 1 << 40,
        turn: 7,
        role: Role::Assistant,
        parts: bodies
            .into_iter()
            .enumerate()
            .map(|(at, body)| Part { body, template: (at == 0).then(template), phase: None })
            .collect(),
        created_at: 1_700_000_000_123,
        source: Source { kind: SourceKind::Context, id: Some("notes".into()) },
        run_id: Some("run".into()),
        status: MessageStatus::Truncated,
        parent_id: Some("p".into()),
        metadata: Some(json("{\"label\":\"x\"}")),
        answer: Some(Box::new(AnswerMeta {
            model: Some("m-1".into()),
            usage: Some(usage()),
            finish_reason: Some("stop".into()),
            duration_ms: Some(12),
            response_id: Some("resp".into()),
            container: Some("box".into()),
            service_mark: None,
            agent: None,
            maker: None,
            prefix: None,
            known_results: 0,
            continuation: None,
        })),
        dialect: Some(Dialect::Anthropic),
        template: Some(template()),
        late_results: Vec::new(),
    }
}

fn usage() -> Usage {
    Usage { input: 1, output: 2, cached_input: Some(3), cache_write: None, reasoning: Some(4) }
}

fn plain(role: Role, status: MessageStatus, kind: SourceKind) -> Message {
    Message {
        role,
        status,
        source: Source { kind, id: None },
        parts: Vec::new(),
        run_id: None,
        parent_id: None,
        metadata: None,
        answer: None,
        dialect: None,
        template: None,
        ..message()
    }
}

fn invocation(status: InvocationStatus) -> ToolInvocation {
    ToolInvocation {
        id: "i".into(),
        number: 4,
        record: 5,
        message_id: "m".into(),
        turn: 6,
        call_id: "call_1".into(),
        replay_id: Some("call_x".into()),
        name: "look".into(),
        arguments: Arguments::Text(token("\"{\\\"n\\\":12345678901234567890}\"")),
        round: 1,
        place: 2,
        status,
        started_at: Some(10),
        finished_at: Some(20),
        stored_at: 30,
        redacted: true,
        channel: Some("mail".into()),
        freshness: Some(Window::Millis(9)),
        append_freshness: Some(Window::Always),
        result: Some(result()),
        template: Some(template()),
        stored_during_run: false,
        is_deferred: false,
        has_persist: false,
        is_async: false,
        has_redacted_result: false,
    }
}

fn result() -> ToolResult {
    ToolResult {
        content: json("{\"b\":1,\"b\":2}"),
        is_error: true,
        dialect: Some(Dialect::OpenAiChat),
        template: Some(template()),
    }
}

fn overview() -> Overview {
    let preview = Preview { message: "m1".into(), text: "Hello \u{1f600}".into(), is_answer: true };
    Overview { preview: Some(preview), unread: 2, unread_from: 3, ..Overview::default() }
}

#[test]
fn heads() {
    fixed("head_empty", RecordKind::Head, &SessionHead::new("s", 5));
    let mut session = SessionHead::new("a/b \u{1f600}", 5);
    session.born = 300;
    session.updated_at = 6;
    session.title = Some("T".into());
    session.channel = Some("mail".into());
    session.metadata = Some(json("{}"));
    session.state = vec![("k".into(), json("[null]"))];
    session.history_revision = 7;
    session.next_seq = 8;
    session.next_record = 9;
    session.next_invocation = 10;
    session.next_run = 11;
    session.turns = 12;
    session.log_bytes = 13;
    session.source_high_water = 14;
    session.merged_until = 15;
    session.runs = vec![RunEntry {
        id: "r".into(),
        number: 1,
        entries: 2,
        epoch: 3,
        lease_until: 4,
        started_at: 5,
        failed: Some(("model_error".into(), "the provider answered 500".into())),
        holder: Some("3:k3v9".into()),
        ..RunEntry::default()
    }];
    fixed("head_full", RecordKind::Head, &session);
    session = SessionHead::new("s", 5);
    session.overview = overview();
    session.runs = vec![RunEntry { id: "r".into(), approvals: 2, ..RunEntry::default() }];
    fixed("head_with_overview", RecordKind::Head, &session);
    session = SessionHead::new("s", 5);
    session.runs = vec![RunEntry { id: "r".into(), number: 1 << 32, is_next: true, ..RunEntry::default() }];
    fixed("head_with_queued", RecordKind::Head, &session);
    fixed("head_archived", RecordKind::Head, &SessionHead { is_archived: true, ..SessionHead::new("s", 5) });
}

#[test]
fn log_records() {
    let roles = [Role::System, Role::Developer, Role::User, Role::Assistant];
    let statuses = [MessageStatus::Complete, MessageStatus::Stopped, MessageStatus::Truncated, MessageStatus::Failed];
    let kinds = [SourceKind::External, SourceKind::Context, SourceKind::History, SourceKind::External];
    let mut entries = vec![HistoryEntry::Message(message())];
    entries.extend((0..4).map(|at| HistoryEntry::Message(plain(roles[at], statuses[at], kinds[at]))));
    entries.extend(Dialect::ALL.map(|dialect| {
        HistoryEntry::Message(Message {
            dialect: Some(dialect),
            ..plain(Role::User, MessageStatus::Complete, SourceKind::External)
        })
    }));
    let statuses = InvocationStatus::ALL.into_iter().filter(|status| *status != InvocationStatus::Rejected);
    entries.extend(statuses.map(|status| HistoryEntry::Invocation(invocation(status))));
    let bare = ToolInvocation {
        arguments: Arguments::Value(json("{\"a\": 1}")),
        freshness: Some(Window::Always),
        append_freshness: None,
        result: None,
        replay_id: None,
        started_at: None,
        finished_at: None,
        channel: None,
        template: None,
        redacted: false,
        ..invocation(InvocationStatus::Pending)
    };
    entries.push(HistoryEntry::Invocation(bare));
    entries.push(HistoryEntry::Result(ResultEntry {
        invocation: "i".into(),
        status: InvocationStatus::Ok,
        started_at: None,
        finished_at: Some(9),
        freshness: Some(Window::Millis(0)),
        result: Some(ToolResult { dialect: None, template: None, ..result() }),
        is_replacement: true,
        ..ResultEntry::default()
    }));
    entries.push(HistoryEntry::SetAside(SetAsideItem {
        reason: "orphan_result".into(),
        dialect: Some(Dialect::Gemini),
        value: json("\"x\""),
        at: 3,
        invocation: None,
    }));
    fixed(
        "log_record",
        RecordKind::Log,
        &LogRecord {
            operation: "run.0.9".into(),
            run: Some("run".into()),
            at: 44,
            mark: mark(),
            entries,
            run_continues: false,
            summaries: Vec::new(),
            annotations: Vec::new(),
            added_to: 0,
        },
    );
}

#[test]
fn r67_r75_records_of_results_that_come_later() {
    let call = ToolInvocation { is_deferred: true, result: None, ..invocation(InvocationStatus::Pending) };
    let deferral = ResultEntry {
        invocation: "i".into(),
        status: InvocationStatus::Pending,
        started_at: Some(7),
        finished_at: None,
        freshness: None,
        result: None,
        is_deferral: true,
        ..ResultEntry::default()
    };
    let redacted = ToolInvocation { has_redacted_result: true, ..invocation(InvocationStatus::Ok) };
    let early = ResultEntry {
        invocation: "i".into(),
        status: InvocationStatus::Ok,
        is_redacted: true,
        run: Some("run".into()),
        ..ResultEntry::default()
    };
    let orphan =
        SetAsideItem { invocation: Some("i".into()), ..SetAsideItem::result(FindingCode::OrphanResult, result(), 3) };
    let record = LogRecord {
        operation: "answer.0".into(),
        run: None,
        at: 44,
        mark: mark(),
        entries: vec![HistoryEntry::Invocation(redacted), HistoryEntry::Result(early), HistoryEntry::SetAside(orphan)],
        run_continues: false,
        summaries: Vec::new(),
        annotations: Vec::new(),
        added_to: 0,
    };
    fixed("log_record_with_early_results", RecordKind::Log, &record);
    let asynchronous = ToolInvocation { is_async: true, is_deferred: false, ..call.clone() };
    let answered = JournalEntry::Answered { message: message(), invocations: vec![asynchronous] };
    fixed("journal_answered_with_an_asynchronous_call", RecordKind::Journal, &answered);
    let message = Message { late_results: vec!["i".into(), "j".into()], ..message() };
    fixed("journal_deferred", RecordKind::Journal, &JournalEntry::Finished(deferral.clone()));
    fixed(
        "log_record_with_late_results",
        RecordKind::Log,
        &LogRecord {
            operation: "run.0.9".into(),
            run: None,
            at: 44,
            mark: mark(),
            entries: vec![
                HistoryEntry::Invocation(call),
                HistoryEntry::Result(deferral),
                HistoryEntry::Message(message),
            ],
            run_continues: false,
            summaries: Vec::new(),
            annotations: Vec::new(),
            added_to: 0,
        },
    );
}

#[test]
fn r12_r67_a_call_whose_tool_decides_what_is_stored() {
    let call = ToolInvocation { has_persist: true, result: None, ..invocation(InvocationStatus::Pending) };
    let record = LogRecord {
        operation: "run.0.7".into(),
        run: Some("run".into()),
        at: 44,
        mark: mark(),
        entries: vec![HistoryEntry::Invocation(call)],
        run_continues: false,
        summaries: Vec::new(),
        annotations: Vec::new(),
        added_to: 0,
    };
    fixed("log_record_of_a_call_with_persist", RecordKind::Log, &record);
}

#[test]
fn r30_r67_records_of_summaries() {
    let coverage = Coverage {
        message_count: 7,
        ids_hash: 1 << 60,
        late_result_count: 2,
        late_results_hash: 9,
        last_message_id: "m".into(),
    };
    let summary = |reducer_hash, chain_start: Option<&str>| StoredSummary {
        coverage: coverage.clone(),
        message: message(),
        reducer_hash,
        chain_start: chain_start.map(Into::into),
    };
    let record = LogRecord {
        operation: "c.0".into(),
        run: None,
        at: 44,
        mark: mark(),
        entries: Vec::new(),
        run_continues: false,
        summaries: vec![summary(None, Some("resp_0")), summary(Some(3), None)],
        annotations: Vec::new(),
        added_to: 0,
    };
    fixed("log_record_with_summaries", RecordKind::Log, &record);
    let head = SessionHead { has_deferred_compaction: true, ..SessionHead::new("s", 5) };
    fixed("head_with_a_due_compaction", RecordKind::Head, &head);
}

#[test]
fn r57_r67_records_of_annotations() {
    let notes = [Annotation::new("m", json(r#"{"thumb":"up"}"#)), Annotation::new("n", json("null"))];
    let record = LogRecord {
        operation: "a.0".into(),
        run: None,
        at: 44,
        mark: mark(),
        entries: Vec::new(),
        run_continues: false,
        summaries: Vec::new(),
        annotations: notes.to_vec(),
        added_to: 0,
    };
    fixed("log_record_with_annotations", RecordKind::Log, &record);
    let head = SessionHead { branch_count: 2, begun_forks: 1, ..SessionHead::new("s", 5) };
    fixed("head_with_begun_forks", RecordKind::Head, &head);
    let head = SessionHead { branch_count: 2, additions: 3, ..SessionHead::new("s", 5) };
    fixed("head_with_additions", RecordKind::Head, &head);
    fixed("log_record_of_an_addition", RecordKind::Log, &LogRecord { added_to: 2, ..record });
}

#[test]
fn r29_r67_records_of_approvals() {
    let call = HistoryEntry::Invocation(invocation(InvocationStatus::Rejected));
    let record = LogRecord {
        operation: "run.0.9".into(),
        run: Some("run".into()),
        at: 44,
        mark: mark(),
        entries: vec![call],
        run_continues: false,
        summaries: Vec::new(),
        annotations: Vec::new(),
        added_to: 0,
    };
    fixed("log_record_with_rejected_call", RecordKind::Log, &record);
    let (needed, approved) = ("i".to_owned(), "i".to_owned());
    fixed("journal_approval_needed", RecordKind::Journal, &JournalEntry::ApprovalNeeded { invocation: needed, at: 5 });
    fixed("journal_approved", RecordKind::Journal, &JournalEntry::Approved { invocation: approved, at: 6 });
}

fn mark() -> HeadMark {
    HeadMark {
        revision: 12,
        history_revision: 11,
        born: 2,
        created_at: 40,
        title: Some("Title".into()),
        channel: Some("mail".into()),
        next_seq: 9,
        next_invocation: 8,
        next_run: 7,
        turns: 6,
        source_high_water: -1,
    }
}

#[test]
fn audit_rows() {
    fixed("audit_row", RecordKind::Audit, &AuditRow::new(&invocation(InvocationStatus::Interrupted), Some(77)));
    fixed(
        "audit_row_open",
        RecordKind::Audit,
        &AuditRow::new(&ToolInvocation { result: None, channel: None, ..invocation(InvocationStatus::Pending) }, None),
    );
}

fn owned_by(kind: u32, id: Option<&str>, auto: bool) -> StoredOwner {
    StoredOwner { kind, id: id.map(Into::into), auto, ..StoredOwner::default() }
}

#[test]
fn r22_r67_heads_with_owners() {
    let owners =
        [("conversation", 2, Some("conv_1"), false), ("response", 3, Some("resp_1"), false), ("auto", 3, None, true)];
    for (name, kind, id, auto) in owners {
        let mut session = SessionHead::new("s", 5);
        session.owner = owned_by(kind, id, auto);
        fixed(&format!("head_owner_{name}"), RecordKind::Head, &session);
    }
    let mut session = SessionHead::new("s", 5);
    session.owner = StoredOwner { fails_if_lost: true, ..owned_by(3, None, true) };
    fixed("head_owner_on_lost", RecordKind::Head, &session);
}

#[test]
fn r22_r67_fields_of_a_newer_build_are_kept_in_an_owner() {
    // {0: 2, 1: "conv_1", 50: "x"}
    let owner = b"\xa3\x00\x02\x01\x66conv_1\x18\x32\x61x";
    let read: StoredOwner = open_record(RecordKind::Head, &seal_payload(RecordKind::Head, owner)).unwrap();
    assert_eq!((read.kind, read.id.as_deref(), read.auto), (2, Some("conv_1"), false));
    let mut session = SessionHead::new("s", 5);
    session.owner = read;
    let bytes = seal_record(RecordKind::Head, &session);
    assert!(bytes.windows(owner.len()).any(|window| window == owner), "{bytes:?}");
    let again: SessionHead = open_record(RecordKind::Head, &bytes).unwrap();
    assert_eq!(again, session);
}
