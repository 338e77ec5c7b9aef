//! Reads the rows of branches that were left out when a session with many of them was opened.
//!
//! Whatever needs them waits for them here. A view is shown without the siblings of its messages, which follow.

use super::open_session::OpenSession;
use crate::error::Result;
use crate::store::read_all_branches;

impl OpenSession {
    /// Waits until all branches are known.
    ///
    /// # Errors
    /// Those of the store. The next call reads again.
    pub async fn read_branches(&self) -> Result<()> {
        while self.log.borrow().has_unread_branches() {
            if !self.left_out.branches.begin().await {
                continue;
            }
            let read = read_all_branches(&*self.context.store, &self.log).await;
            self.left_out.branches.end();
            if let Err(error) = read {
                self.note_read_failure(&error);
                return Err(error);
            }
            self.read_failure.take();
            let findings = self.log.borrow().findings.clone();
            self.context.report_damage(&findings);
        }
        Ok(())
    }

    /// Reads them in the background for a view, after the application has had time to show it. Called before each
    /// snapshot: one that was made without them is made anew, whoever has read them since.
    pub fn read_branches_soon(&self) {
        if self.context.check_open().is_err() {
            return;
        }
        if !self.log.borrow().has_unread_branches() {
            self.show_siblings();
            return;
        }
        self.left_out.view_lacks_siblings.set(true);
        if self.left_out.is_view_waiting.replace(true) {
            return;
        }
        let session = self.weak_self.clone();
        let pause = self.context.host.sleep(0);
        self.context.spawn(async move {
            pause.await;
            let Some(session) = session.upgrade() else { return };
            let is_open = || session.context.check_open().is_ok();
            // A failure is reported there, and the next snapshot tries again.
            let has_read = is_open() && session.read_branches().await.is_ok();
            session.left_out.is_view_waiting.set(false);
            // A view of a store that was closed meanwhile keeps its last snapshot.
            if has_read && is_open() {
                session.show_siblings();
                session.notify();
            }
        });
    }

    /// Lets the next snapshot be made anew, if the last one was made without siblings.
    fn show_siblings(&self) {
        if self.left_out.view_lacks_siblings.replace(false) {
            self.surface.on_history_replaced();
        }
    }
}
