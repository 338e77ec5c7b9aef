//! The branches of a session: its history, and the other sides of forks that two writers made.

use super::open_session::OpenSession;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::LogRecord;
use crate::session_head::SessionHead;
use crate::store::{RecordKind, SessionLog, StoredBranch, open_branch, open_record};

/// The branch that is the session's history.
pub const MAIN_BRANCH: &str = "main";

/// A branch of a session.
pub struct Branch {
    /// Its id.
    pub id: String,
    /// True for the other side of a fork.
    pub is_conflict: bool,
    /// The id of the last message that it shares with `main`.
    pub forked_after: Option<String>,
    /// When it began.
    pub created_at: Ms,
    /// How many messages it has.
    pub message_count: u64,
}

/// Returns all branches, `main` first.
///
/// # Errors
/// If the store cannot be read.
pub async fn branches(session: &OpenSession) -> Result<Vec<Branch>> {
    session.refresh().await?;
    let stored = session.context.store.branches(&session.id).await?;
    let log = session.log.borrow();
    let mut branches = vec![Branch {
        id: MAIN_BRANCH.into(),
        is_conflict: false,
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
        branches.push(Branch {
            id,
            is_conflict: true,
            forked_after: last_shared.map(|message| message.id.clone()),
            created_at: first.map_or(created_at, |record| record.at),
            message_count: head.map_or(0, |head| head.next_seq),
        });
    }
    Ok(branches)
}

/// Reads the other side of a fork.
///
/// # Errors
/// `not_found`, and the store's own.
pub async fn branch_log(session: &OpenSession, branch: &str) -> Result<SessionLog> {
    let context = &session.context;
    let stored = context.store.branches(&session.id).await?;
    let Some(stored) = stored.into_iter().find(|stored| stored.id == branch) else {
        let message = format!(
            "the session has no branch \"{branch}\"; `branches()` lists them, and a branch that has grown has another name"
        );
        return Err(Error::new(ErrorCode::NotFound, message));
    };
    open_branch(&*context.store, &session.id, &stored, (context.settings.seed, context.now())).await
}

impl OpenSession {
    /// Warns of forks that were met since the last warning.
    pub fn warn_of_second_writer(&self) {
        let forks = self.context.store.fork_count(&self.id);
        if forks <= self.reported_forks.replace(forks) {
            return;
        }
        let message = format!(
            "two writers appended to session \"{}\" at the same time, which the {} store cannot prevent. Both sides are kept: \
             `branches()` lists the conflict, `messages({{ branch }})` reads it. Use one writer per session.",
            self.id, self.context.settings.kind
        );
        self.context.warn(&[Finding::warning(FindingCode::SecondWriter, message)]);
    }
}
