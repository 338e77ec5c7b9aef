//! The list of sessions by recency: its order, what it selects, and its pages while sessions change.

use super::context::{StoreCheckContext, ensure};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::session_head::SessionHead;
use crate::store::record::{RecordKind, seal_record};
use crate::store::{
    Appended, Batch, ChangedHead, HeadChanges, LogStore, Page, RecencyQuery, SessionRow, StoredHead, recent_sessions,
};

/// A session as it is to be listed: its name, the time of the last change of its history, and whether it is archived.
type Listed = (&'static str, Ms, bool);

/// Sessions whose order by recency is not that of their ids. Some changed at the same time.
const SESSIONS: [Listed; 9] = [
    ("a", 500, false),
    ("b", 900, true),
    ("c", 700, false),
    ("d", 700, true),
    ("e", 700, false),
    ("f", 100, true),
    ("g", 900, false),
    ("h", 1, false),
    ("i", 1_700_000_000_000, false),
];

fn batch((name, updated_at, is_archived): Listed, channel: &str) -> Batch {
    let head = SessionHead {
        updated_at,
        is_archived,
        channel: Some(channel.to_owned()),
        ..SessionHead::new(name, updated_at)
    };
    let mut batch = Batch { head: seal_record(RecordKind::Head, &head), ..Batch::default() };
    batch.describe(&head);
    batch
}

impl StoreCheckContext {
    /// Returns the names of this check's sessions, from the query's page on, through the second handle.
    async fn recent(&self, query: &RecencyQuery) -> Result<Vec<String>> {
        let (mut names, mut cursor) = (Vec::new(), query.cursor.clone());
        loop {
            let query = RecencyQuery { cursor: cursor.clone(), ..query.clone() };
            let page = recent_sessions(&*self.other, &query).await?;
            ensure!(page.items.len() <= query.page_size(), "a page of {} has {}", query.limit, page.items.len());
            names.extend(self.names(&page));
            ensure!(page.cursor.is_none() || page.cursor != cursor, "the cursor {cursor:?} leads to itself");
            cursor = page.cursor;
            if cursor.is_none() {
                return Ok(names);
            }
        }
    }

    fn names(&self, page: &Page<SessionRow>) -> Vec<String> {
        let prefix = self.session("");
        page.items.iter().filter_map(|row| row.id.strip_prefix(&prefix).map(str::to_owned)).collect()
    }
}

pub(super) async fn sessions_are_listed_by_recency(context: &StoreCheckContext) -> Result<()> {
    let channel = context.session("channel");
    for session in SESSIONS {
        context.written(&context.session(session.0), 0, batch(session, &channel)).await?;
    }
    let mut order = SESSIONS;
    order.sort_by_key(|(name, updated_at, _)| (std::cmp::Reverse(*updated_at), *name));
    for limit in [1, 2, 5, 9, 1000] {
        for archived in [None, Some(false), Some(true)] {
            for channel in [None, Some(channel.clone())] {
                let query = RecencyQuery { channel, archived, cursor: None, limit };
                let want: Vec<_> = order.iter().filter(|(_, _, is)| archived.is_none_or(|want| want == *is)).collect();
                let want: Vec<_> = want.iter().map(|(name, ..)| *name).collect();
                let got = context.recent(&query).await?;
                ensure!(got == want, "{query:?} lists {got:?}, and should list {want:?}");
            }
        }
    }
    for (channel, limit) in [(None, 1000), (Some(&*channel), 1000), (Some(&*channel), 4)] {
        let heads = context.other.heads(None, limit, channel).await?;
        let sessions = context.other.sessions(None, limit, channel).await?;
        ensure!(heads == sessions, "`heads` lists other sessions than `sessions` although none is damaged");
    }
    let other = RecencyQuery { channel: Some("no such channel".into()), ..RecencyQuery::default() };
    ensure!(context.recent(&other).await?.is_empty(), "a channel without sessions has some");
    let wrong = RecencyQuery { cursor: Some("no cursor".into()), ..RecencyQuery::default() };
    let refused = recent_sessions(&*context.store, &wrong).await.err().map(|error| error.code);
    ensure!(refused == Some(ErrorCode::InvalidInput), "a text that is no cursor gave {refused:?}");
    Ok(())
}

pub(super) async fn a_page_by_recency_stays_right_while_sessions_change(context: &StoreCheckContext) -> Result<()> {
    let channel = context.session("channel");
    for session in SESSIONS {
        context.written(&context.session(session.0), 0, batch((session.0, session.1, false), &channel)).await?;
    }
    let mut query = RecencyQuery { channel: Some(channel.clone()), archived: Some(false), cursor: None, limit: 3 };
    let first = recent_sessions(&*context.store, &query).await?;
    let names = context.names(&first);
    ensure!(names == ["i", "b", "g"], "the first page has {names:?}");
    // A listed session and one that is not listed yet move to the front, others are archived, deleted and new, and the
    // one that the cursor names is among them.
    context.written(&context.session("b"), 1, batch(("b", 2_000_000_000_000, false), &channel)).await?;
    context.written(&context.session("e"), 1, batch(("e", 2_000_000_000_001, false), &channel)).await?;
    context.written(&context.session("g"), 1, batch(("g", 900, true), &channel)).await?;
    context.store.delete_session(&context.session("c")).await?;
    context.written(&context.session("new"), 0, batch(("new", 2_000_000_000_002, false), &channel)).await?;
    query.cursor = first.cursor;
    let rest = context.recent(&query).await?;
    ensure!(rest == ["d", "a", "f", "h"], "the further pages have {rest:?}");
    query.cursor = None;
    let all = context.recent(&query).await?;
    ensure!(all == ["new", "e", "b", "i", "d", "a", "f", "h"], "a new list has {all:?}");
    // What only an edit of the head changes keeps its place.
    context.written(&context.session("g"), 2, batch(("g", 900, false), &channel)).await?;
    let all = context.recent(&query).await?;
    ensure!(all == ["new", "e", "b", "i", "g", "d", "a", "f", "h"], "after `g` was taken back a list has {all:?}");
    // A head that nobody can read is listed.
    let unreadable = Batch { head: b"no head".as_slice().into(), ..Batch::default() };
    context.written(&context.session("unreadable"), 0, unreadable).await?;
    for limit in [1, 1000] {
        let all = context.recent(&RecencyQuery { limit, archived: Some(false), ..RecencyQuery::default() }).await?;
        ensure!(all.last().is_some_and(|name| name == "unreadable"), "a list with a damaged head has {all:?}");
        ensure!(all.len() == 10, "a list with a damaged head has {all:?}");
    }
    Ok(())
}

impl StoreCheckContext {
    /// Returns this check's sessions that have changed since a mark, as the first handle reads them, and the new mark.
    async fn changes(&self, since: u64) -> Result<(Vec<ChangedHead>, u64)> {
        let Some(changes) = self.store.head_changes(Some(since)) else { return Ok((Vec::new(), since)) };
        let HeadChanges { mark, changed } = changes.await?;
        ensure!(changed.is_some(), "a few changes were too many");
        let prefix = self.session("");
        let mut changed = changed.unwrap_or_default();
        changed.retain(|one| one.id.starts_with(&prefix));
        changed.sort_by(|one, other| one.id.cmp(&other.id));
        Ok((changed, mark))
    }

    /// Appends to a session through a handle, and returns how it has changed.
    async fn changed_by(&self, handle: &dyn LogStore, name: &'static str) -> Result<ChangedHead> {
        let id = self.session(name);
        let revision = handle.head(&id).await?.map_or(0, |head| head.revision);
        let written = batch((name, 1_000, false), &self.session("channel"));
        let head = StoredHead { revision: revision.saturating_add(1), value: written.head.clone() };
        let got = handle.append(&id, revision, written, &self.operation()).await?;
        ensure!(got == Appended::Revision(head.revision), "an append to {name:?} at {revision} gave {got:?}");
        Ok(ChangedHead { id, head: Some(head) })
    }
}

/// What any handle writes is among the changes that the first one reads next, and no later.
pub(super) async fn what_another_writer_changes_is_found(context: &StoreCheckContext) -> Result<()> {
    let Some(begun) = context.store.head_changes(None) else { return Ok(()) };
    let HeadChanges { mut mark, changed } = begun.await?;
    ensure!(changed.is_none(), "without a mark {changed:?} have changed");
    let (store, other) = (&*context.store, &*context.other);
    // Both handles in turn: neither knows which number the other one took.
    let mut want = Vec::new();
    for (handle, name) in [(other, "a"), (store, "b"), (other, "c"), (store, "d")] {
        want.push(context.changed_by(handle, name).await?);
    }
    let (got, next) = context.changes(mark).await?;
    ensure!(got == want, "after four appends {got:?} have changed, and should {want:?}");
    ensure!(next > mark, "four changes led from {mark} to {next}");
    mark = next;
    for _ in 0..8 {
        for handle in [other, store, other] {
            want = vec![context.changed_by(handle, "a").await?];
        }
        let (got, next) = context.changes(mark).await?;
        ensure!(got == want, "after appends to one session {got:?} have changed, and should {want:?}");
        mark = next;
        let (got, _) = context.changes(mark).await?;
        ensure!(got.is_empty(), "after nothing {got:?} have changed");
    }
    let deleted = ChangedHead { id: context.session("b"), head: None };
    other.delete_session(&deleted.id).await?;
    let (got, mark) = context.changes(mark).await?;
    ensure!(got == [deleted], "after a deletion {got:?} have changed");
    let written = context.changed_by(other, "d").await?;
    let (got, _) = context.changes(mark).await?;
    ensure!(got == [written], "after a deletion and an append {got:?} have changed");
    Ok(())
}

/// An index of a search is written while no head has changed, is listed nowhere, and goes with what deletes or erases.
pub(super) async fn a_search_index_is_no_older_than_a_deletion(context: &StoreCheckContext) -> Result<()> {
    let (store, other) = (&*context.store, &*context.other);
    let Some(index) = store.search_index_store() else { return Ok(()) };
    let newest = || async {
        let numbers_none = || Error::new(ErrorCode::Internal, "a store with an index numbers no changes");
        Ok(store.head_changes(None).ok_or_else(numbers_none)?.await?.mark)
    };
    let record = |text: &'static str| bytes::Bytes::from_static(text.as_bytes());
    context.changed_by(other, "a").await?;
    context.changed_by(other, "b").await?;
    let (before, all) = (newest().await?, store.sessions(None, 0, None).await?.items.len());
    ensure!(index.write_index(before, record("first")).await?, "an index was not written");
    ensure!(index.read_index().await? == Some(record("first")), "the index that was written is not read");
    let listed = store.sessions(None, 0, None).await?.items.len();
    ensure!(listed == all, "beside {all} sessions, an index is one of {listed}");
    context.changed_by(other, "a").await?;
    ensure!(!index.write_index(before, record("late")).await?, "an index was written after a change");
    ensure!(index.read_index().await? == Some(record("first")), "an append removes no index");
    let stored = || async { index.write_index(newest().await?, record("again")).await };
    ensure!(stored().await?, "an index was not written again");
    other.delete_session(&context.session("a")).await?;
    ensure!(index.read_index().await?.is_none(), "the index is there after a deletion");
    ensure!(stored().await?, "an index was not written after a deletion");
    let id = context.session("b");
    let revision = other.head(&id).await?.map_or(0, |head| head.revision);
    let erasing = Batch { erases: true, ..batch(("b", 1_000, false), &context.session("channel")) };
    let got = other.append(&id, revision.saturating_add(1), erasing.clone(), &context.operation()).await?;
    ensure!(got == Appended::Conflict(revision), "an append to a later revision gave {got:?}");
    ensure!(index.read_index().await?.is_some(), "an append that was not done removes the index");
    other.append(&id, revision, erasing, &context.operation()).await?;
    ensure!(index.read_index().await?.is_none(), "the index is there after an erasure");
    ensure!(stored().await?, "an index was not written after an erasure");
    index.remove_index().await?;
    ensure!(index.read_index().await?.is_none(), "the index is there after its removal");
    Ok(())
}
