//! Erases messages of an open session (R59).

use super::open_session::OpenSession;
use super::run_lock::acquire_run_lock;
use crate::error::{Error, Result};
use crate::history::History;
use crate::message::Message;
use crate::provider::has_compaction;
use crate::store::{Erasure, ErasureReceipt, Unreached, erase_messages, finish_erasure};
use std::collections::BTreeSet;

/// Erases messages physically, in every branch: with the calls, results and audit rows of an answer, and the summaries
/// that may be made of them. What a pending run left that the user stopped is removed too, as by the next run.
///
/// # Errors `invalid_input` without an id; `not_found`; `busy` while a run is under way, here or elsewhere;
/// `wrong_state` if a run is not over; those of [`erase_messages`].
pub async fn delete_messages(session: &OpenSession, ids: &[String]) -> Result<ErasureReceipt> {
    if ids.is_empty() {
        return Err(Error::invalid("`deleteMessages` needs the ids of the messages: `messages()` has them"));
    }
    delete_chosen(session, ids, None).await
}

/// Erases messages as [`delete_messages`] does, if the session is as it was when they were chosen: see
/// [`Erasure::chosen_in`].
///
/// # Errors
/// `conflict`, and those of [`delete_messages`].
pub(super) async fn delete_chosen(
    session: &OpenSession,
    ids: &[String],
    chosen_in: Option<(u64, u64)>,
) -> Result<ErasureReceipt> {
    let turn = session.writes.enter();
    let _turn = turn.start().await;
    // No run may begin here meanwhile.
    session.reserve_run()?;
    let erased = erase_reserved(session, Some(Chosen { ids, at: chosen_in })).await;
    session.set_run(None);
    erased
}

/// Finishes an erasure that was cut off. While a run is under way, or another process does the same, it is left to the
/// next open.
pub(super) async fn finish_cut_off_erasure(session: &OpenSession) {
    let is_cut_off = {
        let log = session.log.borrow();
        !log.head.erasing.is_finished() && log.writable().is_ok()
    };
    if is_cut_off && session.reserve_run().is_ok() {
        let turn = session.writes.enter();
        let _turn = turn.start().await;
        // The head keeps what is left.
        let _ = erase_reserved(session, None).await;
        session.set_run(None);
    }
}

/// The messages that are to be erased.
struct Chosen<'a> {
    ids: &'a [String],
    /// As [`Erasure::chosen_in`].
    at: Option<(u64, u64)>,
}

/// Erases messages, or without ids finishes what was cut off.
async fn erase_reserved(session: &OpenSession, chosen: Option<Chosen<'_>>) -> Result<ErasureReceipt> {
    session.leave_unborn_branch().await?;
    session.refresh().await?;
    let runs: Vec<String> = session.log.borrow().head.runs.iter().map(|run| run.id.clone()).collect();
    // Held until their journals are removed.
    let mut locks = Vec::with_capacity(runs.len());
    for run in &runs {
        locks.push(acquire_run_lock(&session.context, &session.id, run).await?);
    }
    let has_service_copy =
        chosen.as_ref().is_some_and(|chosen| services_have(&session.log.borrow().history, chosen.ids));
    let erased = {
        let _commits = session.commit_turn().await;
        let context = &session.context;
        let (operation, notice) = (context.host.random_id(), context.notice_of(&session.id));
        let erasure = Erasure {
            operation: &operation,
            at: context.now(),
            owned_runs: &runs,
            chosen_in: chosen.as_ref().and_then(|chosen| chosen.at),
            notice: notice.as_ref(),
            has_compaction,
        };
        finish_and_erase(session, chosen.map(|chosen| chosen.ids), &erasure).await
    };
    drop(locks);
    // Also after a failure: some of the messages may be gone.
    session.apply_fields(&mut session.log.borrow_mut().head);
    session.drop_views_of_replaced_history();
    session.update_pending().await;
    session.update_hold();
    session.notify();
    session.context.announce_append(&session.id, session.revision());
    session.merge_when_idle();
    let mut receipt = erased?;
    receipt.unreached.extend(unreached(session, has_service_copy));
    Ok(receipt)
}

async fn finish_and_erase(
    session: &OpenSession,
    ids: Option<&[String]>,
    erasure: &Erasure<'_>,
) -> Result<ErasureReceipt> {
    let store = &*session.context.store;
    let earlier = Erasure { operation: &format!("{}.earlier", erasure.operation), ..*erasure };
    finish_erasure(store, &session.log, &earlier).await?;
    match ids {
        Some(ids) => erase_messages(store, &session.log, ids, erasure).await,
        None => Ok(ErasureReceipt::default()),
    }
}

/// Returns true if the service that a message came from, or went to, may have it: an answer of it is stored there, or
/// a later one of the same conversation.
fn services_have(history: &History, ids: &[String]) -> bool {
    let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let is_of_service = |message: &Message| {
        message.answer.as_ref().is_some_and(|answer| answer.service_mark.is_some() || answer.response_id.is_some())
    };
    let mut messages = history.messages().iter().skip_while(|message| !ids.contains(message.id.as_str()));
    messages.any(is_of_service)
}

/// Returns what an erasure does not reach.
fn unreached(session: &OpenSession, has_service_copy: bool) -> Vec<Unreached> {
    let mut unreached = Vec::new();
    let mut add = |what, why: &str| unreached.push(Unreached { what, why: why.to_owned() });
    if has_service_copy || session.owner().is_ok_and(|owner| owner.is_stateful()) {
        let why = "the model's provider got the messages, and may keep the conversation or its responses; delete them \
                   there";
        add("service", why);
    }
    let log = session.log.borrow();
    let head = &log.head;
    if head.title.is_some() || head.metadata.is_some() || !head.state.is_empty() {
        let why = "title, metadata and the values of `state` are the application's, also as earlier records have them; \
                   replace them if they repeat the messages";
        add("session_fields", why);
    }
    add(
        "exports",
        "exports, backups, snapshots of runs and copies of the session that were made before have the messages",
    );
    if session.context.store.capabilities().durable {
        let why = "the database may keep what was overwritten: a log of changes, free pages, replicas, its own backups; \
                   docs/stores.md says what each store promises";
        add("database", why);
    }
    unreached
}
