//! Searches the sessions of a store.

use super::context::StoreContext;
use crate::error::{Error, Result};
use crate::store::{Page, RecencyQuery, SearchHit, SessionSearch, open_session};

/// Number of hits in a page if the caller sets no limit.
pub const DEFAULT_HITS: u64 = 20;

/// The most hits in a page: each has been read.
pub const MAX_HITS: u64 = 100;

/// Number of heads that are read at once.
const HEADS_PER_READ: usize = 1_000;

/// Returns a page of the sessions that have all words of a text in their title and the messages of their branch. A page
/// may have fewer hits than its limit, or none, although another one follows: the texts of no more than 200 sessions
/// are read for it. Texts that cannot be read are reported and left out.
///
/// # Errors
/// `invalid_input` for a cursor that no page gave, or too many words; the store's own, if it can read no head, or the texts
/// of no session.
pub async fn search_sessions(context: &StoreContext, text: &str, query: &RecencyQuery) -> Result<Page<SearchHit>> {
    let mut search = SessionSearch::new(text, query)?;
    if search.is_empty() {
        return Ok(Page { items: Vec::new(), cursor: None });
    }
    let mut cursor = None;
    loop {
        let rows = context.store.heads(cursor.as_deref(), HEADS_PER_READ, query.channel.as_deref()).await?;
        for row in rows.items {
            search.add(context.head(&row.id, &row.head).await?);
        }
        cursor = rows.cursor;
        if cursor.is_none() {
            break;
        }
    }
    let mut reader = search.read();
    let (mut has_read, mut failure) = (false, None);
    while let Some(head) = reader.next_session() {
        context.check_open()?;
        match open_session(&*context.store, &head.id, context.settings.seed, context.now()).await {
            Ok(log) => {
                context.report_damage(&log.findings);
                if let Some(failure) = log.read_failure() {
                    context.report_unreadable(not_searched("a part of ", &head.id, &failure.error));
                }
                has_read = true;
                reader.add_if_found(head, &log.history);
            }
            Err(error) => {
                context.report_unreadable(not_searched("", &head.id, &error));
                failure = Some(error);
            }
        }
    }
    match failure.filter(|_| !has_read) {
        Some(error) => Err(error),
        None => Ok(reader.page()),
    }
}

fn not_searched(part: &str, session: &str, error: &Error) -> String {
    format!("{part}session \"{session}\" cannot be searched: {}", error.message)
}
