//! Sessions as values: read whole, restored, copied, and cleared.

use super::context::StoreContext;
use super::open_session::OpenSession;
use super::run_lock::acquire_run_lock;
use crate::error::{Error, Result};
use crate::finding::Report;
use crate::store::{SessionArchive, SessionCopy, clear_session};

/// Reads a session with everything that is stored of it. `open` is the session if it is open: what its run deferred,
/// and values of its state bag that are not stored yet, are stored first. Title, channel, metadata and owner that it
/// was opened with are added to the archive, not to the store.
///
/// # Errors `not_found` for a session that is not stored; `busy`; the store's own, also if something cannot be stored
/// first: an archive that lacks what the session shows would be worse.
pub async fn read_archive(context: &StoreContext, open: Option<&OpenSession>, id: &str) -> Result<SessionArchive> {
    Ok(read_archive_and_damage(context, open, id).await?.0)
}

/// As [`read_archive`], with what could not be read.
pub(super) async fn read_archive_and_damage(
    context: &StoreContext,
    open: Option<&OpenSession>,
    id: &str,
) -> Result<(SessionArchive, Report)> {
    if let Some(run) = open.and_then(OpenSession::live_run) {
        run.flush_before_read().await?;
    }
    if let Some(session) = open.filter(|session| !session.state.borrow().is_empty()) {
        let turn = session.writes.enter();
        let _turn = turn.start().await;
        session.commit(session.new_change()).await?;
    }
    let (mut archive, findings) = SessionArchive::read(&*context.store, id, context.settings.seed).await?;
    if let Some(session) = open {
        session.apply_fields(&mut archive.head);
    }
    context.report_damage(&findings);
    Ok((archive, findings))
}

/// Stores an archive under an id, or its own. Returns the id.
///
/// # Errors
/// `conflict` if a session of this id exists; the store's own.
pub async fn restore_archive(context: &StoreContext, archive: SessionArchive, id: Option<String>) -> Result<String> {
    let id = id.unwrap_or_else(|| archive.head.id.clone());
    if id.is_empty() {
        return Err(Error::invalid("a session's id is any text but the empty one"));
    }
    let operation = context.host.random_id();
    let revision = archive.restore(&*context.store, &id, (&operation, context.notice_of(&id))).await?;
    context.announce_append(&id, revision);
    Ok(id)
}

/// Copies the branch that a session shows, or with which it is opened, up to and with the message `until`, or all of it.
/// Returns the id of the copy: `id`, or a new one.
///
/// # Errors
/// `not_found` for a session that is not stored, and for a message that the branch does not have; `conflict` if a session
/// of this id exists; those of [`read_archive`].
pub async fn copy_session(
    context: &StoreContext,
    (open, session): (Option<&OpenSession>, &str),
    until: Option<String>,
    id: Option<String>,
) -> Result<String> {
    let archive = read_archive(context, open, session).await?;
    let shown = open.map(|open| open.log.borrow().branch_number());
    // A branch that was born since the archive was read is not in it.
    let shown = shown.filter(|number| *number <= archive.head.branch_count);
    let copy = archive.copy_branch(&SessionCopy {
        branch: shown.unwrap_or(archive.head.branch.number),
        until,
        operation: context.host.random_id(),
        at: context.now(),
        seed: context.settings.seed,
    })?;
    let id = id.unwrap_or_else(|| context.host.random_id());
    restore_archive(context, copy, Some(id)).await
}

/// Removes the messages, calls and pending runs of a session.
///
/// # Errors
/// `busy` while a run is under way, here or elsewhere; the store's own.
pub async fn clear(session: &OpenSession) -> Result<()> {
    let turn = session.writes.enter();
    let _turn = turn.start().await;
    // No run may begin here meanwhile.
    session.reserve_run()?;
    let cleared = clear_reserved(session).await;
    session.set_run(None);
    cleared
}

async fn clear_reserved(session: &OpenSession) -> Result<()> {
    session.refresh().await?;
    let runs: Vec<String> = session.log.borrow().head.runs.iter().map(|run| run.id.clone()).collect();
    // Held until the runs are removed.
    let mut locks = Vec::with_capacity(runs.len());
    for run in &runs {
        locks.push(acquire_run_lock(&session.context, &session.id, run).await?);
    }
    let context = &session.context;
    let change = session.new_change();
    let notice = context.notice_of(&session.id);
    clear_session(&*context.store, &session.log, (&change.operation, change.at), (&runs, notice)).await?;
    drop(locks);
    session.compaction.drop_deferred();
    session.drop_views_of_replaced_history();
    session.update_pending().await;
    session.update_hold();
    session.notify();
    context.announce_append(&session.id, session.revision());
    Ok(())
}
