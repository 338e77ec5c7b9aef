//! Searches the sessions of a store.

use super::context::StoreContext;
use crate::error::{ErrorCode, Result};
use crate::store::{Page, RecencyQuery, SearchHit, SessionSearch, open_session};

/// Number of hits in a page if the caller sets no limit.
pub const HITS: u64 = 20;

/// The most hits in a page: each has been read.
pub const MAX_HITS: u64 = 100;

/// Number of heads that are read at once.
const HEADS: usize = 1_000;

/// Returns a page of the sessions that have all words of a text in their title and the messages of their branch. A page
/// may have fewer hits than its limit, or none, although another one follows: the texts of no more than 200 sessions
/// are read for it. A session whose texts cannot be read is reported and left out.
///
/// # Errors
/// `invalid_input` for a cursor that no page gave, or too many words; the store's own.
pub async fn search_sessions(context: &StoreContext, text: &str, query: &RecencyQuery) -> Result<Page<SearchHit>> {
    let mut search = SessionSearch::new(text, query)?;
    if search.is_empty() {
        return Ok(Page { items: Vec::new(), cursor: None });
    }
    let mut cursor = None;
    loop {
        let rows = context.store.sessions(cursor.as_deref(), HEADS, query.channel.as_deref()).await?;
        for row in rows.items {
            search.add(context.head(&row.id, &row.head).await?);
        }
        cursor = rows.cursor;
        if cursor.is_none() {
            break;
        }
    }
    let mut reader = search.read();
    while let Some(head) = reader.next_session() {
        match open_session(&*context.store, &head.id, context.settings.seed, context.now()).await {
            Ok(log) => reader.take(head, &log.history),
            Err(error) if error.code == ErrorCode::CorruptRecord => {
                context.report_unreadable(format!("session \"{}\" cannot be searched: {}", head.id, error.message));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(reader.page())
}
