//! Adopts other sides of conflicts, in an open session.

use super::open_session::OpenSession;
use crate::error::{ErrorCode, Result};
use crate::store::{Change, adopt_conflict_side};

/// How often an adoption begins anew if the session was read anew meanwhile.
const MAX_ATTEMPTS: u32 = 5;

/// What is shown after an adoption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Adoption {
    /// The branch with the content of the side.
    Shown,
    /// What was shown before.
    Unshown,
}

impl OpenSession {
    /// Makes a branch of the side of a conflict that has this name, unless there is one, and returns its number; none
    /// if there is no such side.
    ///
    /// # Errors
    /// Those of [`adopt_conflict_side`].
    pub(super) async fn adopt_side(&self, name: &str, adoption: Adoption) -> Result<Option<u64>> {
        let mut attempts = 1;
        loop {
            match self.try_to_adopt(name, adoption).await {
                Err(error) if error.code == ErrorCode::Conflict && attempts < MAX_ATTEMPTS => attempts += 1,
                adopted => return adopted,
            }
            self.refresh().await?;
        }
    }

    async fn try_to_adopt(&self, name: &str, adoption: Adoption) -> Result<Option<u64>> {
        let store = &*self.context.store;
        let sides = store.branches(&self.id).await?;
        let Some(side) = sides.into_iter().find(|side| side.id == name) else { return Ok(None) };
        let _turn = self.commit_turn().await;
        let is_fork = adoption == Adoption::Unshown;
        let change = Change { is_fork, notice: self.context.notice_of(&self.id), ..self.new_change() };
        let log = adopt_conflict_side(store, &self.log, &side, change).await?;
        let number = log.branch_number();
        if adoption == Adoption::Shown && log.stored_branch().path.number == number {
            self.show_log(log);
        }
        Ok(Some(number))
    }
}
