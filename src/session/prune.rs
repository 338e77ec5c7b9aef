//! Erases the old turns of all sessions (R39, R59).

use super::branches::{Branch, BranchKind, branch_log, branches};
use super::erasure::delete_chosen;
use super::open_session::OpenSession;
use super::open_store::{OpenStore, SessionSettings};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::history::History;
use crate::message::Message;
use crate::provider::has_compaction;
use crate::store::{SessionRow, messages_erased_with};
use std::collections::BTreeSet;

/// Number of sessions that are listed at once.
const SESSIONS_PER_READ: usize = 200;

/// Conflicts after which a session counts as failed.
const MAX_CONFLICTS: u32 = 5;

/// What to erase: the oldest turns of each branch, as far as all of these allow.
#[derive(Clone, Debug, Default)]
pub struct PruneRequest {
    /// The turns whose last message is of this time or older; `None` for turns of any age.
    pub until: Option<Ms>,
    /// Keeps this many of the newest turns of each branch.
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

/// Erases the oldest turns of sessions, each turn whole: with its calls and results. It keeps a turn with a call that
/// has no result yet, and those after it, and what a branch shares with another one that keeps it.
///
/// # Errors `config_invalid` for a request that would erase everything; `closed`; the store's own, while it lists the
/// sessions. What fails in one session is part of the result.
pub async fn prune(open: &OpenStore, request: &PruneRequest) -> Result<Pruned> {
    if request.until.is_none() && request.keep_newest_turns == 0 {
        let sentence = "`prune` needs `olderThan` or `keepNewestTurns`; `clear` and `deleteSession` remove all";
        return Err(Error::config(sentence));
    }
    let mut pruned = Pruned::default();
    let store = &*open.context.store;
    let mut cursor = None;
    loop {
        let rows = match &request.session {
            Some(id) => store.head(id).await?.map(|head| SessionRow { id: id.clone(), head }).into_iter().collect(),
            None => {
                let page = store.sessions(cursor.as_deref(), SESSIONS_PER_READ, request.channel.as_deref()).await?;
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
    // Nothing else in the head shows how old the messages are: an import keeps their times.
    if request.channel.is_some() && request.channel != head.channel || head.history_revision == 0 {
        return Ok(None);
    }
    let session = open.open_session(&row.id, SessionSettings::default()).await?;
    for _ in 0..MAX_CONFLICTS {
        let chosen = messages_to_erase(&session, request).await?;
        if chosen.ids.is_empty() {
            return Ok(None);
        }
        // With the answers that have compactions of them.
        let erased = if request.is_dry_run {
            messages_erased_with(&*open.context.store, &session.log, &chosen.ids, has_compaction).await?
        } else {
            match delete_chosen(&session, &chosen.ids, Some(chosen.chosen_in)).await {
                Err(error) if error.code == ErrorCode::Conflict => continue,
                deleted => deleted?.messages,
            }
        };
        let lost = erased.iter().filter(|id| chosen.kept.contains(*id)).count();
        let left = (chosen.kept.len() - lost) as u64;
        return Ok(Some(PrunedSession { id: row.id, removed: erased.len() as u64, left }));
    }
    Err(Error::new(ErrorCode::Busy, "other writers keep changing the session; try again in a moment"))
}

impl PruneRequest {
    /// Returns the number of the oldest messages of a branch that may be erased.
    fn prunable(&self, history: &History) -> usize {
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

/// The messages of a session that are to be erased.
struct ChosenMessages {
    ids: Vec<String>,
    /// The others.
    kept: BTreeSet<String>,
    /// As [`Erasure::chosen_in`](crate::store::Erasure::chosen_in).
    chosen_in: (u64, u64),
}

/// Returns the messages that no branch keeps. The other side of a conflict keeps those that it alone has.
///
/// # Errors
/// `corrupt_record` if a branch cannot be read; the store's own.
async fn messages_to_erase(session: &OpenSession, request: &PruneRequest) -> Result<ChosenMessages> {
    let branches = branches(session).await?;
    let chosen_in = (session.log.borrow().head.history_revision, session.log.borrow().head.branch_count);
    let (mut ids, mut kept) = (Vec::new(), BTreeSet::new());
    for Branch { id, is_damaged, .. } in branches.into_iter().filter(|branch| branch.kind != BranchKind::Conflict) {
        if is_damaged {
            let message = format!("branch \"{id}\" of the session cannot be read, so nothing of the session is erased");
            return Err(Error::new(ErrorCode::CorruptRecord, message));
        }
        let log = branch_log(session, &id).await?;
        let (old, rest) = log.history.messages().split_at_checked(request.prunable(&log.history)).unwrap_or_default();
        ids.extend(old.iter().map(|message| message.id.clone()));
        kept.extend(rest.iter().map(|message| message.id.clone()));
    }
    let mut erased = BTreeSet::new();
    ids.retain(|id| !kept.contains(id) && erased.insert(id.clone()));
    Ok(ChosenMessages { ids, kept, chosen_in })
}
