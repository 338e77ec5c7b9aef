//! Erases the old turns of all sessions (R39, R59).

use super::branches::{Branch, BranchKind, branch_log, branches};
use super::erasure::delete_messages;
use super::open_session::OpenSession;
use super::open_store::{OpenStore, SessionSettings};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::history::History;
use crate::message::Message;
use crate::store::SessionRow;
use std::collections::BTreeSet;

/// Number of sessions that are listed at once.
const SESSIONS: usize = 200;

/// What to erase: the oldest turns of each branch, as far as all of these allow.
#[derive(Clone, Debug, Default)]
pub struct PruneRequest {
    /// The turns whose last message is of this time or older; `None` for turns of any age.
    pub until: Option<Ms>,
    /// Not the newest turns of a branch, of this number.
    pub keep_newest_turns: usize,
    /// Only of this session.
    pub session: Option<String>,
    /// Only of the sessions of this channel.
    pub channel: Option<String>,
    /// Counts, and erases nothing.
    pub is_dry_run: bool,
}

/// What was erased.
#[derive(Default)]
pub struct Pruned {
    /// The sessions that lost messages.
    pub sessions: Vec<PrunedSession>,
    /// The ids of the sessions that could not be read or changed, and why.
    pub failed: Vec<(String, Error)>,
}

/// What a session lost.
pub struct PrunedSession {
    /// Its id.
    pub id: String,
    /// The number of messages that were erased, in all branches.
    pub removed: u64,
    /// The number of messages that are left, in all branches.
    pub left: u64,
}

/// Erases the oldest turns of sessions, each turn with its calls and results. A turn with a call that has no result yet stays,
/// and so do those after it: results that come later need it. What a branch shares with another one stays if one of
/// them keeps it.
///
/// # Errors `closed`; the store's own, while it lists the sessions. What goes wrong with one session is in the result.
pub async fn prune(open: &OpenStore, request: &PruneRequest) -> Result<Pruned> {
    let mut pruned = Pruned::default();
    let store = &*open.context.store;
    let mut cursor = None;
    loop {
        let rows = match &request.session {
            Some(id) => store.head(id).await?.map(|head| SessionRow { id: id.clone(), head }).into_iter().collect(),
            None => {
                let page = store.sessions(cursor.as_deref(), SESSIONS, request.channel.as_deref()).await?;
                cursor = page.cursor;
                page.items
            }
        };
        for row in rows {
            open.context.check_open()?;
            let id = row.id.clone();
            match prune_session(open, request, row).await {
                Ok(Some(session)) => pruned.sessions.push(session),
                Ok(None) => {}
                Err(error) => pruned.failed.push((id, error)),
            }
        }
        if cursor.is_none() {
            return Ok(pruned);
        }
    }
}

/// Prunes a session. Returns none if it loses nothing.
async fn prune_session(open: &OpenStore, request: &PruneRequest, row: SessionRow) -> Result<Option<PrunedSession>> {
    let head = open.context.head(&row.id, &row.head).await?;
    // Nothing else in the head tells how old the messages are: an import keeps their times.
    if request.channel.is_some() && request.channel != head.channel || head.history_revision == 0 {
        return Ok(None);
    }
    let session = open.open_session(&row.id, SessionSettings::default()).await?;
    let (erased, left) = messages_to_erase(&session, request).await?;
    if erased.is_empty() {
        return Ok(None);
    }
    let removed = erased.len() as u64;
    if !request.is_dry_run {
        delete_messages(&session, &erased).await?;
    }
    Ok(Some(PrunedSession { id: row.id, removed, left }))
}

impl PruneRequest {
    /// Returns the number of the messages of a branch that are erased: its oldest ones.
    fn count(&self, history: &History) -> usize {
        let messages = history.messages();
        let open_turn = history.open_calls().map(|call| call.turn).min();
        let turns: Vec<_> = messages.chunk_by(|one, next| one.turn == next.turn).collect();
        let oldest = turns.get(..turns.len().saturating_sub(self.keep_newest_turns)).unwrap_or_default();
        let is_erased = |turn: &&&[Message]| {
            let last = turn.iter().map(|message| message.created_at).max().unwrap_or(0);
            let number = turn.first().map_or(0, |message| message.turn);
            self.until.is_none_or(|until| last <= until) && open_turn.is_none_or(|open| number < open)
        };
        oldest.iter().take_while(is_erased).map(|turn| turn.len()).sum()
    }
}

/// Returns the ids of the messages that no branch keeps, and the number of the others.
///
/// # Errors
/// `corrupt_record` if nobody knows what a branch has; the store's own.
async fn messages_to_erase(session: &OpenSession, request: &PruneRequest) -> Result<(Vec<String>, u64)> {
    let (mut oldest, mut kept) = (Vec::new(), BTreeSet::new());
    for Branch { id, kind, is_damaged, .. } in branches(session).await? {
        if is_damaged {
            let message = format!("branch \"{id}\" of the session cannot be read, so nobody knows which turns are old");
            return Err(Error::new(ErrorCode::CorruptRecord, message));
        }
        let log = branch_log(session, &id).await?;
        // The other side of a conflict is kept until somebody has looked at it.
        let count = if kind == BranchKind::Conflict { 0 } else { request.count(&log.history) };
        let (old, rest) = log.history.messages().split_at_checked(count).unwrap_or_default();
        oldest.extend(old.iter().map(|message| message.id.clone()));
        kept.extend(rest.iter().map(|message| message.id.clone()));
    }
    let mut seen = BTreeSet::new();
    oldest.retain(|id| !kept.contains(id) && seen.insert(id.clone()));
    Ok((oldest, kept.len() as u64))
}
