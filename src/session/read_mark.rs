//! Marks a session as read (R79).

use super::open_session::OpenSession;
use crate::error::Result;
use crate::store::{Change, ReadMark};

/// Counts as read what this session had when `read` was made. Its place in the list stays, and what another writer
/// appended since stays unread.
///
/// # Errors
/// The store's own.
pub async fn mark_read(session: &OpenSession, read: ReadMark) -> Result<()> {
    session.commit(Change { read: Some(read), ..session.new_change() }).await?;
    session.notify();
    Ok(())
}
