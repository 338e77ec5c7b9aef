//! Checks of what a store without compare-and-append promises instead: a second writer is detected, and both sides are
//! kept.

use super::context::{StoreCheckContext, both, ensure, log, summary};
use crate::error::{Error, ErrorCode, Result};
use crate::store::{Appended, Batch, LogStore, Query, Table};
use std::collections::BTreeSet;

/// Appends of each writer.
const COUNT: u64 = 25;

pub(super) async fn two_writers_keep_both_sides(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    context.written(session, 0, Batch { head: b"base".as_slice().into(), ..Batch::default() }).await?;
    // Both have read the same history before they write.
    ensure!(context.other.head(session).await?.is_some(), "the other handle sees no session");
    let one = write_on_any_side(&*context.store, session, 1);
    let two = write_on_any_side(&*context.other, session, 2);
    let (one, two) = both(one, two).await;
    let acknowledged: BTreeSet<u64> = one?.into_iter().chain(two?).collect();
    let mut seen = Vec::new();
    for store in [&context.store, &context.other] {
        let head = store.head(session).await?.map(|head| head.value);
        let mut keys = BTreeSet::new();
        let records = store.read(session, Query::all(Table::Log)).await?;
        keys.extend(records.iter().map(|record| record.key));
        for branch in store.branches(session).await? {
            ensure!(branch.fork_head.is_some(), "a side shares nothing with the other");
            keys.extend(branch.log.iter().map(|record| record.key));
        }
        ensure!(keys == acknowledged, "of {} appends both sides have {}", acknowledged.len(), keys.len());
        seen.push((head, summary(&records)));
    }
    ensure!(seen.first() == seen.last(), "two readers are on different sides: {seen:?}");
    Ok(())
}

/// Appends records with keys of this writer, after whatever is the history. Returns the keys.
async fn write_on_any_side(store: &dyn LogStore, session: &str, writer: u64) -> Result<Vec<u64>> {
    let mut revision = store.head(session).await?.map_or(0, |head| head.revision);
    let mut keys = Vec::new();
    for number in 0..COUNT {
        let key = writer.saturating_mul(1000).saturating_add(number);
        for attempt in 0.. {
            ensure!(attempt < 1000, "writer {writer} had a thousand conflicts");
            let batch = Batch {
                head: format!("{writer} {number}").into(),
                put: vec![log(key, &[u8::try_from(writer).unwrap_or(0)])],
                ..Batch::default()
            };
            match store.append(session, revision, batch, &format!("{key}.{attempt}")).await? {
                Appended::Revision(made) => {
                    revision = made;
                    break;
                }
                Appended::Conflict(is) => revision = is,
                Appended::Occupied => ensure!(false, "writer {writer} found a record in its place"),
            }
        }
        keys.push(key);
    }
    Ok(keys)
}
