//! The list of all checks, and those of single records, heads and batches.

use super::context::{StoreCheck, StoreCheckContext, batch, ensure, log, segment, summary};
use super::{appends, audit_pages, branches, damage, recency, segments, sessions};
use crate::error::{Error, ErrorCode, Result};
use crate::store::{Appended, AuditQuery, Batch, MAX_KEY, Query, Record, StoredHead, Table};
use bytes::Bytes;

/// Every check, with its name.
pub const CHECKS: &[(&str, StoreCheck)] = &[
    ("an_absent_session_is_empty", |context| Box::pin(an_absent_session_is_empty(context))),
    ("revisions_count_from_one", |context| Box::pin(revisions_count_from_one(context))),
    ("a_conflict_changes_nothing", |context| Box::pin(a_conflict_changes_nothing(context))),
    ("a_batch_puts_and_removes_at_once", |context| Box::pin(a_batch_puts_and_removes_at_once(context))),
    ("a_replacement_replaces", |context| Box::pin(appends::a_replacement_replaces(context))),
    ("an_append_overwrites_no_record", |context| Box::pin(appends::an_append_overwrites_no_record(context))),
    ("a_revision_may_jump", |context| Box::pin(appends::a_revision_may_jump(context))),
    ("tables_are_apart", |context| Box::pin(tables_are_apart(context))),
    ("ranges_and_limits_hold", |context| Box::pin(segments::ranges_and_limits_hold(context))),
    ("segments_are_found_by_what_they_span", |context| {
        Box::pin(segments::segments_are_found_by_what_they_span(context))
    }),
    ("segments_replace_and_are_replaced", |context| Box::pin(segments::segments_replace_and_are_replaced(context))),
    ("log_records_are_found_by_their_keys", |context| Box::pin(segments::log_records_are_found_by_their_keys(context))),
    ("a_reader_misses_nothing_while_segments_are_made", |context| {
        Box::pin(segments::a_reader_misses_nothing_while_segments_are_made(context))
    }),
    ("no_session_reaches_another", |context| Box::pin(sessions::no_session_reaches_another(context))),
    ("sessions_are_listed_once_each", |context| Box::pin(sessions::sessions_are_listed_once_each(context))),
    ("sessions_are_listed_by_recency", |context| Box::pin(recency::sessions_are_listed_by_recency(context))),
    ("a_page_by_recency_stays_right_while_sessions_change", |context| {
        Box::pin(recency::a_page_by_recency_stays_right_while_sessions_change(context))
    }),
    ("what_another_writer_changes_is_found", |context| {
        Box::pin(recency::what_another_writer_changes_is_found(context))
    }),
    ("a_search_index_is_no_older_than_a_deletion", |context| {
        Box::pin(recency::a_search_index_is_no_older_than_a_deletion(context))
    }),
    ("audit_rows_are_found", |context| Box::pin(sessions::audit_rows_are_found(context))),
    ("an_audit_row_replaced_is_found_anew", |context| Box::pin(sessions::an_audit_row_replaced_is_found_anew(context))),
    ("pages_of_audit_rows_cost_what_their_rows_cost", |context| {
        Box::pin(audit_pages::pages_of_audit_rows_cost_what_their_rows_cost(context))
    }),
    ("pages_of_a_messages_calls_are_full", |context| {
        Box::pin(audit_pages::pages_of_a_messages_calls_are_full(context))
    }),
    ("a_deleted_session_stays_deleted", |context| Box::pin(sessions::a_deleted_session_stays_deleted(context))),
    ("a_repeated_operation_is_done_once", |context| Box::pin(appends::a_repeated_operation_is_done_once(context))),
    ("two_writers_lose_nothing", |context| Box::pin(appends::two_writers_lose_nothing(context))),
    ("branches_share_what_is_before_them", |context| Box::pin(branches::branches_share_what_is_before_them(context))),
    ("bytes_come_back_as_they_were", |context| Box::pin(bytes_come_back_as_they_were(context))),
    ("a_large_value_is_kept", |context| Box::pin(a_large_value_is_kept(context))),
    ("the_largest_keys_are_kept", |context| Box::pin(segments::the_largest_keys_are_kept(context))),
    ("what_cannot_be_kept_is_refused", |context| Box::pin(what_cannot_be_kept_is_refused(context))),
    ("pages_meet_where_the_records_end", |context| Box::pin(segments::pages_meet_where_the_records_end(context))),
    ("a_thousand_records_are_read", |context| Box::pin(segments::a_thousand_records_are_read(context))),
    ("a_failing_read_costs_what_fails_alone", |context| {
        Box::pin(damage::a_failing_read_costs_what_fails_alone(context))
    }),
    ("a_deleted_session_with_a_damaged_head_stays_deleted", |context| {
        Box::pin(damage::a_deleted_session_with_a_damaged_head_stays_deleted(context))
    }),
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
    context.expect_log(session, &kept).await?;
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
    context.expect_log(session, &want).await?;
    let got = context.store.read(session, Query::all(Table::Runs)).await?;
    ensure!(got == [runs], "the batch's other table has {}", summary(&got));
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
        ensure!(got == want, "{table:?} has {}", summary(&got));
    }
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
    context.expect_log(session, &records).await?;
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
    context.expect_log(session, &[log(0, &large), log(1, b"small")]).await
}

async fn what_cannot_be_kept_is_refused(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    for wrong in
        [log(MAX_KEY.saturating_add(1), b"v"), segment(5, 4, b"v"), segment(0, MAX_KEY.saturating_add(1), b"v")]
    {
        let got = context.append(session, 0, batch(b"h", vec![log(0, b"v"), wrong.clone()])).await;
        ensure!(
            got.as_ref().is_err_and(|error| error.code == ErrorCode::InvalidInput),
            "{} gave {got:?}",
            summary(&[wrong])
        );
    }
    let unnamed = context.store.append(session, 0, batch(b"h", vec![]), "").await;
    ensure!(
        unnamed.is_err_and(|error| error.code == ErrorCode::InvalidInput),
        "an append without an operation was taken"
    );
    for cursor in ["", "x", "x:y"] {
        let got = context.store.invocations(&AuditQuery { cursor: Some(cursor.into()), ..AuditQuery::default() }).await;
        ensure!(got.is_err(), "the cursor {cursor:?} gave rows instead of an error");
    }
    ensure!(context.store.head(session).await?.is_none(), "a refused append left a session");
    context.expect_log(session, &[]).await
}
