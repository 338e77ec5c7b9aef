//! Branches that are not shown: each is read as a session beside the one that shows another branch, for one append or
//! one request.

use super::adoption::Adoption;
use super::branches::branch_log;
use super::open_session::OpenSession;
use super::provider_turns::AppendedContent;
use crate::error::{Error, ErrorCode, Result};
use crate::history::Origin;
use crate::json::Json;
use crate::message::Dialect;
use crate::store::branch_name;
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
    /// `not_found`; those of [`append`](Self::append), and of [`adopt_conflict_side`](crate::store::adopt_conflict_side)
    /// for the other side of a conflict.
    pub async fn append_to(
        self: &Rc<Self>,
        branch: Option<&str>,
        (given, dialect): (&Json, Option<Dialect>),
        place: (&Origin, Option<u64>),
    ) -> Result<(Rc<Self>, u64, AppendedContent)> {
        let (adopted, place) = self.adopted_for_append(branch, place).await?;
        let target = self.at_branch(adopted.as_deref().or(branch)).await?;
        if Rc::ptr_eq(&target, self) {
            let (revision, content) = self.append(given, dialect, place).await?;
            return Ok((target, revision, content));
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

    /// Adopts the side of a conflict that messages are to be appended to. Returns the name of its branch, none if no
    /// side has this name, and the place of the append with the revision after the adoption.
    async fn adopted_for_append<'o>(
        &self,
        branch: Option<&str>,
        (origin, expected): (&'o Origin, Option<u64>),
    ) -> Result<(Option<String>, (&'o Origin, Option<u64>))> {
        if branch.is_some_and(|branch| !self.shows(branch)) {
            self.read_branches().await?;
        }
        let known = |branch: &&str| self.shows(branch) || self.log.borrow().branch_of_name(branch).is_some();
        let Some(branch) = branch.filter(|branch| !known(branch)) else { return Ok((None, (origin, expected))) };
        self.refresh().await?;
        self.read_branches().await?;
        let adopted = self.log.borrow().adopter_of(branch);
        if let Some(number) = adopted {
            return Ok((Some(branch_name(number)), (origin, expected)));
        }
        let revision = self.revision();
        if expected.is_some_and(|expected| expected != revision) {
            let message = "another writer appended to the session; read it again before appending";
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        let number = self.adopt_side(branch, Adoption::Unshown).await?;
        self.refresh().await?;
        let expected = expected.map(|_| self.revision());
        Ok((number.map(branch_name), (origin, expected)))
    }
}
