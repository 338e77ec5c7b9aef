//! The branches of a session: those that were forked, and the other sides of forks that two writers made at once.

use super::open_session::OpenSession;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::LogRecord;
use crate::session_head::SessionHead;
use crate::store::{
    BranchRow, MAIN_BRANCH, RecordKind, SessionLog, StoredBranch, branch_name, open_branch, open_record, read_branch,
};

/// How a branch came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchKind {
    /// The session began with it.
    Main,
    /// It was forked: by `fork`, or by a run that replaced a message.
    Fork,
    /// Two writers appended at once, in a store that cannot prevent it.
    Conflict,
}

impl BranchKind {
    /// Returns the name in the public types.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Fork => "fork",
            Self::Conflict => "conflict",
        }
    }
}

/// A branch of a session.
pub struct Branch {
    /// Its name.
    pub id: String,
    /// How it came to be.
    pub kind: BranchKind,
    /// The name of the branch that it was forked from.
    pub parent: Option<String>,
    /// The id of the last message that it shares.
    pub forked_after: Option<String>,
    /// When it began.
    pub created_at: Ms,
    /// How many messages it has, with those that it shares.
    pub message_count: u64,
}

/// Returns all branches: `main`, the forks, oldest first, and the conflicts.
///
/// # Errors
/// If the store cannot be read.
pub async fn branches(session: &OpenSession) -> Result<Vec<Branch>> {
    session.refresh().await?;
    let conflicts = session.context.store.branches(&session.id).await?;
    let log = session.log.borrow();
    let stored = log.stored_branch();
    let count_of = |number: u64, row: Option<&BranchRow>| {
        let row = row.map_or(0, |row| row.state.next_seq);
        if stored.path.number == number { stored.next_seq } else { row }
    };
    let mut branches = vec![Branch {
        id: MAIN_BRANCH.into(),
        kind: BranchKind::Main,
        parent: None,
        forked_after: None,
        created_at: log.head.created_at,
        message_count: count_of(0, log.directory().row(0)),
    }];
    for row in log.directory().rows().filter(|row| row.number() != 0) {
        branches.push(Branch {
            id: row.name(),
            kind: BranchKind::Fork,
            parent: row.state.path.parent().map(branch_name),
            forked_after: row.forked_after.clone(),
            created_at: row.created_at,
            message_count: count_of(row.number(), Some(row)),
        });
    }
    branches.extend(conflicts.into_iter().map(|conflict| conflict_branch(conflict, &log)));
    Ok(branches)
}

/// Describes the other side of a fork. One whose head cannot be read is shown with what is known of it.
fn conflict_branch(stored: StoredBranch, log: &SessionLog) -> Branch {
    let StoredBranch { id, head, fork_head, log: records } = stored;
    let read = |head| open_record::<SessionHead>(RecordKind::Head, head).ok();
    let (head, fork_head) = (read(&head), fork_head.as_ref().and_then(read));
    let shared = fork_head.map_or(0, |head| head.next_seq);
    let last_shared = log.history.messages().iter().rfind(|message| message.seq < shared);
    let first = records.first().and_then(|record| open_record::<LogRecord>(RecordKind::Log, &record.value).ok());
    let created_at = head.as_ref().map_or(0, |head| head.updated_at);
    Branch {
        id,
        kind: BranchKind::Conflict,
        parent: Some(MAIN_BRANCH.to_owned()),
        forked_after: last_shared.map(|message| message.id.clone()),
        created_at: first.map_or(created_at, |record| record.at),
        message_count: head.map_or(0, |head| head.next_seq),
    }
}

/// Reads a branch that is not shown.
///
/// # Errors
/// `not_found`, and the store's own.
pub async fn branch_log(session: &OpenSession, branch: &str) -> Result<SessionLog> {
    session.refresh().await?;
    let context = &session.context;
    let directory = session.log.borrow().directory().clone();
    if branch == MAIN_BRANCH || directory.rows().any(|row| row.name() == branch) {
        let number = directory.rows().find(|row| row.name() == branch).map_or(0, BranchRow::number);
        return read_branch(&*context.store, &session.log, number).await;
    }
    let stored = context.store.branches(&session.id).await?;
    let Some(stored) = stored.into_iter().find(|stored| stored.id == branch) else {
        let message = format!(
            "the session has no branch \"{branch}\"; `branches()` lists them, and a conflict that has grown has another \
             name"
        );
        return Err(Error::new(ErrorCode::NotFound, message));
    };
    open_branch(&*context.store, &session.id, &stored, (context.settings.seed, context.now())).await
}

impl OpenSession {
    /// Returns the name of the branch that is shown. A branch that is not stored yet has none: it is that of the
    /// branch that is left for it.
    pub fn branch_name(&self) -> String {
        let log = self.log.borrow();
        branch_name(if log.is_unborn() { self.forked_branch.get() } else { log.branch_number() })
    }

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
