//! What is stored of runs: their journals, what their answers record, and snapshots.

use super::*;

#[test]
fn r16_r67_records_of_a_run_that_goes_on() {
    let call = ToolInvocation { stored_during_run: true, result: None, ..invocation(InvocationStatus::Pending) };
    let entries = vec![HistoryEntry::Invocation(call)];
    let record = LogRecord {
        operation: "run.0.9".into(),
        run: Some("run".into()),
        at: 44,
        mark: mark(),
        entries,
        run_continues: true,
        summaries: Vec::new(),
        annotations: Vec::new(),
        added_to: 0,
    };
    fixed("log_record_of_a_run_that_goes_on", RecordKind::Log, &record);
    for (name, persistence) in [("call", Persistence::Call), ("result", Persistence::Result)] {
        let provider = StoredProvider {
            dialect: Dialect::Gemini,
            url: "https://m".into(),
            params: json("{}"),
            stream: false,
            headers: Vec::new(),
            system_role: None,
            reasoning_field: None,
            no_stream_usage: false,
        };
        let start = RunStart {
            run: "r".into(),
            at: 1,
            provider,
            input: Vec::new(),
            persistence,
            calls: Vec::new(),
            base: None,
        };
        fixed(&format!("journal_began_in_mode_{name}"), RecordKind::Journal, &JournalEntry::Began(start.clone()));
        // The calls of a conversation that the application holds.
        let start = RunStart { calls: vec![invocation(InvocationStatus::Ok)], ..start };
        fixed(&format!("journal_began_by_a_caller_in_mode_{name}"), RecordKind::Journal, &JournalEntry::Began(start));
    }
}

#[test]
fn journal_marks() {
    let failed = Some(("model_error".into(), "refused".into()));
    fixed(
        "journal_mark",
        RecordKind::JournalMark,
        &JournalMark {
            run: "r".into(),
            epoch: 3,
            lease_until: 50,
            started_at: 41,
            failed,
            head: mark(),
            branch: BranchPath::default(),
        },
    );
    // Of a run whose branch was not born yet.
    let branch = BranchPath::default().forked_after(4, 9);
    let mark =
        JournalMark { run: "r".into(), epoch: 1, lease_until: 0, started_at: 41, failed: None, head: mark(), branch };
    fixed("journal_mark_of_a_fork", RecordKind::JournalMark, &mark);
}

#[test]
fn journal_entries() {
    let provider = StoredProvider {
        dialect: Dialect::OpenAiResponses,
        url: "https://x".into(),
        params: json("{\"model\": \"m\"}"),
        stream: true,
        headers: vec![("a".into(), "b".into())],
        system_role: Some(rethread::message::Role::Developer),
        reasoning_field: Some("drop".into()),
        no_stream_usage: true,
    };
    fixed(
        "journal_began",
        RecordKind::Journal,
        &JournalEntry::Began(RunStart {
            run: "r".into(),
            at: 1,
            provider,
            input: vec![plain(Role::User, MessageStatus::Complete, SourceKind::External)],
            persistence: Persistence::Run,
            calls: Vec::new(),
            base: None,
        }),
    );
    fixed(
        "journal_answered",
        RecordKind::Journal,
        &JournalEntry::Answered { message: message(), invocations: vec![invocation(InvocationStatus::Pending)] },
    );
    fixed("journal_started", RecordKind::Journal, &JournalEntry::Started { invocation: "i".into(), at: 5, attempt: 2 });
    fixed(
        "journal_finished",
        RecordKind::Journal,
        &JournalEntry::Finished(ResultEntry {
            invocation: "i".into(),
            status: InvocationStatus::Error,
            started_at: Some(1),
            finished_at: Some(2),
            freshness: None,
            result: None,
            ..ResultEntry::default()
        }),
    );
    fixed(
        "journal_redacted",
        RecordKind::Journal,
        &JournalEntry::Redacted { invocation: "i".into(), arguments: Some(Arguments::Value(json("{}"))) },
    );
    let pause = JournalEntry::Retrying { attempt: 2, not_before: 1_060_000, is_pick_up: false };
    fixed("journal_retrying", RecordKind::Journal, &pause);
    fixed("journal_partial", RecordKind::Journal, &JournalEntry::Partial(message()));
    fixed(
        "journal_withheld",
        RecordKind::Journal,
        &JournalEntry::Withheld { members: vec!["api_key".into(), "tools[0].authorization".into()] },
    );
}

#[test]
fn r18_records_of_answers_in_the_background() {
    let background = BackgroundAnswer {
        response: "resp_1".into(),
        call: 2,
        dialect: Dialect::OpenAiResponses,
        url: "https://x".into(),
        is_streamed: true,
        asked_at: 7,
        until: 9,
        pending: vec!["m".into()],
        kept_head: Some(KeptHead { instructions: 1, tools: 2, parameters: 0 }),
        prefix: Some(PrefixMark { instructions: 1, tools: 2, items: 3, ..PrefixMark::default() }),
        late_results: vec!["i".into()],
    };
    fixed("journal_background", RecordKind::Journal, &JournalEntry::Background(Some(Box::new(background))));
    fixed("journal_background_ended", RecordKind::Journal, &JournalEntry::Background(None));
    let pause = JournalEntry::Retrying { attempt: 2, not_before: 1_060_000, is_pick_up: true };
    fixed("journal_retrying_pick_up", RecordKind::Journal, &pause);
    fixed(
        "journal_healed",
        RecordKind::Journal,
        &JournalEntry::Healed { refused: vec!["m".into()], restarts_chain: false },
    );
    let entry = JournalEntry::Healed { refused: Vec::new(), restarts_chain: true };
    fixed("journal_chain_restarted", RecordKind::Journal, &entry);
}

#[test]
fn r71_records_of_what_a_run_sends_of_history() {
    let provider = StoredProvider {
        dialect: Dialect::Anthropic,
        url: "https://x".into(),
        params: json("{}"),
        stream: false,
        headers: Vec::new(),
        system_role: None,
        reasoning_field: None,
        no_stream_usage: false,
    };
    let (run, input, calls) = ("r".to_owned(), Vec::new(), Vec::new());
    let start =
        RunStart { run, at: 1, provider, input, persistence: Persistence::Run, calls, base: Some("m9".to_owned()) };
    fixed("journal_began_after", RecordKind::Journal, &JournalEntry::Began(start.clone()));
    let queued = RunStart { base: None, ..start };
    fixed("journal_queued", RecordKind::Journal, &JournalEntry::Queued(queued));
    let ranges = vec![
        SelectedRange { first: "m1".into(), last: "m5".into(), outcome: 1, ..SelectedRange::default() },
        SelectedRange {
            first: "m6".into(),
            last: "m6".into(),
            calls: vec![SelectedCall { invocation: "i1".into(), outcome: 5 + 8 + (1_000 << 4) }],
            ..SelectedRange::default()
        },
        SelectedRange { message: Some(message()), is_replacement: true, ..SelectedRange::default() },
    ];
    let selection = ReplaySelection { ranges, live_end: 1, handoffs: 2, is_reduced: true, known_results: 0 };
    fixed("journal_selected", RecordKind::Journal, &JournalEntry::Selected(selection.clone()));
    let selection = ReplaySelection { known_results: u64::MAX, ..selection };
    fixed("journal_selected_with_results", RecordKind::Journal, &JournalEntry::Selected(selection));
}

#[test]
fn journal_failures() {
    for (name, is_replay_safe) in [("journal_failed", false), ("journal_failed_replay_safe", true)] {
        let failed = JournalEntry::Failed { code: "model_error".into(), message: "no".into(), is_replay_safe };
        fixed(name, RecordKind::Journal, &failed);
    }
}

#[test]
fn r23_r67_records_of_answers_with_the_mark_of_a_service() {
    for (name, mark) in [
        (
            "conversation",
            ServiceMark {
                conversation: Some("conv_1".into()),
                chain_start: None,
                until: 300,
                pending: vec!["m9".into(), "i9".into()],
                kept_head: None,
                ends_chain: false,
            },
        ),
        ("refusing_thread", ServiceMark { until: 1, ends_chain: true, ..ServiceMark::default() }),
        ("response", ServiceMark { chain_start: Some("resp_0".into()), until: 1, ..ServiceMark::default() }),
        (
            "thread",
            ServiceMark {
                until: 3,
                kept_head: Some(KeptHead { instructions: 1 << 40, tools: 7, parameters: 0 }),
                ..ServiceMark::default()
            },
        ),
        ("chain", ServiceMark::default()),
    ] {
        let mut message = message();
        message.answer.as_mut().unwrap().service_mark = Some(Box::new(mark));
        fixed(
            &format!("journal_answered_by_{name}"),
            RecordKind::Journal,
            &JournalEntry::Answered { message, invocations: Vec::new() },
        );
    }
    // {2: 7, 50: "x"}: a field of a newer build is skipped. The record that contains it is never encoded again.
    let mark = b"\xa2\x02\x07\x18\x32\x61x";
    let read: ServiceMark = open_record(RecordKind::Log, &seal_payload(RecordKind::Log, mark)).unwrap();
    assert_eq!(read, ServiceMark { until: 7, ..ServiceMark::default() });
}

#[test]
fn r73_r67_records_of_texts_with_their_phase() {
    let mut message = message();
    for (part, phase) in message.parts.iter_mut().zip([Phase::Commentary, Phase::FinalAnswer]) {
        part.phase = Some(phase);
    }
    let entry = JournalEntry::Answered { message, invocations: Vec::new() };
    fixed("journal_answered_with_phases", RecordKind::Journal, &entry);
}

#[test]
fn r70_r67_records_of_answers_with_their_maker_and_prefix() {
    let maker = AnswerMaker { host: Some("api.example".into()), model: Some("m".into()) };
    let prefix = PrefixMark { instructions: u64::MAX, tools: 2, items: 1 << 40, is_filtered: true, has_provided: true };
    for (name, maker, prefix) in [("maker", AnswerMaker::default(), None), ("maker_and_prefix", maker, Some(prefix))] {
        let mut message = message();
        let answer = message.answer.as_mut().unwrap();
        (answer.maker, answer.prefix) = (Some(maker), prefix);
        fixed(
            &format!("journal_answered_with_{name}"),
            RecordKind::Journal,
            &JournalEntry::Answered { message, invocations: Vec::new() },
        );
    }
    let mut message = message();
    message.answer.as_mut().unwrap().known_results = u64::MAX;
    let entry = JournalEntry::Answered { message, invocations: Vec::new() };
    fixed("journal_answered_with_known_results", RecordKind::Journal, &entry);
    let mut message = super::message();
    let answer = message.answer.as_mut().unwrap();
    answer.continuation = Some(Box::new(Continuation { token: "token".into(), mark: answer.service_mark.take() }));
    let entry = JournalEntry::Answered { message, invocations: Vec::new() };
    fixed("journal_answered_with_token", RecordKind::Journal, &entry);
    // {2: 7, 50: "x"}: a field of a newer build is skipped.
    let mark = b"\xa2\x02\x07\x18\x32\x61x";
    let read: PrefixMark = open_record(RecordKind::Log, &seal_payload(RecordKind::Log, mark)).unwrap();
    assert_eq!(read, PrefixMark { items: 7, ..PrefixMark::default() });
}

#[test]
fn r31_r67_records_of_handoffs() {
    fixed("journal_handed_off", RecordKind::Journal, &JournalEntry::HandedOff { agent: "billing".into(), at: 7 });
    let mut message = message();
    message.answer.as_mut().unwrap().agent = Some("billing".into());
    fixed(
        "journal_answered_by_agent",
        RecordKind::Journal,
        &JournalEntry::Answered { message, invocations: Vec::new() },
    );
}

#[test]
fn r28_r67_records_of_snapshots() {
    fixed("journal_completed", RecordKind::Journal, &JournalEntry::Completed(Some(message())));
    fixed("journal_completed_empty", RecordKind::Journal, &JournalEntry::Completed(None));
    let snapshot = RunSnapshot {
        session: "s".into(),
        run: "r".into(),
        journal: vec![
            JournalEntry::Retrying { attempt: 2, not_before: 1_060_000, is_pick_up: false },
            JournalEntry::Completed(Some(message())),
        ],
        base: Some("m".into()),
        history: vec![
            HistoryEntry::Message(message()),
            HistoryEntry::Invocation(invocation(InvocationStatus::Pending)),
        ],
        highest_source: Some(9),
        origin: None,
    };
    fixed("snapshot", RecordKind::Snapshot, &snapshot);
    let origin = Some(SnapshotOrigin { born: 1, created_at: 1_000_000, next_run: 3, number: Some(2) });
    fixed("snapshot_with_origin", RecordKind::Snapshot, &RunSnapshot { origin, ..snapshot });
    let head = SessionHead { resumed_runs: vec!["r".into()], ..SessionHead::new("s", 5) };
    fixed("head_with_resumed_runs", RecordKind::Head, &head);
    let head = SessionHead { refused: vec!["m".into()], ..SessionHead::new("s", 5) };
    fixed("head_with_refused", RecordKind::Head, &head);
    let range = SelectedRange { first: "m1".into(), last: "m3".into(), outcome: 1, ..SelectedRange::default() };
    let record = SentRequestRecord {
        at: 6,
        identity: RequestIdentity { dialect: 1, host: 2, model: 3, instructions: 4, tools: 5 },
        base: "m3".into(),
        run: Some("r".into()),
        live_end: Some("m4".into()),
        compaction: 5,
        hidden_open_calls: 1,
        ranges: vec![range],
        is_reduced: true,
        has_no_ranges: false,
        cache_life: 0,
        known_results: 0,
    };
    let cached = SentRequest {
        record: SentRequestRecord { cache_life: 9, known_results: u64::MAX, ..record.clone() },
        report: Vec::new(),
    };
    assert_eq!(SentRequest::from_bytes(&cached.to_bytes().unwrap()), Some(cached));
    let sent = SentRequest { record, report: Vec::new() };
    let bytes = sent.to_bytes().unwrap();
    assert_eq!(SentRequest::from_bytes(&bytes), Some(sent));
    let head = SessionHead { last_request: Some(bytes.into()), ..SessionHead::new("s", 5) };
    fixed("head_with_last_request", RecordKind::Head, &head);
    let head = SessionHead { has_dropped: true, ..SessionHead::new("s", 5) };
    fixed("head_with_dropped", RecordKind::Head, &head);
}

#[test]
fn branches() {
    let branch = BranchPath { number: 2, ..BranchPath::default().forked_after(4, 9) };
    let runs = vec![RunEntry { id: "r".into(), branch: branch.clone(), ..RunEntry::default() }];
    let head = SessionHead { branch: branch.clone(), branch_count: 2, runs, ..SessionHead::new("s", 5) };
    fixed("head_with_branches", RecordKind::Head, &head);
    let state = BranchState {
        path: branch,
        next_seq: 11,
        next_record: 3,
        turns: 5,
        log_bytes: 900,
        merged_until: 2,
        has_deferred_compaction: true,
        last_request: Some(vec![1, 2].into()),
        ..BranchState::default()
    };
    let row = BranchRow {
        state: state.clone(),
        created_at: 6,
        forked_after: Some("m8".into()),
        beside: Some("m9".into()),
        first: Some("n9".into()),
        operation: "op".into(),
        adopted: None,
    };
    fixed("branch", RecordKind::Branch, &row);
    let renamed = vec![RenamedId { original: "m9".into(), id: "m9-2".into() }];
    let adopted = Some(AdoptedSide { side: "1f-w".into(), renamed });
    fixed("branch_that_adopted_a_side", RecordKind::Branch, &BranchRow { adopted, ..row.clone() });
    let row = BranchRow { state: BranchState { erased: 3, chain_cut: 8, ..state }, ..row };
    fixed("branch_with_erased_messages", RecordKind::Branch, &row);
    let erasing = UnfinishedErasure {
        pending: vec!["m3".into()],
        messages: vec!["m1".into(), "m2".into()],
        invocations: vec!["i1".into()],
        first_seq: 4,
    };
    let head = SessionHead { erasures: 2, erasing, erased: 3, chain_cut: 8, ..SessionHead::new("s", 5) };
    fixed("head_with_erasures", RecordKind::Head, &head);
}
