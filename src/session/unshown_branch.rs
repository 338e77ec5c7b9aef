//! Branches that are not shown: each is read as a session beside the one that shows another branch, for one append or
//! one request.

use super::branches::branch_log;
use super::open_session::OpenSession;
use super::provider_turns::AppendedContent;
use crate::error::{Error, ErrorCode, Result};
use crate::history::Origin;
use crate::json::Json;
use crate::message::Dialect;
use std::rc::Rc;

impl OpenSession {
    /// Returns the session, if it shows the branch or none is named; else the branch as a session of its own, with the
    /// settings of this one. Nobody else has it, and it has no run.
    ///
    /// # Errors
    /// `not_found`; the store's own.
    pub async fn at_branch(self: &Rc<Self>, branch: Option<&str>) -> Result<Rc<Self>> {
        let Some(branch) = branch.filter(|branch| !self.shows(branch)) else { return Ok(self.clone()) };
        let log = branch_log(self, branch).await?;
        self.context.report_damage(&log.findings);
        Ok(self.beside(log))
    }

    /// Notes what a request of a branch has told about the service that the whole session asks.
    pub fn note_drop_of(&self, branch: &Self) {
        if branch.renderer.borrow().has_unsaved_drop() {
            self.renderer.borrow_mut().note_drop();
        }
    }

    /// Appends to a branch as [`append`](Self::append) does to the one that is shown. Returns the session that has the
    /// branch, too.
    ///
    /// # Errors
    /// `not_found`; `wrong_state` for the other side of a conflict; those of [`append`](Self::append).
    pub async fn append_to(
        self: &Rc<Self>,
        branch: Option<&str>,
        (given, dialect): (&Json, Option<Dialect>),
        place: (&Origin, Option<u64>),
    ) -> Result<(Rc<Self>, u64, AppendedContent)> {
        let target = self.at_branch(branch).await?;
        if Rc::ptr_eq(&target, self) {
            let (revision, content) = self.append(given, dialect, place).await?;
            return Ok((target, revision, content));
        }
        let name = branch.unwrap_or_default();
        if self.log.borrow().branch_of_name(name).is_none() {
            let message = format!(
                "branch \"{name}\" is the other side of a conflict, to which nothing is appended; \
                 `messages({{ branch }})` reads it"
            );
            return Err(Error::new(ErrorCode::WrongState, message));
        }
        // Two commits of this process at once would conflict.
        let turn = self.commit_turn().await;
        self.context.check_open()?;
        let appended = target.append(given, dialect, place).await;
        drop(turn);
        let (revision, content) = appended?;
        // The next call reads again, and reports a failure.
        if self.refresh().await.unwrap_or(true) {
            self.notify();
        }
        Ok((target, revision, content))
    }
}
