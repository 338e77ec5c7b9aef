//! Reads the older records of a session that was opened by the end of its log.
//!
//! The newest messages are shown first. Whatever needs the whole history waits for it here; otherwise it is read in the
//! background.

use super::open_session::OpenSession;
use super::read_error::ReadError;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Finding, FindingCode};
use crate::store::read_older;

impl OpenSession {
    /// Waits until the history is whole, or has all that the store can read of it. A failure is reported, and kept for
    /// `status` (R7).
    ///
    /// # Errors
    /// Those of the store if nothing of the history can be read, `closed`.
    pub async fn read_readable(&self) -> Result<()> {
        let read = self.read_older().await;
        self.or_show_rest(read)
    }

    /// Takes the outcome of a read for which the messages that were read are shown, if there are any.
    pub fn or_show_rest(&self, read: Result<()>) -> Result<()> {
        let Err(error) = read else { return Ok(()) };
        self.context.check_open()?;
        let is_lost = error.code == ErrorCode::Evicted || self.is_deleted();
        if is_lost || self.log.borrow().history.messages().is_empty() {
            return Err(error);
        }
        self.note_read_failure(&error);
        Ok(())
    }

    /// Reports a failed read, once until a read succeeds.
    pub fn note_read_failure(&self, error: &Error) {
        if self.context.check_open().is_err() {
            return;
        }
        let finding = match self.log.borrow().read_failure() {
            Some(failure) => failure.finding(&self.id),
            None => Finding::warning(
                FindingCode::ReadFailed,
                format!(
                    "the store failed to read session \"{}\". What was read before is shown, and the next call tries again: {}",
                    self.id, error.message
                ),
            ),
        };
        let failure = ReadError { code: error.code, message: error.message.clone(), finding };
        if self.read_failure.replace(Some(failure.clone())).is_none() {
            self.context.warn(&[failure.finding]);
            self.notify();
        }
    }

    /// Waits until the history is whole.
    ///
    /// # Errors
    /// Those of the store. The next call reads again.
    pub async fn read_older(&self) -> Result<()> {
        while !self.log.borrow().is_whole() {
            if !self.left_out.records.begin().await {
                continue;
            }
            let generation = self.log.borrow().generation;
            let read = read_older(&*self.context.store, &self.log).await;
            self.left_out.records.end();
            let has_more = self.log.borrow().generation != generation;
            if let Err(error) = read {
                self.drop_views_of_replaced_history();
                self.note_read_failure(&error);
                if has_more {
                    self.notify();
                }
                return Err(error);
            }
            self.drop_views_of_replaced_history();
            self.read_failure.take();
            let findings = self.log.borrow().findings.clone();
            self.context.report_damage(&findings);
            self.notify();
            self.merge_when_idle();
        }
        Ok(())
    }

    /// Reads the older records in the background, after the application has had time to show the newest messages.
    pub fn read_older_soon(&self) {
        if self.log.borrow().is_whole() {
            return;
        }
        let session = self.weak_self.clone();
        let pause = self.context.host.sleep(0);
        self.context.spawn(async move {
            pause.await;
            let Some(session) = session.upgrade() else { return };
            if session.context.check_open().is_err() {
                return;
            }
            // A failure is reported there, and the next call tries again.
            let _ = session.read_older().await;
        });
    }
}
