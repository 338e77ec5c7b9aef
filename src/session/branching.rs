//! Forks and switches of an open session: which branch it shows, and the branch that a run begins.
//!
//! An open session shows one branch, whatever others show. Its head names the branch that was written or chosen last,
//! with which the session is opened. A run that edits or regenerates shows a branch that is born with its first append;
//! if it ends without one, the branch before it is shown again.

use super::adoption::Adoption;
use super::open_session::OpenSession;
use crate::error::{Error, ErrorCode, Result};
use crate::history::History;
use crate::message::Role;
use crate::owner::StateOwner;
use crate::session_head::RunEntry;
use crate::store::{
    BranchRow, Change, Committed, SessionLog, branch_name, commit, open_fork, read_branch, reopen_fork,
};
use std::cell::RefCell;

/// The branches that an open session knows.
#[derive(Clone, Copy)]
pub(super) struct KnownBranches {
    count: u64,
    /// Those that began without a message and have one now.
    begun: u64,
    /// The one that is shown gets its number, and counts, with its first append.
    is_unborn: bool,
}

/// Creates a branch after a message, or one that shares nothing, and returns its name. It is not shown.
///
/// # Errors
/// `not_found` if the branch that is shown has no such message; the store's own.
pub async fn fork(session: &OpenSession, after: Option<&str>) -> Result<String> {
    session.refresh().await?;
    let until_seq = match after {
        Some(id) => message_seq(&session.log.borrow().history, id)? + 1,
        None => 0,
    };
    let store = &*session.context.store;
    let turn = session.commit_turn().await;
    let cell = RefCell::new(open_fork(store, &session.log, until_seq).await?);
    let change = Change { is_fork: true, notice: session.context.notice_of(&session.id), ..session.new_change() };
    let revision = commit(store, &cell, &change).await?.revision;
    drop(turn);
    let number = cell.borrow().branch_number();
    session.refresh().await?;
    session.context.announce_append(&session.id, revision);
    session.notify();
    Ok(branch_name(number))
}

/// Shows another branch: the one of this name, or the one in which a message stands beside others. The session is
/// opened with it from now on.
///
/// # Errors
/// `busy` while a run is under way here; `not_found`; the store's own.
pub async fn switch_to(session: &OpenSession, target: &str) -> Result<()> {
    session.reserve_run()?;
    let switched = show_target(session, target).await;
    session.set_run(None);
    switched?;
    session.update_pending().await;
    let revision = session.revision();
    session.context.announce_append(&session.id, revision);
    session.notify();
    Ok(())
}

/// Shows another branch, with the place of the session's run reserved.
///
/// # Errors
/// Those of [`switch_to`].
pub(super) async fn show_target(session: &OpenSession, target: &str) -> Result<()> {
    session.leave_unborn_branch().await?;
    session.refresh().await?;
    session.read_branches().await?;
    let found = find_branch(&session.log.borrow(), target);
    let number = match found {
        Ok(number) => number,
        Err(unknown) => match session.adopt_side(target, Adoption::Shown).await? {
            Some(number) => number,
            None => return Err(unknown),
        },
    };
    {
        let log = session.log.borrow();
        if log.branch_number() == number && log.stored_branch().path.number == number {
            return Ok(());
        }
    }
    let store = &*session.context.store;
    let _turn = session.commit_turn().await;
    let cell = RefCell::new(read_branch(store, &session.log, number).await?);
    let change = Change { is_switch: true, notice: session.context.notice_of(&session.id), ..session.new_change() };
    commit(store, &cell, &change).await?;
    session.show_log(cell.into_inner());
    Ok(())
}

/// Returns the number of the branch with this name, or that adopted the side of a conflict with this name, or in which
/// this message stands beside others.
///
/// # Errors
/// `not_found`.
pub fn find_branch(log: &SessionLog, target: &str) -> Result<u64> {
    let directory = log.directory();
    let first = || directory.rows().find(|row| row.first.as_deref() == Some(target)).map(BranchRow::number);
    if let Some(number) = log.branch_of_name(target).or_else(|| log.adopter_of(target)).or_else(first) {
        return Ok(number);
    }
    // A message that another one replaced: in the branch that was forked.
    let beside = directory.rows().find(|row| row.beside.as_deref() == Some(target));
    beside.map(|row| row.state.path.parent().unwrap_or(0)).ok_or_else(|| {
        let message = format!(
            "the session has no branch \"{target}\", and no branch begins with a message of this id; `branches()` lists \
             them"
        );
        Error::new(ErrorCode::NotFound, message)
    })
}

fn message_seq(history: &History, id: &str) -> Result<u64> {
    history.message(id).map(|message| message.seq).ok_or_else(|| {
        let message = format!(
            "the branch that is shown has no message \"{id}\"; `switchTo` the branch that has it, or pass another id"
        );
        Error::new(ErrorCode::NotFound, message)
    })
}

/// Returns the `seq` of the first message that a run's turn replaces: the question itself if there is another input,
/// else the first answer to it.
///
/// # Errors
/// `not_found`; `invalid_input` if an input would replace an answer.
fn replaced_seq(history: &History, id: &str, has_input: bool) -> Result<u64> {
    let seq = message_seq(history, id)?;
    let Some(message) = history.message(id) else { return Ok(seq) };
    if has_input {
        return if message.role == Role::Assistant {
            Err(Error::invalid(
                "`replace` names an answer, and `input` would stand in its place: name the question, or leave `input` \
                 out to ask for another answer",
            ))
        } else {
            Ok(seq)
        };
    }
    let in_turn = || history.messages().iter().filter(|other| other.turn == message.turn);
    let answer = in_turn().find(|other| other.role == Role::Assistant).map(|answer| answer.seq);
    Ok(answer.or_else(|| in_turn().last().map(|last| last.seq + 1)).unwrap_or(seq))
}

impl OpenSession {
    /// Replaces what is read of the session by the log of another branch.
    pub(super) fn show_log(&self, mut log: SessionLog) {
        log.generation = self.log.borrow().generation + 1;
        *self.log.borrow_mut() = log;
        self.apply_fields(&mut self.log.borrow_mut().head);
        self.drop_views_of_replaced_history();
    }

    /// Writes a change. Views show messages anew if it met forks of other writers.
    pub(super) async fn commit_and_note_branches(&self, change: &Change) -> Result<Committed> {
        let known = self.known_branches();
        let committed = commit(&*self.context.store, &self.log, change).await;
        self.note_new_branches(known);
        committed
    }

    /// Returns the number of branches that are known.
    pub(super) fn known_branches(&self) -> KnownBranches {
        let log = self.log.borrow();
        KnownBranches { count: log.head.branch_count, begun: log.head.begun_forks, is_unborn: log.is_unborn() }
    }

    /// Shows messages anew if other writers forked since then: they have other siblings.
    pub(super) fn note_new_branches(&self, before: KnownBranches) {
        let now = self.known_branches();
        let own = u64::from(before.is_unborn && !now.is_unborn);
        if now.count != before.count + own || now.begun != before.begun {
            self.surface.on_history_replaced();
        }
    }

    /// Shows the branch of a run that replaces a message. It has what is before, and is born with the run's first
    /// append.
    ///
    /// # Errors
    /// `config_invalid` if the history that the model sees is not the session's; those of [`replaced_seq`]; the
    /// store's own.
    pub async fn show_replacing(&self, id: &str, has_input: bool) -> Result<()> {
        match self.owner()? {
            StateOwner::Session | StateOwner::BegunConversation { .. } | StateOwner::Response { .. } => {}
            StateOwner::Conversation { .. } => {
                return Err(Error::config(
                    "`replace`: the service keeps this conversation and cannot forget its end; open a session with \
                     another owner, or begin another conversation",
                ));
            }
            StateOwner::Caller => {
                return Err(Error::config(
                    "`replace`: the application holds this conversation; pass the edited conversation as `input`",
                ));
            }
        }
        self.read_branches().await?;
        let until_seq = replaced_seq(&self.log.borrow().history, id, has_input)?;
        let _turn = self.commit_turn().await;
        let forked = open_fork(&*self.context.store, &self.log, until_seq).await?;
        self.forked_branch.set(self.log.borrow().branch_number());
        self.show_log(forked);
        self.notify();
        Ok(())
    }

    /// Shows the branch before that of a run that ended without an append.
    ///
    /// # Errors
    /// The store's own.
    pub async fn leave_unborn_branch(&self) -> Result<()> {
        self.leave_unborn_branch_if(&|| true).await
    }

    async fn leave_unborn_branch_if(&self, may_leave: &dyn Fn() -> bool) -> Result<()> {
        if !self.log.borrow().is_unborn() {
            return Ok(());
        }
        let _turn = self.commit_turn().await;
        let log = read_branch(&*self.context.store, &self.log, self.forked_branch.get()).await?;
        // An append may have been under way, or a run may have been resumed.
        if self.log.borrow().is_unborn() && may_leave() {
            self.show_log(log);
            self.notify();
        }
        Ok(())
    }

    /// Leaves the branch of a run that ended without an append, in the background. A failure is met by the next call.
    pub fn leave_unborn_branch_soon(&self) {
        if !self.log.borrow().is_unborn() {
            return;
        }
        let session = self.weak_self.clone();
        self.context.spawn(async move {
            let Some(session) = session.upgrade() else { return };
            let may_leave = || !session.is_run_active() && session.context.check_open().is_ok();
            if may_leave() {
                let _ = session.leave_unborn_branch_if(&may_leave).await;
            }
        });
    }

    /// Returns true if the session shows the branch that a run continues.
    pub fn shows_branch_of(&self, run: &RunEntry) -> bool {
        let log = self.log.borrow();
        let shown = &log.head.branch;
        if run.branch.is_unborn() { *shown == run.branch } else { shown.number == run.branch.number }
    }

    /// Shows the branch that a run continues.
    ///
    /// # Errors
    /// `busy` if another run is under way here; the store's own.
    pub async fn show_branch_of(&self, run: &RunEntry) -> Result<()> {
        if self.shows_branch_of(run) && !self.log.borrow().is_unborn() {
            return Ok(());
        }
        self.read_branches().await?;
        // A branch that is being left counts as left.
        let _turn = self.commit_turn().await;
        if self.shows_branch_of(run) {
            return Ok(());
        }
        if self.live_run().is_some_and(|live| live.id() != run.id) {
            let message =
                "the run is of another branch, and a run of the branch that is shown is under way; wait for it";
            return Err(Error::new(ErrorCode::Busy, message));
        }
        let store = &*self.context.store;
        let log = if run.branch.is_unborn() {
            if !self.log.borrow().is_unborn() {
                self.forked_branch.set(self.log.borrow().branch_number());
            }
            reopen_fork(store, &self.log, &run.branch).await?
        } else {
            read_branch(store, &self.log, run.branch.number).await?
        };
        self.show_log(log);
        self.notify();
        Ok(())
    }
}
