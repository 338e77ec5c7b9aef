//! Checks of whole sessions: their separation, lists, audit rows and deletion.

use super::context::{StoreCheckContext, audit, batch, ensure, log, range, replacement, segment};
use crate::error::{Error, ErrorCode, Result};
use crate::store::{Appended, AuditQuery, Batch, MAX_KEY, Query, Record, Table};
use bytes::Bytes;
use std::cmp::Reverse;

/// Names that differ from another one only in case, normalization, length or by a separator, or that mean something to
/// a language or a database.
const SIMILAR_NAMES: &[&str] = &[
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
];

pub(super) async fn no_session_reaches_another(context: &StoreCheckContext) -> Result<()> {
    let long = "x".repeat(5_000);
    let longer = format!("{long}x");
    let names = [SIMILAR_NAMES, &[&long, &longer]].concat();
    for (at, name) in names.iter().enumerate() {
        let value = format!("only {at}");
        let row = audit(1, &value, "done", None, 1);
        let records = vec![log(0, value.as_bytes()), log(MAX_KEY, value.as_bytes()), row];
        context.written(&context.session(name), 0, batch(value.as_bytes(), records)).await?;
    }
    let prefix = context.session("");
    ensure!(
        context.keys(&prefix, Query::all(Table::Log)).await?.is_empty(),
        "the common prefix of all names has records"
    );
    // First all sessions exist. Then every third one is deleted, and the others are unchanged.
    expect_sessions(context, &names, &|_| false).await?;
    let is_deleted = |at: usize| at.is_multiple_of(3);
    for (_, name) in names.iter().enumerate().filter(|(at, _)| is_deleted(*at)) {
        context.store.delete_session(&context.session(name)).await?;
    }
    expect_sessions(context, &names, &is_deleted).await?;
    let mut listed: Vec<_> = context.listed(7, None).await?.into_iter().map(|row| row.id).collect();
    let mut want: Vec<_> =
        names.iter().enumerate().filter(|(at, _)| !is_deleted(*at)).map(|(_, name)| context.session(name)).collect();
    listed.sort();
    want.sort();
    ensure!(listed == want, "the list has {listed:?}");
    Ok(())
}

/// Fails unless each session has its own records, head and audit row, and a deleted one has nothing.
async fn expect_sessions(
    context: &StoreCheckContext,
    names: &[&str],
    is_deleted: &dyn Fn(usize) -> bool,
) -> Result<()> {
    for (at, name) in names.iter().enumerate() {
        let (session, value) = (context.session(name), format!("only {at}").into_bytes());
        let deleted = is_deleted(at);
        let records = if deleted { vec![] } else { vec![log(0, &value), log(MAX_KEY, &value)] };
        context.expect_log(&session, &records).await?;
        let head = context.store.head(&session).await?.map(|head| head.value);
        ensure!(head == (!deleted).then_some(Bytes::from(value)), "{name:?} has the head {head:?}");
        let rows = context.audited(AuditQuery { session: Some(session), ..AuditQuery::default() }).await?;
        let want: &[(String, u64)] = if deleted { &[] } else { &[((*name).to_owned(), 1)] };
        ensure!(rows == want, "{name:?} has the audit rows {rows:?}");
    }
    Ok(())
}

pub(super) async fn sessions_are_listed_once_each(context: &StoreCheckContext) -> Result<()> {
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

pub(super) async fn a_deleted_session_stays_deleted(context: &StoreCheckContext) -> Result<()> {
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
    context.expect_log(session, &[log(4, b"new")]).await?;
    ensure!(context.listed(10, None).await?.len() == 1, "a revived session is not listed");
    Ok(())
}

pub(super) async fn audit_rows_are_found(context: &StoreCheckContext) -> Result<()> {
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
            let got = context.audited_newest(AuditQuery { limit, ..query.clone() }).await?;
            let got: Vec<_> = got.iter().map(|(name, key)| (name.as_str(), *key)).collect();
            let mut newest = want.clone();
            newest.sort_by_key(|(name, key)| Reverse((*key, *name)));
            ensure!(got == newest, "{query:?} in pages of {limit} gave {got:?}, and should give {newest:?}");
        }
    }
    let one = context.store.invocations(&AuditQuery { session: x, limit: 1, ..any() }).await?;
    let row = one.items.first().map(|(_, record)| record);
    ensure!(row == Some(&audit(0, "search", "done", Some("web"), 0)), "a row came back as {row:?}");
    Ok(())
}

pub(super) async fn an_audit_row_replaced_is_found_anew(context: &StoreCheckContext) -> Result<()> {
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
