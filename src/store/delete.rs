//! Deletes sessions, damaged ones as well.

use super::open::open_session;
use super::rebuild::REVISION_GAP;
use super::record::{RecordKind, open_record, seal_record};
use super::{Appended, Batch, LogStore};
use crate::error::{Error, ErrorCode, Result};
use crate::id::Seed;
use crate::session_head::SessionHead;

/// Conflicts after which a deletion fails with `busy`.
const MAX_CONFLICTS: u32 = 20;

/// Deletes a session. If the store has lost the head's revision, it is raised first above all that anybody may have
/// seen: the tombstone continues from it, and a tab that still shows the session can neither write to the tombstone nor
/// take a new session for its own. `operation` is the unique name of that write.
///
/// # Errors
/// `busy` if others write all the time, and the store's own. The session is as it was then, or deleted.
pub async fn delete_session(store: &dyn LogStore, id: &str, seed: Seed, operation: &str) -> Result<()> {
    for attempt in 0..MAX_CONFLICTS {
        // If the head cannot be read at all, the store may still delete it.
        let Ok(Some(stored)) = store.head(id).await else { break };
        let Err(error) = open_record::<SessionHead>(RecordKind::Head, &stored.value) else { break };
        if error.code == ErrorCode::UnsupportedVersion {
            break;
        }
        let at_least = match open_session(store, id, seed, 0).await {
            Ok(log) => log.min_revision,
            // What the log says of revisions is not known.
            Err(_) if stored.revision == 0 => REVISION_GAP,
            Err(_) => 0,
        };
        if at_least == 0 {
            break;
        }
        let head = seal_record(RecordKind::Head, &SessionHead::new(id, 0));
        let batch = Batch { head, at_least, ..Batch::default() };
        match store.append(id, stored.revision, batch, &format!("{operation}.{attempt}")).await? {
            Appended::Revision(_) => break,
            Appended::Conflict(_) | Appended::Occupied if attempt + 1 == MAX_CONFLICTS => {
                return Err(Error::new(ErrorCode::Busy, "others write to the session all the time; delete it again"));
            }
            Appended::Conflict(_) | Appended::Occupied => {}
        }
    }
    store.delete_session(id).await
}
