//! `Session.branches`: the session's history, and the other sides of forks that two writers made.

use super::results::{BranchResult, result_to_js};
use super::session_inner::SessionInner;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::LogRecord;
use crate::session_head::SessionHead;
use crate::store::{RecordKind, SessionLog, StoredBranch, open_branch, open_record};
use wasm_bindgen::JsValue;

/// The branch that is the session's history.
pub const MAIN_BRANCH: &str = "main";

/// Returns all branches, `main` first.
///
/// # Errors
/// If the store cannot be read.
pub async fn branches(session: &SessionInner) -> Result<JsValue> {
    session.refresh().await?;
    let stored = session.context.store.branches(&session.id).await?;
    let log = session.log.borrow();
    let mut branches = vec![BranchResult {
        branch: MAIN_BRANCH.into(),
        kind: "main",
        parent: None,
        forked_after: None,
        created_at: log.head.created_at,
        message_count: log.head.next_seq,
    }];
    for StoredBranch { id, head, fork_head, log: records } in stored {
        // A side whose head cannot be read is shown with what is known of it.
        let read = |head| open_record::<SessionHead>(RecordKind::Head, head).ok();
        let (head, fork_head) = (read(&head), fork_head.as_ref().and_then(read));
        let shared = fork_head.map_or(0, |head| head.next_seq);
        let last_shared = log.history.messages().iter().rfind(|message| message.seq < shared);
        let first = records.first().and_then(|record| open_record::<LogRecord>(RecordKind::Log, &record.value).ok());
        let created_at = head.as_ref().map_or(0, |head| head.updated_at);
        branches.push(BranchResult {
            branch: id,
            kind: "conflict",
            parent: Some(MAIN_BRANCH),
            forked_after: last_shared.map(|message| message.id.clone()),
            created_at: first.map_or(created_at, |record| record.at),
            message_count: head.map_or(0, |head| head.next_seq),
        });
    }
    Ok(result_to_js(&branches))
}

/// Reads the other side of a fork.
///
/// # Errors
/// `not_found`, and the store's own.
pub async fn branch_log(session: &SessionInner, branch: &str) -> Result<SessionLog> {
    let context = &session.context;
    let stored = context.store.branches(&session.id).await?;
    let Some(stored) = stored.into_iter().find(|stored| stored.id == branch) else {
        let message = format!(
            "the session has no branch \"{branch}\"; `branches()` lists them, and a branch that has grown has another name"
        );
        return Err(Error::new(ErrorCode::NotFound, message));
    };
    open_branch(&*context.store, &session.id, &stored, (context.seed, context.now())).await
}

impl SessionInner {
    /// Warns of forks that were met since the last warning.
    pub fn warn_of_second_writer(&self) {
        let forks = self.context.store.fork_count(&self.id);
        if forks <= self.reported_forks.replace(forks) {
            return;
        }
        let message = format!(
            "two writers appended to session \"{}\" at the same time, which the {} store cannot prevent. Both sides are kept: \
             `branches()` lists the conflict, `messages({{ branch }})` reads it. Use one writer per session.",
            self.id, self.context.kind
        );
        self.context.warn(&[Finding::warning(FindingCode::SecondWriter, message)]);
    }
}
