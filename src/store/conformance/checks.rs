//! The checks themselves.

use super::{StoreCheck, StoreCheckContext, appends, audit, batch, ensure, log, range, replacement, segment, told};
use crate::error::{Code, Error, Result};
use crate::store::{Appended, AuditQuery, Batch, MAX_KEY, Query, Record, StoredHead, Table};
use bytes::Bytes;

/// Every check by its name.
pub const CHECKS: &[(&str, StoreCheck)] = &[
    ("an_absent_session_is_empty", |context| Box::pin(an_absent_session_is_empty(context))),
    ("revisions_count_from_one", |context| Box::pin(revisions_count_from_one(context))),
    ("a_conflict_changes_nothing", |context| Box::pin(a_conflict_changes_nothing(context))),
    ("a_batch_puts_and_removes_at_once", |context| Box::pin(a_batch_puts_and_removes_at_once(context))),
    ("a_replacement_replaces", |context| Box::pin(appends::a_replacement_replaces(context))),
    ("an_append_overwrites_no_record", |context| Box::pin(appends::an_append_overwrites_no_record(context))),
    ("a_revision_may_jump", |context| Box::pin(appends::a_revision_may_jump(context))),
    ("tables_are_apart", |context| Box::pin(tables_are_apart(context))),
    ("ranges_and_limits_hold", |context| Box::pin(ranges_and_limits_hold(context))),
    ("segments_are_found_by_what_they_span", |context| Box::pin(segments_are_found_by_what_they_span(context))),
    ("segments_replace_and_are_replaced", |context| Box::pin(segments_replace_and_are_replaced(context))),
    ("no_session_reaches_another", |context| Box::pin(no_session_reaches_another(context))),
    ("sessions_are_listed_once_each", |context| Box::pin(sessions_are_listed_once_each(context))),
    ("audit_rows_are_found", |context| Box::pin(audit_rows_are_found(context))),
    ("an_audit_row_replaced_is_found_anew", |context| Box::pin(an_audit_row_replaced_is_found_anew(context))),
    ("a_deleted_session_stays_deleted", |context| Box::pin(a_deleted_session_stays_deleted(context))),
    ("a_repeated_operation_is_done_once", |context| Box::pin(appends::a_repeated_operation_is_done_once(context))),
    ("two_writers_lose_nothing", |context| Box::pin(appends::two_writers_lose_nothing(context))),
    ("bytes_come_back_as_they_were", |context| Box::pin(bytes_come_back_as_they_were(context))),
    ("a_large_value_is_kept", |context| Box::pin(a_large_value_is_kept(context))),
    ("the_largest_keys_are_kept", |context| Box::pin(the_largest_keys_are_kept(context))),
    ("what_cannot_be_kept_is_refused", |context| Box::pin(what_cannot_be_kept_is_refused(context))),
    ("pages_meet_where_the_records_end", |context| Box::pin(pages_meet_where_the_records_end(context))),
    ("a_thousand_records_are_read", |context| Box::pin(a_thousand_records_are_read(context))),
];

async fn an_absent_session_is_empty(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("absent");
    ensure!(context.store.head(session).await?.is_none(), "an absent session has a head");
    for table in [Table::Log, Table::ToolInvocations, Table::Runs] {
        ensure!(
            context.store.read(session, Query::all(table)).await?.is_empty(),
            "an absent session has records in {table:?}"
        );
    }
    context.store.delete_session(session).await?;
    ensure!(
        context.append(session, 7, batch(b"h", vec![])).await? == Appended::Conflict(0),
        "an append at 7 to an absent session was no conflict at 0"
    );
    ensure!(context.store.head(session).await?.is_none(), "a refused append made a session");
    context.written(session, 0, batch(b"h", vec![])).await
}

async fn revisions_count_from_one(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    for revision in 0..5_u8 {
        let head = [b'h', revision];
        context.written(session, revision.into(), batch(&head, vec![log(revision.into(), &head)])).await?;
        for store in [&context.store, &context.other] {
            let got = store.head(session).await?;
            let want = StoredHead { revision: u64::from(revision).saturating_add(1), value: head.to_vec().into() };
            ensure!(got.as_ref() == Some(&want), "the head is {got:?} after an append, and should be {want:?}");
        }
    }
    Ok(())
}

async fn a_conflict_changes_nothing(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    let kept = [log(1, b"one"), log(2, b"two")];
    context.written(session, 0, batch(b"first", kept.to_vec())).await?;
    for wrong in [0, 2, 3, MAX_KEY] {
        let torn = Batch {
            head: b"wrong".as_slice().into(),
            channel: Some("wrong".into()),
            put: vec![log(1, b"wrong"), log(3, b"wrong")],
            remove: vec![(Table::Log, 2)],
            ..Batch::default()
        };
        let got = context.append(session, wrong, torn).await?;
        ensure!(got == Appended::Conflict(1), "an append at {wrong} gave {got:?}, the head is at 1");
    }
    context.holds(session, &kept).await?;
    let head = context.other.head(session).await?;
    ensure!(
        head == Some(StoredHead { revision: 1, value: b"first".as_slice().into() }),
        "conflicts changed the head to {head:?}"
    );
    ensure!(context.listed(100, Some("wrong")).await?.is_empty(), "a conflict changed the channel");
    Ok(())
}

async fn a_batch_puts_and_removes_at_once(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    context.written(session, 0, batch(b"1", (0..10).map(|key| log(key, &[0])).collect())).await?;
    // Removals come first, so that a record may be removed and written in one batch; absent ones are no error.
    let remove = [7, 1, 2, 3, 99, 9].map(|key| (Table::Log, key)).to_vec();
    let runs = Record { table: Table::Runs, ..log(3, b"run") };
    let second = Batch { remove, ..batch(b"2", vec![log(3, &[3]), log(12, &[12]), runs.clone()]) };
    context.written(session, 1, second).await?;
    let mut want: Vec<_> = [0, 3, 4, 5, 6, 8, 12].map(|key| log(key, &[0])).to_vec();
    for record in &mut want {
        if matches!(record.key, 3 | 12) {
            record.value = vec![u8::try_from(record.key).unwrap_or(0)].into();
        }
    }
    context.holds(session, &want).await?;
    let got = context.store.read(session, Query::all(Table::Runs)).await?;
    ensure!(got == [runs], "the batch's other table has {}", told(&got));
    Ok(())
}

async fn tables_are_apart(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    let tables = [Table::Log, Table::ToolInvocations, Table::Runs];
    let record = |table: Table| Record { table, ..log(1, format!("{table:?}").as_bytes()) };
    context.written(session, 0, batch(b"1", tables.map(record).to_vec())).await?;
    context.written(session, 1, Batch { remove: vec![(Table::Runs, 1)], ..batch(b"2", vec![]) }).await?;
    for table in tables {
        let got = context.store.read(session, Query::all(table)).await?;
        let want = if table == Table::Runs { vec![] } else { vec![record(table)] };
        ensure!(got == want, "{table:?} has {}", told(&got));
    }
    Ok(())
}

async fn ranges_and_limits_hold(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    context
        .written(session, 0, batch(b"1", (0..30).map(|at: u64| log(at.saturating_mul(10), &[7; 100])).collect()))
        .await?;
    let limited = |from, to, reverse, limit_bytes| Query { table: Table::Log, from, to, reverse, limit_bytes };
    let cases = [
        (limited(0, 0, false, u64::MAX), vec![0]),
        (limited(1, 9, false, u64::MAX), vec![]),
        (limited(20, 40, false, u64::MAX), vec![20, 30, 40]),
        (limited(20, 40, true, u64::MAX), vec![40, 30, 20]),
        (limited(271, MAX_KEY, true, u64::MAX), vec![290, 280]),
        (limited(40, 20, false, u64::MAX), vec![]),
        (limited(0, MAX_KEY, false, 0), vec![0]),
        (limited(1, 9, false, 0), vec![]),
        (limited(0, MAX_KEY, false, 1), vec![0]),
        (limited(0, MAX_KEY, false, 100), vec![0]),
        (limited(0, MAX_KEY, false, 101), vec![0, 10]),
        (limited(0, MAX_KEY, true, 300), vec![290, 280, 270]),
        (limited(15, 35, true, 1000), vec![30, 20]),
    ];
    for (query, want) in cases {
        let got = context.keys(session, query).await?;
        ensure!(got == want, "{query:?} gave {got:?}, and should give {want:?}");
    }
    Ok(())
}

async fn segments_are_found_by_what_they_span(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    // 0 to 9, 10 to 14, two ordinary ones, 20 to 29; and one that was left behind inside the first.
    let all = [
        segment(0, 9, b"a"),
        log(4, b"left"),
        segment(10, 14, b"b"),
        log(15, b"c"),
        log(16, b"d"),
        segment(20, 29, b"e"),
    ];
    context.written(session, 0, batch(b"1", all.to_vec())).await?;
    context.holds(session, &all).await?;
    let cases: [(u64, u64, &[u64]); 10] = [
        (0, 0, &[0]),
        (5, 5, &[0]),
        (4, 9, &[0, 4]),
        (9, 10, &[0, 10]),
        (14, 15, &[10, 15]),
        (16, 16, &[16]),
        (17, 19, &[]),
        (17, 25, &[20]),
        (29, MAX_KEY, &[20]),
        (30, MAX_KEY, &[]),
    ];
    for (from, to, want) in cases {
        let mut got = context.keys(session, range(from, to)).await?;
        ensure!(got == want, "{from}..={to} gave {got:?}, and should give {want:?}");
        got = context.keys(session, Query { reverse: true, ..range(from, to) }).await?;
        got.reverse();
        ensure!(got == want, "{from}..={to} in reverse gave {got:?} (turned), and should give {want:?}");
    }
    let tail = context.keys(session, Query { reverse: true, limit_bytes: 2, ..range(12, 16) }).await?;
    ensure!(tail == [16, 15], "two bytes from the end gave {tail:?}");
    let first = context.keys(session, Query { limit_bytes: 1, ..range(12, 16) }).await?;
    ensure!(first == [10], "one byte from within a segment gave {first:?}");
    Ok(())
}

async fn segments_replace_and_are_replaced(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    context.written(session, 0, batch(b"1", (0..8).map(|key| log(key, b"row")).collect())).await?;
    let gather = |last: u64, value: &[u8]| Batch {
        remove: (0..=last).map(|key| (Table::Log, key)).collect(),
        ..batch(b"2", vec![segment(0, last, value)])
    };
    context.written(session, 1, gather(3, b"four")).await?;
    context
        .holds(session, &[segment(0, 3, b"four"), log(4, b"row"), log(5, b"row"), log(6, b"row"), log(7, b"row")])
        .await?;
    context.written(session, 2, gather(6, b"seven")).await?;
    context.holds(session, &[segment(0, 6, b"seven"), log(7, b"row")]).await?;
    context.written(session, 3, replacement(b"3", vec![segment(0, 2, b"shorter")])).await?;
    ensure!(
        context.keys(session, range(3, 6)).await?.is_empty(),
        "a segment that was replaced still spans what it spanned"
    );
    context.written(session, 4, replacement(b"4", vec![log(0, b"row again")])).await?;
    context.holds(session, &[log(0, b"row again"), log(7, b"row")]).await
}

async fn no_session_reaches_another(context: &StoreCheckContext) -> Result<()> {
    let long = "x".repeat(5_000);
    let longer = format!("{long}x");
    let names = [
        "a",
        "aa",
        "A",
        "a\u{0}",
        "a\u{0}b",
        "a\u{ffff}",
        "a\u{10ffff}",
        "a/",
        "a/b",
        "/",
        "//",
        "a:1",
        "1:a",
        "a,1",
        "[\"a\",1]",
        "a%00",
        "a b",
        " a",
        "a ",
        "é",
        "e\u{301}",
        "日本語",
        "🧵",
        "__proto__",
        "constructor",
        "toString",
        "null",
        "undefined",
        "0",
        "1",
        "-1",
        "../a",
        "a'; DROP TABLE log; --",
        "*",
        "?",
        "\n",
        "\u{feff}a",
        &long,
        &longer,
    ];
    for (at, name) in names.iter().enumerate() {
        let value = format!("only {at}");
        let row = audit(1, &value, "done", None, 1);
        context
            .written(
                &context.session(name),
                0,
                batch(value.as_bytes(), vec![log(0, value.as_bytes()), log(MAX_KEY, value.as_bytes()), row]),
            )
            .await?;
    }
    let bare = context.session("");
    ensure!(
        context.keys(&bare, Query::all(Table::Log)).await?.is_empty(),
        "the common prefix of all names has records"
    );
    // First all are there; then every third goes, and the others keep what is theirs.
    for every in [0, 3] {
        let is_gone = |at: usize| every != 0 && at.is_multiple_of(every);
        for (_, name) in names.iter().enumerate().filter(|(at, _)| is_gone(*at)) {
            context.store.delete_session(&context.session(name)).await?;
        }
        for (at, name) in names.iter().enumerate() {
            let (session, value) = (context.session(name), format!("only {at}").into_bytes());
            let gone = is_gone(at);
            context.holds(&session, &if gone { vec![] } else { vec![log(0, &value), log(MAX_KEY, &value)] }).await?;
            let head = context.store.head(&session).await?.map(|head| head.value);
            ensure!(head == (!gone).then_some(Bytes::from(value)), "{name:?} has the head {head:?}");
            let rows = context.audited(AuditQuery { session: Some(session), ..AuditQuery::default() }).await?;
            let want: &[(String, u64)] = if gone { &[] } else { &[((*name).to_owned(), 1)] };
            ensure!(rows == want, "{name:?} has the audit rows {rows:?}");
        }
    }
    let mut listed: Vec<_> = context.listed(7, None).await?.into_iter().map(|row| row.id).collect();
    let mut want: Vec<_> =
        names.iter().enumerate().filter(|(at, _)| at % 3 != 0).map(|(_, name)| context.session(name)).collect();
    listed.sort();
    want.sort();
    ensure!(listed == want, "the list has {listed:?}");
    Ok(())
}

async fn sessions_are_listed_once_each(context: &StoreCheckContext) -> Result<()> {
    let names: Vec<_> = (100..125).map(|at| context.session(&at.to_string())).collect();
    for (at, name) in names.iter().enumerate() {
        let channel = (at % 2 == 0).then(|| format!("{}even", context.session("")));
        context.written(name, 0, Batch { channel, ..batch(name.as_bytes(), vec![]) }).await?;
    }
    for limit in [1, 7, 25, 1000] {
        let rows = context.listed(limit, None).await?;
        let ids: Vec<_> = rows.iter().map(|row| row.id.clone()).collect();
        ensure!(ids == names, "pages of {limit} gave {ids:?}");
        ensure!(
            rows.iter().all(|row| row.head.revision == 1 && row.head.value == row.id.as_bytes()),
            "a listed head is not the session's"
        );
    }
    let even = context.session("even");
    ensure!(context.listed(3, Some(&even)).await?.len() == 13, "the channel's sessions are not the 13 that have it");
    ensure!(context.listed(3, Some("no such channel")).await?.is_empty(), "a channel without sessions has some");
    ensure!(
        context.store.sessions(None, 0, Some(&even)).await?.items.len() == 13,
        "a list without a limit is not a page"
    );
    // A session may leave its channel.
    context.written(&context.session("100"), 1, batch(b"moved", vec![])).await?;
    ensure!(context.listed(3, Some(&even)).await?.len() == 12, "a session stayed in the channel that it left");
    Ok(())
}

async fn audit_rows_are_found(context: &StoreCheckContext) -> Result<()> {
    let (x, y) = (Some(context.session("x")), Some(context.session("y")));
    let put = |first: u64, channel: Option<&str>| {
        let tools = ["search", "search", "pay", "read", "pay"];
        let rows = tools.iter().zip(first..).map(|(tool, key)| {
            audit(key, tool, if key % 2 == 0 { "done" } else { "failed" }, channel, key.saturating_mul(1000))
        });
        batch(b"h", rows.chain([log(1, b"no row")]).collect())
    };
    context.written(&context.session("x"), 0, put(0, Some("web"))).await?;
    context.written(&context.session("y"), 0, put(3, None)).await?;
    let any = AuditQuery::default;
    let cases: Vec<(AuditQuery, Vec<(&str, u64)>)> = vec![
        (
            any(),
            vec![("x", 0), ("x", 1), ("x", 2), ("x", 3), ("x", 4), ("y", 3), ("y", 4), ("y", 5), ("y", 6), ("y", 7)],
        ),
        (AuditQuery { tool: Some("pay".into()), ..any() }, vec![("x", 2), ("x", 4), ("y", 5), ("y", 7)]),
        (AuditQuery { tool: Some("pa".into()), ..any() }, vec![]),
        (AuditQuery { status: Some("failed".into()), ..any() }, vec![("x", 1), ("x", 3), ("y", 3), ("y", 5), ("y", 7)]),
        (AuditQuery { channel: Some("web".into()), tool: Some("search".into()), ..any() }, vec![("x", 0), ("x", 1)]),
        (AuditQuery { session: y.clone(), tool: Some("pay".into()), ..any() }, vec![("y", 5), ("y", 7)]),
        (
            AuditQuery { session: x.clone(), since: Some(1000), until: Some(3000), ..any() },
            vec![("x", 1), ("x", 2), ("x", 3)],
        ),
        (AuditQuery { since: Some(6000), ..any() }, vec![("y", 6), ("y", 7)]),
        (AuditQuery { until: Some(0), ..any() }, vec![("x", 0)]),
        (AuditQuery { session: Some(context.session("")), ..any() }, vec![]),
    ];
    for (query, want) in cases {
        for limit in [1, 2, 3, 5, 0] {
            let got = context.audited(AuditQuery { limit, ..query.clone() }).await?;
            let got: Vec<_> = got.iter().map(|(name, key)| (name.as_str(), *key)).collect();
            ensure!(got == want, "{query:?} in pages of {limit} gave {got:?}, and should give {want:?}");
        }
    }
    let one = context.store.invocations(&AuditQuery { session: x, limit: 1, ..any() }).await?;
    let row = one.items.first().map(|(_, record)| record);
    ensure!(row == Some(&audit(0, "search", "done", Some("web"), 0)), "a row came back as {row:?}");
    Ok(())
}

async fn an_audit_row_replaced_is_found_anew(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    context.written(session, 0, batch(b"1", vec![audit(1, "read", "running", Some("old"), 10)])).await?;
    context.written(session, 1, replacement(b"2", vec![audit(1, "read", "done", Some("new"), 20)])).await?;
    let any = || AuditQuery { session: Some(session.clone()), ..AuditQuery::default() };
    let stale = [
        AuditQuery { status: Some("running".into()), ..any() },
        AuditQuery { channel: Some("old".into()), ..any() },
        AuditQuery { until: Some(19), ..any() },
    ];
    for query in stale {
        ensure!(
            context.audited(query.clone()).await?.is_empty(),
            "a row that was replaced is still found by {query:?}"
        );
    }
    let fresh = context
        .audited(AuditQuery { status: Some("done".into()), channel: Some("new".into()), since: Some(20), ..any() })
        .await?;
    ensure!(fresh.len() == 1, "the new row is found {} times", fresh.len());
    context.written(session, 2, Batch { remove: vec![(Table::ToolInvocations, 1)], ..batch(b"3", vec![]) }).await?;
    ensure!(context.audited(any()).await?.is_empty(), "a removed row is still found");
    Ok(())
}

async fn a_deleted_session_stays_deleted(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    let full = || Batch {
        channel: Some(context.session("channel")),
        ..batch(
            b"h",
            vec![
                log(1, b"l"),
                segment(2, 9, b"m"),
                audit(1, "t", "done", None, 1),
                Record { table: Table::Runs, ..log(1, b"r") },
            ],
        )
    };
    context.written(session, 0, full()).await?;
    context.written(session, 1, batch(b"h", vec![log(10, b"n")])).await?;
    context.store.delete_session(session).await?;
    context.store.delete_session(session).await?;
    for table in [Table::Log, Table::ToolInvocations, Table::Runs] {
        ensure!(
            context.other.read(session, Query::all(table)).await?.is_empty(),
            "a deleted session has records in {table:?}"
        );
    }
    ensure!(context.keys(session, range(5, 5)).await?.is_empty(), "a deleted session has a segment");
    ensure!(context.audited(AuditQuery::default()).await?.is_empty(), "a deleted session has audit rows");
    ensure!(context.other.head(session).await?.is_none(), "a deleted session has a head");
    ensure!(context.listed(10, None).await?.is_empty(), "a deleted session is listed");
    ensure!(
        context.listed(10, Some(&context.session("channel"))).await?.is_empty(),
        "a deleted session is listed by its channel"
    );
    for stale in [0, 1, 2] {
        let got = context.append(session, stale, full()).await?;
        ensure!(
            got == Appended::Conflict(3),
            "a stale append at {stale} gave {got:?}; the tombstone is at 3, once deleted twice"
        );
    }
    ensure!(context.store.head(session).await?.is_none(), "a stale append brought the session back");
    context.written(session, 3, batch(b"again", vec![log(4, b"new")])).await?;
    context.holds(session, &[log(4, b"new")]).await?;
    ensure!(context.listed(10, None).await?.len() == 1, "a revived session is not listed");
    Ok(())
}

async fn bytes_come_back_as_they_were(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    let every: Vec<u8> = (0..=255).collect();
    let zeros = vec![0; 1000];
    let records = [
        log(0, &every),
        log(1, b""),
        log(2, &zeros),
        segment(3, 8, &every),
        log(9, "\u{feff}\u{0}\u{10ffff}".as_bytes()),
    ];
    context.written(session, 0, batch(&every, records.to_vec())).await?;
    context.holds(session, &records).await?;
    let head = context.other.head(session).await?.map(|head| head.value);
    ensure!(head.as_ref() == Some(&Bytes::from(every.clone())), "a head of all bytes came back as {head:?}");
    context.written(session, 1, batch(b"", vec![])).await?;
    let head = context.other.head(session).await?.map(|head| head.value);
    ensure!(head.as_deref() == Some(b""), "an empty head came back as {head:?}");
    Ok(())
}

async fn a_large_value_is_kept(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    let wanted = usize::try_from(context.store.capabilities().max_value_bytes.min(5_000_000)).unwrap_or(usize::MAX);
    let large: Vec<u8> = (0..wanted).map(|at| u8::try_from(at % 251).unwrap_or(0)).collect();
    context.written(session, 0, batch(b"h", vec![log(0, &large), log(1, b"small")])).await?;
    context.holds(session, &[log(0, &large), log(1, b"small")]).await
}

async fn the_largest_keys_are_kept(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    let keys = [0, 9, 10, 255, 256, 65_536, 1 << 31, 1 << 32, MAX_KEY.saturating_sub(1), MAX_KEY];
    let records = keys.map(|key| log(key, &key.to_le_bytes()));
    context.written(session, 0, batch(b"h", records.to_vec())).await?;
    context.holds(session, &records).await?;
    let top = context.keys(session, range(MAX_KEY, MAX_KEY)).await?;
    ensure!(top == [MAX_KEY], "the largest key alone gave {top:?}");
    let beyond = context.keys(session, range(0, u64::MAX)).await?;
    ensure!(beyond == keys, "a range up to the largest number gave {beyond:?}");
    Ok(())
}

async fn what_cannot_be_kept_is_refused(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    for wrong in
        [log(MAX_KEY.saturating_add(1), b"v"), segment(5, 4, b"v"), segment(0, MAX_KEY.saturating_add(1), b"v")]
    {
        let got = context.append(session, 0, batch(b"h", vec![log(0, b"v"), wrong.clone()])).await;
        ensure!(got.as_ref().is_err_and(|error| error.code == Code::InvalidInput), "{} gave {got:?}", told(&[wrong]));
    }
    let unnamed = context.store.append(session, 0, batch(b"h", vec![]), "").await;
    ensure!(unnamed.is_err_and(|error| error.code == Code::InvalidInput), "an append without an operation was taken");
    for cursor in ["", "x", "x:y"] {
        let got = context.store.invocations(&AuditQuery { cursor: Some(cursor.into()), ..AuditQuery::default() }).await;
        ensure!(got.is_err(), "the cursor {cursor:?} gave rows instead of an error");
    }
    ensure!(context.store.head(session).await?.is_none(), "a refused append left a session");
    context.holds(session, &[]).await
}

async fn a_thousand_records_are_read(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    let records: Vec<_> =
        (0..1000).map(|key: u64| log(key, &vec![u8::try_from(key % 256).unwrap_or(0); 1024])).collect();
    context.written(session, 0, batch(b"h", records.clone())).await?;
    context.holds(session, &records).await?;
    let mut back = context.store.read(session, Query { reverse: true, ..Query::all(Table::Log) }).await?;
    back.reverse();
    ensure!(back == records, "a thousand records in reverse are {}", told(&back));
    let tail = context.keys(session, Query { reverse: true, limit_bytes: 50 * 1024, ..Query::all(Table::Log) }).await?;
    ensure!(tail.iter().copied().eq((950..1000).rev()), "the last fifty are {tail:?}");
    Ok(())
}

async fn pages_meet_where_the_records_end(context: &StoreCheckContext) -> Result<()> {
    // Sizes at and about which stores page; each with a limit that is reached nowhere, and one that is at the last record.
    for count in [1_u64, 15, 16, 17, 63, 64, 65, 128] {
        let session = &context.session(&count.to_string());
        let row = |key| audit(key, "t", "done", None, 1);
        context
            .written(session, 0, batch(b"h", (0..count).flat_map(|key| [log(key, &[1; 10]), row(key)]).collect()))
            .await?;
        for limit_bytes in [u64::MAX, count.saturating_mul(10), count.saturating_mul(10).saturating_sub(9)] {
            for reverse in [false, true] {
                for (from, to) in [(0, MAX_KEY), (0, count.saturating_sub(1))] {
                    let mut got =
                        context.keys(session, Query { table: Table::Log, from, to, reverse, limit_bytes }).await?;
                    if reverse {
                        got.reverse();
                    }
                    ensure!(
                        got.iter().copied().eq(0..count),
                        "{count} records, up to {limit_bytes} bytes, reverse {reverse}: {got:?}"
                    );
                }
            }
        }
        let rows =
            context.audited(AuditQuery { session: Some(session.clone()), limit: 16, ..AuditQuery::default() }).await?;
        ensure!(rows.iter().map(|(_, key)| *key).eq(0..count), "{count} audit rows: {rows:?}");
    }
    Ok(())
}
