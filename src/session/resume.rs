//! Resumes or discards a pending run.

use super::host::RunLock;
use super::journals::journal_of;
use super::lease::{is_leased, lease_end};
use super::open_session::OpenSession;
use super::provider_turns::AppendedContent;
use super::queued_run::QueuedRun;
use super::run_driver::{FIRST_EPOCH, RunDriver};
use super::run_lock::{RunClaim, RunHold, acquire_run_lock};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::message::MessageStatus;
use crate::run::{
    Handoff, Persistence, Run, RunSetup, RunSnapshot, RunWriter, StoredRun, discarded_entries, stopped_entries,
};
use crate::session_head::RunEntry;
use crate::store::{Change, JournalChange, JournalStep, check_lease};
use std::rc::Rc;

fn entry_of(session: &OpenSession, id: &str) -> Result<RunEntry> {
    session.log.borrow().head.run(id).cloned().ok_or_else(|| {
        Error::new(ErrorCode::NotFound, "there is no unfinished run of that id: it was finished or discarded")
    })
}

/// An interrupted or waiting run, locked by this tab.
struct LockedRun {
    entry: RunEntry,
    lock: Option<RunLock>,
    /// A lease that ends later is another holder's, who is alive. A lock shows that there is none.
    lease_ended_by: Ms,
    /// Kept until the run is taken over. None if another call here has the run.
    _claim: Option<RunClaim>,
}

async fn lock_run(session: &OpenSession, id: &str) -> Result<LockedRun> {
    session.refresh().await?;
    entry_of(session, id)?;
    let lock = acquire_run_lock(&session.context, &session.id, id).await?;
    let claim = RunClaim::new(&session.context, &session.id, id);
    // Read again: the last holder may have ended the run.
    session.refresh().await?;
    let entry = entry_of(session, id)?;
    // This tab may have left its own lease behind: the reply to the write was lost. Later writes of that holder end
    // later.
    let is_left_behind = claim.is_some() && entry.is_held_by(&session.context.origin());
    let lease_ended_by = match (&lock, session.context.now()) {
        (Some(_), _) => Ms::MAX,
        (None, now) if is_left_behind => entry.lease_until.max(now),
        (None, now) => now,
    };
    check_lease(&entry, lease_ended_by)?;
    Ok(LockedRun { entry, lock, lease_ended_by, _claim: claim })
}

/// Acquires a question that waits, as its next holder, and reads it.
///
/// # Errors
/// As [`resume_run`], and `busy` if it waits here, or has begun meanwhile.
pub(super) async fn lock_queued_run(session: &Rc<OpenSession>, id: &str) -> Result<(QueuedRun, StoredRun)> {
    if session.run_queue.held(id).is_some() {
        return Err(Error::new(ErrorCode::Busy, "the question waits here already"));
    }
    let LockedRun { entry, lock, lease_ended_by, _claim: claim } = lock_run(session, id).await?;
    let claim = claim.ok_or_else(|| Error::new(ErrorCode::Busy, "the question is being taken up here already"))?;
    if !entry.is_queued() {
        return Err(Error::new(ErrorCode::Busy, "the question has begun as a run meanwhile; resume it again"));
    }
    let stored = journal_of(&session.context, &session.id, &entry).await?;
    let mut change = journal_change(session, &entry, JournalStep::Take, lease_ended_by);
    if let Some(journal) = &mut change.journal {
        journal.lease_until = lease_end(&session.context, lock.is_some());
    }
    commit_as_new_holder(session, id, change).await?;
    let queued = QueuedRun::of(session, (entry.id, entry.epoch + 1), lock, claim)?;
    queued.entry()?;
    Ok((queued, stored))
}

/// What a run continues with: its setup with the mode unset, and what the application passes again.
pub struct ResumeRequest {
    /// The setup. Its id is that of the run.
    pub setup: RunSetup,
    /// When history is written, if the application says so.
    pub persistence: Option<Persistence>,
    /// The handoffs that the run has accepted.
    pub handoffs: Vec<Handoff>,
}

/// Resumes the run of a snapshot: from its journal if the store has that, else from the snapshot.
pub async fn resume_snapshot(
    session: &Rc<OpenSession>,
    snapshot: RunSnapshot,
    request: impl FnOnce() -> Result<ResumeRequest>,
) -> Result<Rc<RunDriver>> {
    session.refresh().await?;
    if entry_of(session, &snapshot.run).is_ok() {
        return resume_run(session, Some(&snapshot), request()?).await;
    }
    let ResumeRequest { mut setup, persistence, handoffs } = request()?;
    setup.provider.check()?;
    let mut stored = snapshot.read_run(session.context.settings.seed)?;
    stored.check_credentials(&setup.provider)?;
    stored.check_continuation(&setup.provider)?;
    stored.attach_handoffs(handoffs, &setup)?;
    setup.persistence = persistence.unwrap_or(stored.began.persistence);
    setup.check()?;
    // Until the run is known as live here, its lease would be taken for one that was left behind.
    let _claim = RunClaim::new(&session.context, &session.id, &snapshot.run)
        .ok_or_else(|| Error::new(ErrorCode::Busy, "the run is being resumed here already"))?;
    let lock = acquire_run_lock(&session.context, &session.id, &snapshot.run).await?;
    let change = {
        let context = &session.context;
        let (name, now) = (context.host.random_id(), context.now());
        let lease_until = lease_end(context, lock.is_some());
        let writer = RunWriter { run: &snapshot.run, name: &name, epoch: FIRST_EPOCH, now, lease_until };
        let log = session.log.borrow();
        let change = snapshot.begin(&log, &writer)?;
        let approvals = Some(stored.live.awaited_approvals());
        // Another writer may append meanwhile, or end the run.
        let exclusive = session.exclusive_run(&snapshot.run);
        Change { expected: Some(log.head.history_revision), approvals, exclusive, ..change }
    };
    let revision = match session.commit(change).await {
        Err(error) if error.code == ErrorCode::Conflict && entry_of(session, &snapshot.run).is_ok() => {
            return Err(Error::new(ErrorCode::Busy, "another tab or process has just resumed the run"));
        }
        outcome => outcome?,
    };
    session.context.announce_append(&session.id, revision);
    session.notify();
    let machine = Run::resume(setup, stored, &mut session.borrow_for_step().run_context())?;
    Ok(RunDriver::new(session, snapshot.run, machine, RunHold::of_lock(FIRST_EPOCH, lock)))
}

/// Acquires an interrupted run and resumes it. `snapshot` may have entries that its journal lacks.
///
/// # Errors
/// `busy` while somebody holds it; `wrong_state` for a question that waits, which [`RunDriver::take_up`] takes up;
/// `not_found`; `conflict` for one that was cancelled; the store's own.
pub async fn resume_run(
    session: &Rc<OpenSession>,
    snapshot: Option<&RunSnapshot>,
    request: ResumeRequest,
) -> Result<Rc<RunDriver>> {
    let ResumeRequest { mut setup, persistence, handoffs } = request;
    let id = &setup.id.clone();
    // The whole setup can be checked only when the run's mode is known, which the journal has.
    setup.provider.check()?;
    let LockedRun { entry, lock, lease_ended_by, _claim } = lock_run(session, id).await?;
    if entry.is_stopped() {
        return Err(RunEntry::cancelled_error());
    }
    if entry.is_queued() {
        let sentence = "the run has not begun: it is a question that waits; resume it by its id, without a snapshot";
        return Err(Error::new(ErrorCode::WrongState, sentence));
    }
    session.show_branch_of(&entry).await?;
    let mut stored = journal_of(&session.context, &session.id, &entry).await?;
    let missing = snapshot.map(|snapshot| snapshot.missing_entries(&stored.records)).unwrap_or_default();
    stored.extend(&missing)?;
    stored.check_credentials(&setup.provider)?;
    stored.check_continuation(&setup.provider)?;
    stored.attach_handoffs(handoffs, &setup)?;
    setup.persistence = persistence.unwrap_or(stored.began.persistence);
    setup.check()?;
    let mut change = journal_change(session, &entry, JournalStep::Take, lease_ended_by);
    // The head lacks it if it was rebuilt.
    change.approvals = Some(stored.live.awaited_approvals());
    change.exclusive = session.exclusive_run(id);
    let lease_until = lease_end(&session.context, lock.is_some());
    if let Some(journal) = &mut change.journal {
        journal.lease_until = lease_until;
    }
    let mut revision = commit_as_new_holder(session, id, change).await?;
    if entry_of(session, id)?.entries != entry.entries + 1 {
        // A write of the former holder arrived after its journal was read. From now on none does. Whoever is next need
        // not wait for the lease.
        let entry = RunEntry { epoch: entry.epoch + 1, ..entry };
        // If that fails, the lease runs out: the caller has to come again in any case.
        let _ = session.commit(journal_change(session, &entry, JournalStep::Renew, Ms::MAX)).await;
        return Err(Error::new(ErrorCode::Busy, "the run went on while it was resumed; resume it again"));
    }
    if !missing.is_empty() {
        let entry = RunEntry { epoch: entry.epoch + 1, ..entry.clone() };
        let mut change = journal_change(session, &entry, JournalStep::Write(missing), Ms::MAX);
        if let Some(journal) = &mut change.journal {
            journal.lease_until = lease_until;
        }
        revision = commit_as_new_holder(session, id, change).await?;
    }
    session.context.announce_append(&session.id, revision);
    session.notify();
    let machine = Run::resume(setup, stored, &mut session.borrow_for_step().run_context())?;
    Ok(RunDriver::new(session, entry.id, machine, RunHold::of_lock(entry.epoch + 1, lock)))
}

/// Acquires a run that this tab released while it waited for an approval. Returns its lock, if the platform has locks.
///
/// # Errors `busy` if another tab or process has the run at this moment, or another run is under way in the conversation
/// that a service keeps, `conflict` if one had taken it over,
/// `not_found` if the run has ended.
pub async fn lock_waiting_run(session: &OpenSession, id: &str, epoch: u32) -> Result<Option<RunLock>> {
    let _conversation = session.lock_conversation().await?;
    let LockedRun { entry, lock, lease_ended_by, _claim } = lock_run(session, id).await?;
    if entry.epoch != epoch {
        let message =
            "another tab or process took the run over while it waited for an approval; resume it to continue here";
        return Err(Error::new(ErrorCode::Conflict, message));
    }
    session.show_branch_of(&entry).await?;
    if is_leased(&session.context, lock.is_some()) {
        let mut change = journal_change(session, &entry, JournalStep::Renew, lease_ended_by);
        change.exclusive = session.exclusive_run(id);
        if let Some(journal) = &mut change.journal {
            journal.lease_until = lease_end(&session.context, lock.is_some());
        }
        commit_as_new_holder(session, id, change).await?;
    }
    Ok(lock)
}

/// Discards a pending run. With `keep`, its input and what there is of the answer are stored. Returns what was stored.
pub async fn discard_run(session: &Rc<OpenSession>, id: &str, keep: bool) -> Result<AppendedContent> {
    if !keep && session.remove_unwritten_run(id) {
        return Ok(AppendedContent::default());
    }
    session.refresh().await?;
    let entry = entry_of(session, id)?;
    // Nothing is stored of a branch that was not born, nor of a question that is not kept.
    if session.shows_branch_of(&entry) || !keep && (entry.branch.is_unborn() || entry.is_queued()) {
        let discarded = discard_shown(session, id, keep).await;
        session.leave_unborn_branch_soon();
        return discarded;
    }
    session.reserve_run()?;
    let discarded = match session.show_branch_of(&entry).await {
        Ok(()) => discard_shown(session, id, keep).await,
        Err(error) => Err(error),
    };
    session.set_run(None);
    session.leave_unborn_branch_soon();
    discarded
}

async fn discard_shown(session: &Rc<OpenSession>, id: &str, keep: bool) -> Result<AppendedContent> {
    let LockedRun { entry, lock: _lock, lease_ended_by, _claim } = match session.held_entry(id) {
        // Its lock or lease is this tab's.
        Some(entry) => LockedRun { entry, lock: None, lease_ended_by: Ms::MAX, _claim: None },
        None => lock_run(session, id).await?,
    };
    // The question may begin meanwhile, here: its run is not what is discarded.
    let step = if entry.is_queued() { JournalStep::Dequeue } else { JournalStep::End };
    let mut change = journal_change(session, &entry, step, lease_ended_by);
    if keep {
        let stored = journal_of(&session.context, &session.id, &entry).await?;
        let failed = entry.failed.is_some() && !entry.is_stopped();
        let status = if failed { MessageStatus::Failed } else { MessageStatus::Stopped };
        change.entries = stopped_entries(&stored.live, &session.log.borrow().history, stored.partial, status);
    } else if session.has_stored_part(id) {
        // A journal that cannot be read can be discarded all the same.
        if let Ok(stored) = journal_of(&session.context, &session.id, &entry).await {
            change.entries = discarded_entries(&stored.live, &session.log.borrow().history);
        }
    }
    let content = AppendedContent::of(&change.entries);
    let revision = commit_as_new_holder(session, id, change).await?;
    session.context.announce_append(&session.id, revision);
    if let Some(question) = session.run_queue.held(id) {
        question.discarded.give();
        session.run_queue.wake_all();
    }
    Ok(content)
}

/// Commits the first write of a run's new holder.
///
/// # Errors
/// `busy` if another process was faster, `not_found` if the run ended meanwhile.
async fn commit_as_new_holder(session: &OpenSession, id: &str, change: Change) -> Result<u64> {
    match session.commit(change).await {
        Err(error) if error.code == ErrorCode::Conflict => {
            entry_of(session, id)?;
            Err(Error::new(ErrorCode::Busy, "another tab or process has just taken the run over"))
        }
        outcome => outcome,
    }
}

fn journal_change(session: &OpenSession, entry: &RunEntry, step: JournalStep, lease_ended_by: Ms) -> Change {
    session.context.host.draw_ids();
    let run = entry.id.clone();
    let mut change = session.new_change();
    change.run = Some(run.clone());
    change.journal =
        Some(JournalChange { run, epoch: entry.epoch, lease_until: 0, lease_ended_by: Some(lease_ended_by), step });
    change
}
