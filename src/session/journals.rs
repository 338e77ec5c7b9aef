//! Lists the pending runs of a store, read from their journals.

use super::context::StoreContext;
use super::open_session::OpenSession;
use super::run_lock::{LiveHolders, lock_name};
use crate::error::{ErrorCode, Result};
use crate::json::ArrayWriter;
use crate::run::StoredRun;
use crate::session_head::{RunEntry, SessionHead};
use crate::store::read_journal;

impl OpenSession {
    /// Lists the pending runs of the session, as JSON.
    ///
    /// # Errors
    /// The store's own.
    pub async fn pending_runs(&self) -> Result<String> {
        self.refresh().await?;
        let head = self.log.borrow().head.clone();
        let complete = |run: &mut StoredRun| _ = run.take_stored_results(&self.log.borrow().history);
        pending_runs(&self.context, vec![(self.id.clone(), head)], &complete).await
    }
}

/// Lists the pending runs of these sessions, as JSON. `complete` adds what their histories have of the turns.
pub async fn pending_runs(
    context: &StoreContext,
    sessions: Vec<(String, SessionHead)>,
    complete: &dyn Fn(&mut StoredRun),
) -> Result<String> {
    let mut items = String::new();
    let mut array = ArrayWriter::new(&mut items);
    for (session, head) in sessions {
        if !head.runs.is_empty() {
            write_pending_runs(context, (&session, &head), complete, &mut array).await?;
        }
    }
    array.end();
    Ok(items)
}

async fn write_pending_runs(
    context: &StoreContext,
    (session, head): (&str, &SessionHead),
    complete: &dyn Fn(&mut StoredRun),
    out: &mut ArrayWriter<'_>,
) -> Result<()> {
    let holders = LiveHolders::query(context).await;
    for run in head.pending_runs() {
        let Some((run, mut stored)) = read_pending_run(context, session, run).await? else { continue };
        let name = lock_name(context, session, &run.id);
        // A memory store has neither locks nor leases.
        let waits_here = run.is_queued() && context.claimed.borrow().contains(&name);
        let is_live = context.live.borrow().contains(&name) || waits_here || holders.has_holder(&name, &run);
        complete(&mut stored);
        let state = match &run.failed {
            _ if is_live => "live",
            _ if run.is_queued() => "queued",
            Some(_) => "failed",
            None if stored.waits_for_approval() => "waiting_approval",
            None => "interrupted",
        };
        let lease = Some(run.lease_until).filter(|until| is_live && *until > 0);
        out.object(|out| {
            stored.write(out, session, state);
            if let Some(until) = lease {
                out.number("leaseUntil", until);
            }
        });
    }
    Ok(())
}

/// Reads the journal of a pending run. Returns the run's entry with it, which is a newer one if a question has begun
/// meanwhile, with another journal; none if the run has ended. A journal that cannot be read is reported, and must not
/// hide the other runs.
async fn read_pending_run(
    context: &StoreContext,
    session: &str,
    run: &RunEntry,
) -> Result<Option<(RunEntry, StoredRun)>> {
    let mut run = run.clone();
    loop {
        let error = match journal_of(context, session, &run).await {
            Ok(stored) => return Ok(Some((run, stored))),
            Err(error) => error,
        };
        if !matches!(error.code, ErrorCode::CorruptRecord | ErrorCode::UnsupportedVersion) {
            return Err(error);
        }
        match stored_entry(context, session, &run.id).await? {
            Some(newer) if newer.number != run.number => run = newer,
            None => return Ok(None),
            Some(_) => {
                context.report_unreadable(format!("the journal of run {} cannot be read: {}", run.id, error.message));
                return Ok(None);
            }
        }
    }
}

/// Reads the journal of a pending run.
pub async fn journal_of(context: &StoreContext, session: &str, run: &RunEntry) -> Result<StoredRun> {
    StoredRun::read(&read_journal(&*context.store, session, run).await?, context.settings.seed)
}

/// Reads the session's head again; returns what it has of the run.
async fn stored_entry(context: &StoreContext, session: &str, id: &str) -> Result<Option<RunEntry>> {
    let Some(stored) = context.store.head(session).await? else { return Ok(None) };
    Ok(context.head(session, &stored).await?.run(id).cloned())
}

/// Reads the session's head again; returns true if the run has ended, or has another journal than that of the entry:
/// a question has begun.
pub async fn is_journal_over(context: &StoreContext, session: &str, run: &RunEntry) -> Result<bool> {
    let stored = stored_entry(context, session, &run.id).await?;
    Ok(stored.is_none_or(|stored| stored.number != run.number))
}
