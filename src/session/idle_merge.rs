//! Merges old log records into segments, or packs appends, while nobody writes to their session.

use super::open_session::OpenSession;
use crate::clock::Ms;
use crate::finding::{Finding, FindingCode};
use crate::store::{MergeOutcome, merge_oldest};

/// Time without a write after which a merge begins.
const IDLE_MS: Ms = 1_000;

/// Pause between two merges, in which a write that waits can begin.
const PAUSE_MS: Ms = 30;

impl OpenSession {
    /// Merges records that wait for it, when the session has been idle for a while. A turn that begins meanwhile is
    /// first. In a store that is not durable, reading many records costs no more than reading one.
    pub fn merge_when_idle(&self) {
        if self.is_unshown() || !self.context.is_durable() || !self.has_unmerged() || self.is_merging.replace(true) {
            return;
        }
        let session = self.weak_self.clone();
        let host = self.context.host.clone();
        let mut revision = Some(self.log.borrow().revision);
        self.context.spawn(async move {
            let mut pause = IDLE_MS;
            loop {
                let has_timers = host.sleep(pause).await;
                let Some(session) = session.upgrade() else { return };
                let current = session.log.borrow().revision;
                let is_idle = revision == Some(current) && !session.has_live_run();
                (revision, pause) = (Some(current), IDLE_MS);
                if !has_timers || session.context.check_open().is_err() || !session.has_unmerged() {
                    session.is_merging.set(false);
                    return;
                }
                if is_idle {
                    if !session.merge_next().await {
                        session.is_merging.set(false);
                        return;
                    }
                    (revision, pause) = (Some(session.log.borrow().revision), PAUSE_MS);
                }
            }
        });
    }

    fn has_unmerged(&self) -> bool {
        self.log.borrow().has_unmerged() || self.context.store.needs_packing(&self.id)
    }

    /// Merges once. Returns false if the next write has to start merging again.
    async fn merge_next(&self) -> bool {
        let merged = if self.log.borrow().has_unmerged() {
            merge_oldest(&*self.context.store, &self.log, &self.context.host.random_id()).await
        } else {
            self.context.store.pack(&self.id).await.map(|()| MergeOutcome::Nothing)
        };
        match merged {
            Ok(MergeOutcome::Progress) => true,
            Ok(MergeOutcome::Nothing | MergeOutcome::Conflict) => false,
            Err(error) => {
                if self.context.check_open().is_ok() {
                    let what = format!("old records of session \"{}\" could not be merged: {}", self.id, error.message);
                    self.context.warn(&[Finding::warning(FindingCode::Malformed, what)]);
                }
                false
            }
        }
    }
}
