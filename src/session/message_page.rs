//! Pages of stored messages.

use super::audit::JsonPage;
use super::branches::branch_log;
use super::open_session::OpenSession;
use crate::error::Result;
use crate::history::{MessageFormat, MessageWriter};
use crate::json::ArrayWriter;
use crate::store::SessionLog;

impl OpenSession {
    /// Returns a page of messages of a branch, by default the one that is shown: at most `limit` before the number `before`, in order within the page.
    /// The cursor is the number of the page's first message.
    ///
    /// # Errors
    /// `not_found` for a branch that is not there; the store's own.
    pub async fn message_page(&self, branch: Option<&str>, limit: usize, before: u64) -> Result<JsonPage> {
        if let Some(branch) = branch.filter(|branch| !self.shows(branch)) {
            let log = branch_log(self, branch).await?;
            return Ok(message_page(&self.id, &log, limit, before));
        }
        // The newest page is there before older records are, with the message before it.
        if before != u64::MAX || self.log.borrow().history.messages().len() <= limit {
            self.read_readable().await?;
        }
        let read = self.read_branches().await;
        self.or_show_rest(read)?;
        Ok(message_page(&self.id, &self.log.borrow(), limit, before))
    }
}

/// Returns the last messages before a number.
fn message_page(session: &str, log: &SessionLog, limit: usize, before: u64) -> JsonPage {
    let (history, alternatives) = (&log.history, log.alternatives());
    let all = history.messages();
    let end = all.partition_point(|message| message.seq < before);
    let start = end.saturating_sub(limit);
    let writer = MessageWriter { history, session, format: MessageFormat::WithCalls, alternatives };
    let mut items = String::new();
    let mut array = ArrayWriter::new(&mut items);
    let mut before = start.checked_sub(1).and_then(|at| all.get(at)).map(|message| message.id.as_str());
    for message in all.get(start..end).unwrap_or(&[]) {
        array.object(|out| writer.write(out, message, before));
        before = Some(&message.id);
    }
    array.end();
    let first = all.get(start).filter(|_| start > 0);
    let cursor = first.map(|message| message.seq.to_string());
    JsonPage { items, cursor }
}
