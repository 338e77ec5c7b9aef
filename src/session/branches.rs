//! The branches of a session: those that were forked, and the other sides of forks that two writers made at once.

use super::open_session::OpenSession;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::history::LogRecord;
use crate::session_head::SessionHead;
use crate::store::{
    MAIN_BRANCH, RecordKind, SessionLog, StoredBranch, branch_name, is_repeated_adoption, open_conflict_side,
    open_record, read_branch, refresh_directory,
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
    /// The name that the conflict had whose content it was born with.
    pub adopted: Option<String>,
    /// True if its record in the directory cannot be read: what else is said of it is unknown. Of these branches only
    /// the main one can be shown.
    pub is_damaged: bool,
}

/// Returns all branches: `main`, the forks, oldest first, and the conflicts that no branch has adopted.
///
/// # Errors
/// If the store cannot be read.
pub async fn branches(session: &OpenSession) -> Result<Vec<Branch>> {
    session.refresh().await?;
    let conflicts = session.context.store.branches(&session.id).await?;
    // The rows may be those of a read that began before this call.
    session.read_branches().await?;
    refresh_directory(&*session.context.store, &session.log).await?;
    let log = session.log.borrow();
    let mut branches: Vec<_> = (0..=log.highest_branch()).map(|number| stored_branch(&log, number)).collect();
    let is_adopted = |side: &StoredBranch| {
        log.directory().rows().any(|row| row.has_adopted(&side.id)) || is_repeated_adoption(&log, side)
    };
    let conflicts = conflicts.into_iter().filter(|side| !is_adopted(side));
    branches.extend(conflicts.map(|conflict| conflict_branch(conflict, &log)));
    Ok(branches)
}

/// Describes the main branch or a fork.
fn stored_branch(log: &SessionLog, number: u64) -> Branch {
    let current = Some(log.stored_branch()).filter(|state| state.path.number == number);
    let row = log.directory().row(number);
    let state = current.as_ref().or_else(|| row.map(|row| &row.state));
    Branch {
        id: branch_name(number),
        kind: if number == 0 { BranchKind::Main } else { BranchKind::Fork },
        parent: state.and_then(|state| state.path.parent()).map(branch_name),
        forked_after: row.and_then(|row| row.forked_after.clone()),
        created_at: if number == 0 { log.head.created_at } else { row.map_or(0, |row| row.created_at) },
        message_count: state.map_or(0, |state| state.next_seq.saturating_sub(state.erased)),
        adopted: row.and_then(|row| row.adopted.as_ref()).map(|adopted| adopted.side.clone()),
        is_damaged: state.is_none(),
    }
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
        message_count: head.as_ref().map_or(0, SessionHead::message_count),
        adopted: None,
        is_damaged: head.is_none(),
    }
}

/// Reads a branch that is not shown.
///
/// # Errors
/// `not_found`, and the store's own.
pub async fn branch_log(session: &OpenSession, branch: &str) -> Result<SessionLog> {
    session.refresh().await?;
    session.read_branches().await?;
    let context = &session.context;
    let number = session.log.borrow().branch_of_name(branch);
    if let Some(number) = number {
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
    open_conflict_side(&*context.store, &session.id, &stored, (context.settings.seed, context.now())).await
}

impl OpenSession {
    /// Returns the name of the branch that is shown. A branch that is not stored yet has none: it is that of the
    /// branch that is left for it.
    pub fn branch_name(&self) -> String {
        let log = self.log.borrow();
        branch_name(if log.is_unborn() { self.forked_branch.get() } else { log.branch_number() })
    }

    /// Returns true if the branch of this name is shown, and stored.
    pub fn shows(&self, branch: &str) -> bool {
        !self.log.borrow().is_unborn() && branch == self.branch_name()
    }

    /// Warns of forks that were met since the last warning.
    pub fn warn_of_second_writer(&self) {
        let forks = self.context.store.fork_count(&self.id);
        if forks <= self.reported_forks.replace(forks) {
            return;
        }
        let message = format!(
            "two writers appended to session \"{}\" at the same time, which the {} store cannot prevent. Both sides are kept: \
             `branches()` lists the conflict, `messages({{ branch }})` reads it, `switchTo` makes a branch of it. Use one writer per session.",
            self.id, self.context.settings.kind
        );
        self.context.warn(&[Finding::warning(FindingCode::SecondWriter, message)]);
    }
}
