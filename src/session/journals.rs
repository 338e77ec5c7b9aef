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
        let name = lock_name(context, session, &run.id);
        // A memory store has neither locks nor leases.
        let waits_here = run.is_queued() && context.claimed.borrow().contains(&name);
        let is_live = context.live.borrow().contains(&name) || waits_here || holders.has_holder(&name, run);
        match journal_of(context, session, run).await {
            Ok(mut stored) => {
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
            // A journal that cannot be read must not hide the other runs.
            Err(error) if !matches!(error.code, ErrorCode::CorruptRecord | ErrorCode::UnsupportedVersion) => {
                return Err(error);
            }
            // The run ended meanwhile, and its journal with it.
            Err(_) if is_over(context, session, &run.id).await? => {}
            Err(error) => {
                context.report_unreadable(format!("the journal of run {} cannot be read: {}", run.id, error.message))
            }
        }
    }
    Ok(())
}

/// Reads the journal of a pending run.
pub async fn journal_of(context: &StoreContext, session: &str, run: &RunEntry) -> Result<StoredRun> {
    StoredRun::read(&read_journal(&*context.store, session, run).await?, context.settings.seed)
}

/// Reads the session's head again; returns true if it does not have the run any more.
pub async fn is_over(context: &StoreContext, session: &str, id: &str) -> Result<bool> {
    let Some(stored) = context.store.head(session).await? else { return Ok(true) };
    Ok(context.head(session, &stored).await?.run(id).is_none())
}
