//! Reads the older records of a session that was opened by the end of its log.
//!
//! The newest messages are shown first. Whatever needs the whole history waits for it here; otherwise it is read in the background.

use super::platform::sleep;
use super::promise::in_background;
use super::session_inner::SessionInner;
use crate::error::Result;
use crate::finding::{Finding, FindingCode};
use crate::store::read_older;

impl SessionInner {
    /// Waits until the history is whole.
    ///
    /// # Errors
    /// Those of the store. The next call reads again.
    pub async fn read_older(&self) -> Result<()> {
        while !self.log.borrow().is_whole() {
            if !self.older_read.begin().await {
                continue;
            }
            let read = read_older(&*self.context.store, &self.log).await;
            self.older_read.end();
            read?;
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
        in_background(async move {
            sleep(0).await;
            let Some(session) = session.upgrade() else { return };
            if session.context.check_open().is_err() {
                return;
            }
            if let Err(error) = session.read_older().await
                && session.context.check_open().is_ok()
            {
                let (id, why) = (&session.id, &error.message);
                let what = format!(
                    "the older messages of session \"{id}\" could not be read, the next call tries again: {why}"
                );
                session.context.warn(&[Finding::warning(FindingCode::Malformed, what)]);
            }
        });
    }
}
