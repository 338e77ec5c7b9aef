//! `Session.branches`: the session's history, and the other sides of forks that two writers made.

use super::results::{BranchResult, result_to_js};
use super::session_inner::SessionInner;
use crate::error::Result;
use crate::history::LogRecord;
use crate::session_head::SessionHead;
use crate::store::{RecordKind, StoredBranch, open_record};
use wasm_bindgen::JsValue;

/// The branch that is the session's history.
pub const MAIN_BRANCH: &str = "main";

/// Returns all branches, `main` first.
///
/// # Errors
/// If the store cannot be read.
pub async fn branches(session: &SessionInner) -> Result<JsValue> {
    session.refresh().await?;
    let stored = session.context.store.branches(&session.id).await?;
    let log = session.log.borrow();
    let mut branches = vec![BranchResult {
        branch: MAIN_BRANCH.into(),
        kind: "main",
        parent: None,
        forked_after: None,
        created_at: log.head.created_at,
        message_count: log.head.next_seq,
    }];
    for StoredBranch { id, head, fork_head, log: records } in stored {
        // A side whose head cannot be read is shown with what is known of it.
        let read = |head| open_record::<SessionHead>(RecordKind::Head, head).ok();
        let (head, fork_head) = (read(&head), fork_head.as_ref().and_then(read));
        let shared = fork_head.map_or(0, |head| head.next_seq);
        let last_shared = log.history.messages().iter().rfind(|message| message.seq < shared);
        let first = records.first().and_then(|record| open_record::<LogRecord>(RecordKind::Log, &record.value).ok());
        let created_at = head.as_ref().map_or(0, |head| head.updated_at);
        branches.push(BranchResult {
            branch: id,
            kind: "conflict",
            parent: Some(MAIN_BRANCH),
            forked_after: last_shared.map(|message| message.id.clone()),
            created_at: first.map_or(created_at, |record| record.at),
            message_count: head.map_or(0, |head| head.next_seq),
        });
    }
    Ok(result_to_js(&branches))
}
