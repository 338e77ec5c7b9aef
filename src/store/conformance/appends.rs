//! Checks of the append: what it may overwrite, what revision it makes, and what a repeated or a late one does.

use super::context::{
    StoreCheckContext, audit, batch, both, ensure, log, nothing_lost, replacement, segment, summary, write_with_retry,
};
use super::forks::two_writers_keep_both_sides;
use crate::error::{Error, ErrorCode, Result};
use crate::store::{Appended, Batch, Query, REMEMBERED_OPERATIONS, Record, StoredHead, Table};

pub(super) async fn a_replacement_replaces(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    context.written(session, 0, batch(b"1", vec![log(5, b"old and long"), log(6, b"kept")])).await?;
    context.written(session, 1, replacement(b"2", vec![log(5, b"new"), log(7, b"where none was")])).await?;
    context.expect_log(session, &[log(5, b"new"), log(6, b"kept"), log(7, b"where none was")]).await?;
    context.written(session, 2, replacement(b"3", vec![log(6, b"first of two"), log(6, b"second of two")])).await?;
    context.expect_log(session, &[log(5, b"new"), log(6, b"second of two"), log(7, b"where none was")]).await
}

pub(super) async fn an_append_overwrites_no_record(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    let run = Record { table: Table::Runs, ..log(2, b"run") };
    let row = audit(2, "t", "done", None, 1);
    let kept = [log(1, b"one"), log(2, b"two"), segment(4, 9, b"wide")];
    context.written(session, 0, batch(b"1", [&kept[..], &[run.clone(), row.clone()]].concat())).await?;
    let taken = [
        log(2, b"over"),
        segment(2, 3, b"over"),
        log(4, b"over"),
        segment(4, 9, b"over"),
        Record { value: b"over".as_slice().into(), ..run.clone() },
        Record { value: b"over".as_slice().into(), ..row.clone() },
    ];
    for record in taken {
        let summary = summary(std::slice::from_ref(&record));
        let torn = Batch { remove: vec![(Table::Log, 1)], ..batch(b"never", vec![log(20, b"never"), record]) };
        let got = context.append(session, 1, torn).await?;
        ensure!(got == Appended::Occupied, "a put of {summary} where one is gave {got:?}");
    }
    context.expect_log(session, &kept).await?;
    let runs = context.store.read(session, Query::all(Table::Runs)).await?;
    let rows = context.store.read(session, Query::all(Table::ToolInvocations)).await?;
    ensure!(runs == [run] && rows == [row], "a refused put left {} and {}", summary(&runs), summary(&rows));
    let head = context.store.head(session).await?;
    ensure!(
        head == Some(StoredHead { revision: 1, value: b"1".as_slice().into() }),
        "a refused put left the head {head:?}"
    );
    // What the batch removes makes place, and a conflict comes first.
    let moved = || Batch { remove: vec![(Table::Log, 2)], ..batch(b"2", vec![log(2, b"over")]) };
    ensure!(context.append(session, 0, moved()).await? == Appended::Conflict(1), "a stale append was no conflict");
    context.written(session, 1, moved()).await?;
    context.expect_log(session, &[log(1, b"one"), log(2, b"over"), segment(4, 9, b"wide")]).await
}

pub(super) async fn a_revision_may_jump(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    for (expected, at_least, made) in [(0, 50, 50), (50, 0, 51), (51, 7, 52), (52, 53, 53), (53, 90, 90)] {
        let jump = Batch { at_least, ..batch(b"h", vec![log(made, b"v")]) };
        let operation = context.operation();
        for store in [&context.store, &context.other] {
            let got = store.append(session, expected, jump.clone(), &operation).await?;
            ensure!(got == Appended::Revision(made), "an append at {expected} of at least {at_least} gave {got:?}");
        }
        let head = context.other.head(session).await?.map(|head| head.revision);
        ensure!(head == Some(made), "the head is at {head:?} after a jump to {made}");
    }
    Ok(())
}

pub(super) async fn a_repeated_operation_is_done_once(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    let first = context.operation();
    let add = |key: u64| batch(format!("head {key}").as_bytes(), vec![log(key, b"v")]);
    ensure!(
        context.store.append(session, 0, add(0), &first).await? == Appended::Revision(1),
        "the first append failed"
    );
    ensure!(
        context.store.append(session, 0, add(0), &first).await? == Appended::Revision(1),
        "a repeated append gave another outcome"
    );
    let between = u64::try_from(REMEMBERED_OPERATIONS).unwrap_or(0).saturating_sub(1);
    for key in 1..=between {
        context.written(session, key, add(key)).await?;
    }
    for store in [&context.store, &context.other] {
        let got = store.append(session, 0, add(0), &first).await?;
        ensure!(got == Appended::Revision(1), "an append repeated {between} appends later gave {got:?}");
    }
    let want: Vec<_> = (0..=between).map(|key| log(key, b"v")).collect();
    context.expect_log(session, &want).await?;
    let head = context.store.head(session).await?.map(|head| head.value);
    ensure!(head.as_deref() == Some(format!("head {between}").as_bytes()), "a repeated append wrote its head again");
    // An operation that conflicted was not done, so it may still be.
    let late = context.operation();
    let got = context.store.append(session, 0, add(90), &late).await?;
    ensure!(got == Appended::Conflict(between.saturating_add(1)), "a stale append gave {got:?}");
    let got = context.store.append(session, between.saturating_add(1), add(90), &late).await?;
    ensure!(got == Appended::Revision(between.saturating_add(2)), "an operation that had conflicted gave {got:?}");
    // The same name in another session is another operation.
    let other = context.store.append(&context.session("t"), 0, add(0), &first).await?;
    ensure!(
        other == Appended::Revision(1) && context.store.head(&context.session("t")).await?.is_some(),
        "operations of two sessions are one"
    );
    Ok(())
}

pub(super) async fn two_writers_lose_nothing(context: &StoreCheckContext) -> Result<()> {
    if !context.store.capabilities().compare_and_append {
        // Such a store cannot exclude the second writer.
        return two_writers_keep_both_sides(context).await;
    }
    let session = &context.session("s");
    let one = write_with_retry(&*context.store, session, 0, 25);
    let two = write_with_retry(&*context.other, session, 1, 25);
    let (one, two) = both(one, two).await;
    one?;
    two?;
    nothing_lost(&*context.store, session, 25).await
}
