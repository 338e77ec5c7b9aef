//! Searches the sessions of a store.

use super::context::StoreContext;
use crate::error::{Error, ErrorCode, Result};
use crate::store::{
    ChangedHead, HeadChanges, Page, RecencyQuery, SearchHit, SearchIndex, SearchedSession, SessionSearch, open_session,
};
use bytes::Bytes;
use futures_util::future::join_all;
use std::rc::Rc;

/// Number of hits in a page if the caller sets no limit.
pub const DEFAULT_HITS: u64 = 20;

/// The most hits in a page: each has been read.
pub const MAX_HITS: u64 = 100;

/// Number of heads that are read at once.
const HEADS_PER_READ: usize = 1_000;

/// Number of sessions whose texts are read at once: they wait for the store together, and all are in memory.
const SESSIONS_PER_READ: usize = 4;

/// Returns a page of the sessions that have all words of a text in their title and the messages of their branch. A page
/// may have fewer hits than its limit, or none, although another one follows: the texts of no more than 200 sessions
/// are read for it. Texts that cannot be read are reported and left out.
///
/// # Errors
/// `invalid_input` for a cursor that no page gave, or too many words; the store's own, if it can read no head, or the texts
/// of no session.
pub async fn search_sessions(context: &Rc<StoreContext>, text: &str, query: &RecencyQuery) -> Result<Page<SearchHit>> {
    let mut search = SessionSearch::new(text, query)?;
    if search.is_empty() {
        return Ok(Page { items: Vec::new(), cursor: None });
    }
    add_sessions(context, &mut search, query.channel.as_deref()).await?;
    let mut reader = search.read();
    let (mut has_read, mut failure) = (false, None);
    loop {
        let ids = reader.next_sessions(SESSIONS_PER_READ);
        if ids.is_empty() {
            break;
        }
        context.check_open()?;
        let (seed, now) = (context.settings.seed, context.now());
        let logs = join_all(ids.iter().map(|id| open_session(&*context.store, id, seed, now))).await;
        for (id, log) in ids.iter().zip(logs) {
            match log {
                Ok(log) => {
                    context.report_damage(&log.findings);
                    if let Some(failure) = log.read_failure() {
                        context.report_unreadable(not_searched("a part of ", id, &failure.error));
                    }
                    has_read = true;
                    reader.add_if_found(&log);
                }
                Err(error) => {
                    context.report_unreadable(not_searched("", id, &error));
                    failure = Some(error);
                }
            }
        }
    }
    store_index(context);
    match failure.filter(|_| !has_read) {
        Some(error) => Err(error),
        None => Ok(reader.page()),
    }
}

/// Stores the index, if the store has a place for one and has an old one, in the background.
fn store_index(context: &Rc<StoreContext>) {
    let index = context.search_index.borrow();
    let is_due = index.is_to_be_stored() || index.is_to_be_removed();
    if !is_due || context.is_storing_index.get() || context.store.search_index_store().is_none() {
        return;
    }
    context.is_storing_index.set(true);
    let context_of_task = Rc::clone(context);
    context.spawn(async move {
        // After an error the next one to try is the next `open`: a first search that takes longer is all that it costs.
        let is_done = store_index_now(&context_of_task).await.is_ok();
        context_of_task.is_storing_index.set(!is_done);
    });
}

/// Stores the index, unless heads have changed since, or removes the one that the store has.
async fn store_index_now(context: &StoreContext) -> Result<()> {
    let Some(store) = context.store.search_index_store() else { return Ok(()) };
    let index = || context.search_index.borrow_mut();
    if index().is_to_be_removed() {
        store.remove_index().await?;
        index().set_stored();
        return Ok(());
    }
    let since = index().mark();
    let Some(changes) = context.store.head_changes(since) else { return Ok(()) };
    match changes.await?.changed {
        // Another search brings the index up to date, and is followed by another try.
        Some(changed) if !changed.is_empty() || index().mark() != since => return Ok(()),
        Some(_) => {}
        // The mark is of another connection, and perhaps of another database.
        None => {
            context.search_index.take();
            return Ok(());
        }
    }
    let Some((mark, record)) = index().take_record() else { return Ok(()) };
    if !store.write_index(mark, record).await? {
        index().set_unstored();
    }
    Ok(())
}

/// Takes the index that the store has, if nothing is known of the sessions.
async fn load_stored_index(context: &StoreContext) -> Result<()> {
    let is_unknown = || {
        let index = context.search_index.borrow();
        index.mark().is_none() && !index.is_too_large()
    };
    let Some(store) = context.store.search_index_store().filter(|_| is_unknown()) else { return Ok(()) };
    let record = match store.read_index().await {
        Err(error) if matches!(error.code, ErrorCode::Closed | ErrorCode::Evicted) => return Err(error),
        // The record may be damaged while all heads can be read; if nothing can, reading them fails next.
        Err(_) => Some(Bytes::new()),
        Ok(record) => record,
    };
    let index = record.as_ref().map(SearchIndex::of_record);
    // Another search may have been faster.
    match index.filter(|_| is_unknown()) {
        Some(Some(index)) => drop(context.search_index.replace(index)),
        Some(None) => context.search_index.borrow_mut().set_unstored(),
        None => {}
    }
    Ok(())
}

/// Adds all sessions to a search: those of the index, after the heads that have changed since were read, or those of
/// all heads.
async fn add_sessions(context: &StoreContext, search: &mut SessionSearch, channel: Option<&str>) -> Result<()> {
    load_stored_index(context).await?;
    let HeadChanges { mark, changed } = loop {
        let since = context.search_index.borrow().mark();
        let changes = context.store.head_changes(since).filter(|_| !context.search_index.borrow().is_too_large());
        let Some(changes) = changes else {
            return add_stored(context, search, channel, &mut SearchIndex::default()).await;
        };
        let read = changes.await?;
        // Otherwise another search has changed the index meanwhile, and these are not the changes that it lacks.
        if context.search_index.borrow().mark() == since {
            break read;
        }
    };
    if let Some(changed) = changed
        && let Some(damaged) = add_indexed(context, search, changed, mark)
    {
        return add_damaged(context, search, damaged).await;
    }
    // Searches at once begin anew, too.
    let before = context.search_index.take();
    // What is written while the heads are read has a later number than the mark, and is read again by the next search.
    let mut index = before.begin_again(mark);
    add_stored(context, search, None, &mut index).await?;
    if context.search_index.borrow().mark().is_none_or(|kept| kept <= mark) {
        context.search_index.replace(index);
    }
    Ok(())
}

/// Brings the index up to date and adds its sessions. Returns the ids of those whose head is damaged; none if there is
/// no index any more, or if the numbers of the changes are lower than before: another database has them.
fn add_indexed(
    context: &StoreContext,
    search: &mut SessionSearch,
    changed: Vec<ChangedHead>,
    mark: u64,
) -> Option<Vec<String>> {
    let mut index = context.search_index.borrow_mut();
    if index.mark()? > mark {
        *index = SearchIndex::default();
        return None;
    }
    for ChangedHead { id, head } in changed {
        index.set(id, head.as_ref());
    }
    index.move_to(mark);
    index.mark()?;
    index.sessions().for_each(|session| search.add(session));
    Some(index.damaged())
}

/// Adds sessions whose heads are rebuilt for it.
async fn add_damaged(context: &StoreContext, search: &mut SessionSearch, ids: Vec<String>) -> Result<()> {
    for id in ids {
        match context.store.head(&id).await {
            Ok(Some(stored)) => search.add(&SearchedSession::of(context.head(&id, &stored).await?)),
            Ok(None) => {}
            // Of another key: the list shows that it is there.
            Err(error) if error.code == ErrorCode::WrongKey => {
                context.report_unreadable(not_searched("", &id, &error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Adds the sessions of all heads that the store has, of a channel or of any, and keeps them in an index.
async fn add_stored(
    context: &StoreContext,
    search: &mut SessionSearch,
    channel: Option<&str>,
    index: &mut SearchIndex,
) -> Result<()> {
    let mut cursor = None;
    loop {
        let rows = context.store.heads(cursor.as_deref(), HEADS_PER_READ, channel).await?;
        for row in rows.items {
            let session = SearchedSession::of_stored(&row.head);
            match &session {
                Some(session) => search.add(session),
                None => search.add(&SearchedSession::of(context.head(&row.id, &row.head).await?)),
            }
            if index.mark().is_some() {
                index.keep(row.id, session);
            }
        }
        cursor = rows.cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

fn not_searched(part: &str, session: &str, error: &Error) -> String {
    format!("{part}session \"{session}\" cannot be searched: {}", error.message)
}
