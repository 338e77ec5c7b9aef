//! Checks of what a session shows, and what becomes of it, while its store fails to read a part or its head is damaged.

use super::context::{StoreCheckContext, batch, ensure};
use super::observed_store::ObservedStore;
use crate::error::{Error, ErrorCode, Result};
use crate::history::HistoryEntry;
use crate::id::Seed;
use crate::message::{Message, Role};
use crate::store::{
    Change, LogStore, Query, SessionLog, StoreFuture, Table, commit, delete_session, open_session, refresh,
};
use std::cell::RefCell;

const SEED: Seed = Seed(1);

/// Builds an append of one message.
fn said(operation: String, id: &str) -> Change {
    let message = Message { id: id.to_owned(), created_at: 1, ..Message::from_text(Role::User, id) };
    Change { operation, at: 1, entries: vec![HistoryEntry::Message(message)], ..Change::default() }
}

async fn opened(store: &dyn LogStore, session: &str) -> Result<RefCell<SessionLog>> {
    Ok(RefCell::new(open_session(store, session, SEED, 1).await?))
}

fn ids(log: &RefCell<SessionLog>) -> Vec<String> {
    log.borrow().history.messages().iter().map(|message| message.id.clone()).collect()
}

/// The ids of the messages "m0", "m1", …
fn numbered(numbers: impl Iterator<Item = u64>) -> Vec<String> {
    numbers.map(|number| format!("m{number}")).collect()
}

pub(super) async fn a_failing_read_costs_what_fails_alone(context: &StoreCheckContext) -> Result<()> {
    let session = &context.session("s");
    let log = opened(&*context.store, session).await?;
    for id in numbered(0..12) {
        commit(&*context.store, &log, &said(context.operation(), &id)).await?;
    }
    for lost in [0, 5, 11] {
        let store = ObservedStore::new(&context.other);
        store.unreadable.set(Some(lost));
        let log = opened(&store, session).await?;
        let rest = numbered((0..12).filter(|number| *number != lost));
        ensure!(ids(&log) == rest, "without record {lost} the session has {:?}", ids(&log));
        ensure!(log.borrow().read_failure().is_some(), "it is not said that record {lost} could not be read");
        ensure!(log.borrow().head.next_record == 12, "numbering goes on at {}", log.borrow().head.next_record);
        let before = context.store.head(session).await?;
        let written = commit(&store, &log, &said(context.operation(), "lost")).await;
        ensure!(written.is_err(), "a message was written onto a history without record {lost}");
        ensure!(context.store.head(session).await? == before, "a rejected append changed the head");
        store.unreadable.set(None);
        refresh(&store, &log).await?;
        ensure!(ids(&log) == numbered(0..12), "after a retry the session has {:?}", ids(&log));
        ensure!(log.borrow().read_failure().is_none(), "the failure is still reported");
    }
    let store = ObservedStore::new(&context.other);
    store.unreadable.set(Some(5));
    let log = opened(&store, session).await?;
    store.unreadable.set(None);
    commit(&store, &log, &said(context.operation(), "m12")).await?;
    let whole = opened(&*context.store, session).await?;
    ensure!(ids(&whole) == numbered(0..13) && ids(&log) == ids(&whole), "the store has {:?}", ids(&whole));
    Ok(())
}

pub(super) async fn a_deleted_session_with_a_damaged_head_stays_deleted(context: &StoreCheckContext) -> Result<()> {
    for (at, head) in [&b""[..], b"no head"].into_iter().enumerate() {
        let store = context.store.clone();
        let operation = context.operation();
        let damage = move |session: String| -> StoreFuture<'static, ()> {
            let (store, operation) = (store.clone(), format!("{operation} {session}"));
            Box::pin(async move {
                let revision = store.head(&session).await?.map_or(0, |head| head.revision);
                store.append(&session, revision, batch(head, vec![]), &operation).await.map(drop)
            })
        };
        let session = context.session(&format!("{at}"));
        nothing_returns_after_deletion((&*context.store, &*context.other), &session, &damage).await?;
    }
    Ok(())
}

/// Deletes sessions whose heads `damage` has damaged. Fails if a session shows a message afterwards, or if somebody who
/// had it open, through the second store, can write to it or to a new session of its id, whatever the revision of that
/// is.
///
/// # Errors
/// `internal`, naming what came back, and the store's own.
pub async fn nothing_returns_after_deletion(
    (store, other): (&dyn LogStore, &dyn LogStore),
    name: &str,
    damage: &dyn Fn(String) -> StoreFuture<'static, ()>,
) -> Result<()> {
    for (old, new) in (1..4).flat_map(|old| (0..4).map(move |new| (old, new))) {
        let session = &format!("{name} {old} {new}");
        let log = opened(store, session).await?;
        for id in numbered(0..old) {
            commit(store, &log, &said(format!("{session} {id}"), &id)).await?;
        }
        let stale = opened(other, session).await?;
        damage(session.clone()).await?;
        delete_session(store, session, SEED, &format!("{session} deletion")).await?;
        for store in [store, other] {
            ensure!(store.head(session).await?.is_none(), "the deleted session {session} has a head");
            for table in [Table::Log, Table::ToolInvocations, Table::Runs] {
                let left = store.read(session, Query::all(table)).await?;
                ensure!(left.is_empty(), "the deleted session {session} has {} records in {table:?}", left.len());
            }
            ensure!(ids(&opened(store, session).await?).is_empty(), "the deleted session {session} has messages");
        }
        let log = opened(store, session).await?;
        let fresh: Vec<_> = (0..new).map(|at| format!("new {at}")).collect();
        for id in &fresh {
            commit(store, &log, &said(format!("{session} {id}"), id)).await?;
        }
        let late = commit(other, &stale, &said(format!("{session} late"), "late")).await;
        ensure!(late.is_err(), "who had {session} open wrote to it after its deletion");
        for store in [store, other] {
            let found = ids(&opened(store, session).await?);
            ensure!(found == fresh, "the new session {session} has {found:?}");
        }
        refresh(other, &stale).await?;
        ensure!(ids(&stale) == fresh, "who had {session} open shows {:?}", ids(&stale));
    }
    Ok(())
}
