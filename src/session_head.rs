//! A session's head: identity, owner, channel, state bag and counters. It is small; every append writes it again.

mod overview;
mod run_entry;

use crate::branch_path::BranchPath;
use crate::clock::Ms;
use crate::encoding::{UnknownFields, encode_fields, encode_with_unknown_fields};
use crate::json::Json;
use crate::term_filter::TermFilter;
use minicbor::bytes::ByteVec;
pub use overview::{MAX_PREVIEW_CHARS, Overview, Preview, one_line};
pub use run_entry::{FIRST_QUEUED, RunEntry};
use std::collections::BTreeSet;

/// Number of runs resumed from snapshots that a session remembers, so that none of them begins twice. The head is
/// written with each append.
const MAX_RESUMED_RUNS: usize = 64;

/// Number of marks of what providers refused that a session remembers. A mark has some ten bytes.
const MAX_REFUSED: usize = 256;

/// The part of a session that is known without reading its log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionHead {
    /// The session's id: any non-empty text.
    pub id: String,
    /// When it was first written.
    pub created_at: Ms,
    /// The store's revision of the first write, 0 before it. It distinguishes the session from a deleted one of the
    /// same id.
    pub born: u64,
    /// When its history changed last; before that, when it was created.
    pub updated_at: Ms,
    /// A title for lists.
    pub title: Option<String>,
    /// Names a set of replay settings.
    pub channel: Option<String>,
    /// Metadata of the application.
    pub metadata: Option<Json>,
    /// The owner of the conversation's state.
    pub owner: StoredOwner,
    /// The state bag, sorted by key.
    pub state: Vec<(String, Json)>,
    /// The session's public revision: the number of appends that changed history, 0 while it is empty. After a session
    /// was deleted, a new one with its id continues from the last revision, so that one revision never stands for two
    /// histories.
    pub history_revision: u64,
    /// The `seq` of the next message.
    pub next_seq: u64,
    /// The key of the next log record.
    pub next_record: u64,
    /// The key of the next audit row.
    pub next_invocation: u64,
    /// The number of the next run.
    pub next_run: u64,
    /// Number of turns that have begun.
    pub turns: u32,
    /// Size of all log records, in bytes.
    pub log_bytes: u64,
    /// The highest source number ever stored, -1 for none. New sources get higher numbers (R9).
    pub source_high_water: i64,
    /// Unfinished runs.
    pub runs: Vec<RunEntry>,
    /// The key after the newest segment of the log, 0 for none. A hint for reading the end of the log; a rebuilt head
    /// lacks it.
    pub merged_until: u64,
    /// True if a compaction was asked for that could not be made yet. The next one that can is made, however short the
    /// history is.
    pub has_deferred_compaction: bool,
    /// The ids of the newest runs that were resumed here from a snapshot of another session or store, oldest first. A
    /// rebuilt head lacks them.
    pub resumed_runs: Vec<String>,
    /// Marks of what providers refused in runs of this session, oldest first:
    /// [`Healed::refused`](crate::provider::Healed::refused). It is not sent again. A rebuilt head lacks them.
    pub refused: Vec<String>,
    /// What the last request contained of the history, encoded by `replay`; `None` if the next one does not repeat it.
    /// A rebuilt head lacks it.
    pub last_request: Option<ByteVec>,
    /// True if a request let the service drop reasoning whose prefix had changed: later requests do so, too. A rebuilt
    /// head lacks it.
    pub has_dropped: bool,
    /// The branch that was written or chosen last. `next_seq`, `next_record`, `turns`, `log_bytes`, `merged_until`,
    /// `has_deferred_compaction`, `last_request`, `erased`, `chain_cut` and `overview` are those of this branch.
    pub branch: BranchPath,
    /// Number of branches beside the main one.
    pub branch_count: u64,
    /// How many forks that began without a message have got their first one.
    pub begun_forks: u64,
    /// Number of additions: records of results and annotations of messages that branches share.
    pub additions: u64,
    /// True if lists leave the session out unless they are asked for it. A rebuilt head lacks it.
    pub is_archived: bool,
    /// Counts the appends that erased messages: what was read of the log before is invalid. A rebuilt head lacks it.
    pub erasures: u64,
    /// What is left of an erasure that was cut off. A rebuilt head lacks it.
    pub erasing: UnfinishedErasure,
    /// Number of messages that were erased from the branch. A rebuilt head lacks it.
    pub erased: u64,
    /// In this branch a chain of responses continues no answer whose `seq` is below: the service has an erased message
    /// before it. A rebuilt head lacks it.
    pub chain_cut: u64,
    /// The terms of the texts, for searches. A rebuilt head lacks it.
    pub term_filter: TermFilter,
    /// What a list shows of the branch.
    pub overview: Overview,
    /// Fields that a newer build wrote.
    pub unknown: UnknownFields,
}
encode_with_unknown_fields!(struct SessionHead {
    0 => id,
    1 => created_at,
    2 => born,
    3 => updated_at,
    4 => title,
    5 => channel,
    6 => metadata,
    8 => state,
    9 => history_revision,
    10 => next_seq,
    11 => next_record,
    12 => next_invocation,
    13 => next_run,
    14 => turns,
    15 => log_bytes,
    16 => source_high_water,
    17 => runs,
    18 => merged_until,
    19 => owner,
    20 => has_deferred_compaction,
    24 => resumed_runs,
    30 => refused,
    33 => last_request,
    34 => has_dropped,
    35 => branch,
    36 => branch_count,
    38 => is_archived,
    45 => erasures,
    46 => erasing,
    47 => erased,
    48 => chain_cut,
    49 => term_filter,
    51 => overview,
    52 => begun_forks,
    53 => additions,
});

impl SessionHead {
    /// Creates the head of an empty session.
    #[must_use]
    pub fn new(id: &str, now: Ms) -> Self {
        Self {
            id: id.to_owned(),
            created_at: now,
            born: 0,
            updated_at: now,
            title: None,
            channel: None,
            metadata: None,
            owner: StoredOwner::default(),
            state: Vec::new(),
            history_revision: 0,
            next_seq: 0,
            next_record: 0,
            next_invocation: 0,
            next_run: 0,
            turns: 0,
            log_bytes: 0,
            source_high_water: -1,
            runs: Vec::new(),
            merged_until: 0,
            has_deferred_compaction: false,
            resumed_runs: Vec::new(),
            refused: Vec::new(),
            last_request: None,
            has_dropped: false,
            branch: BranchPath::default(),
            branch_count: 0,
            begun_forks: 0,
            additions: 0,
            is_archived: false,
            erasures: 0,
            erasing: UnfinishedErasure::default(),
            erased: 0,
            chain_cut: 0,
            term_filter: TermFilter::default(),
            overview: Overview::default(),
            unknown: UnknownFields::default(),
        }
    }

    /// Returns the fields that records contain, from which a head is rebuilt.
    #[must_use]
    pub fn mark(&self, revision: u64) -> HeadMark {
        HeadMark {
            revision,
            history_revision: self.history_revision,
            born: self.born,
            created_at: self.created_at,
            title: self.title.clone(),
            channel: self.channel.clone(),
            next_seq: self.next_seq,
            next_invocation: self.next_invocation,
            next_run: self.next_run,
            turns: self.turns,
            source_high_water: self.source_high_water,
        }
    }

    /// Rebuilds the head as of a record, without metadata, state bag and unfinished runs, which records do not contain.
    #[must_use]
    pub fn from_mark(id: &str, mark: HeadMark) -> Self {
        Self {
            born: mark.born,
            history_revision: mark.history_revision,
            title: mark.title,
            channel: mark.channel,
            next_seq: mark.next_seq,
            next_invocation: mark.next_invocation,
            next_run: mark.next_run,
            turns: mark.turns,
            source_high_water: mark.source_high_water,
            ..Self::new(id, mark.created_at)
        }
    }

    /// Copies from an earlier head of the same session the fields that a rebuilt head lacks. Counters never decrease;
    /// those of another branch are not copied.
    pub fn adopt(&mut self, earlier: &Self) {
        if self.born != 0 && earlier.born != self.born {
            return;
        }
        self.born = earlier.born;
        self.created_at = earlier.created_at;
        self.title.clone_from(&earlier.title);
        self.channel.clone_from(&earlier.channel);
        self.metadata.clone_from(&earlier.metadata);
        self.owner.clone_from(&earlier.owner);
        self.state.clone_from(&earlier.state);
        self.history_revision = self.history_revision.max(earlier.history_revision);
        self.next_invocation = self.next_invocation.max(earlier.next_invocation);
        self.next_run = self.next_run.max(earlier.next_run);
        self.source_high_water = self.source_high_water.max(earlier.source_high_water);
        self.resumed_runs.clone_from(&earlier.resumed_runs);
        self.refused.clone_from(&earlier.refused);
        self.has_dropped |= earlier.has_dropped;
        self.is_archived = earlier.is_archived;
        self.additions = self.additions.max(earlier.additions);
        self.erasures = self.erasures.max(earlier.erasures);
        self.erasing.clone_from(&earlier.erasing);
        if self.branch.number == earlier.branch.number {
            self.next_seq = self.next_seq.max(earlier.next_seq);
            self.turns = self.turns.max(earlier.turns);
            self.merged_until = self.merged_until.max(earlier.merged_until);
            self.has_deferred_compaction |= earlier.has_deferred_compaction;
            self.last_request.clone_from(&earlier.last_request);
            self.erased = self.erased.max(earlier.erased);
            self.chain_cut = self.chain_cut.max(earlier.chain_cut);
            self.overview.adopt_unread(&earlier.overview);
            self.overview.set_counters(self.next_seq, self.erased);
        }
    }

    /// Returns what a list shows of the branch; none if another build has changed it since.
    #[must_use]
    pub fn known_overview(&self) -> Option<&Overview> {
        Some(&self.overview).filter(|overview| overview.describes(self.next_seq, self.erased))
    }

    /// Returns the branch of the head with its counters.
    #[must_use]
    pub fn branch_state(&self) -> BranchState {
        BranchState {
            path: self.branch.clone(),
            next_seq: self.next_seq,
            next_record: self.next_record,
            turns: self.turns,
            log_bytes: self.log_bytes,
            merged_until: self.merged_until,
            has_deferred_compaction: self.has_deferred_compaction,
            last_request: self.last_request.clone(),
            erased: self.erased,
            chain_cut: self.chain_cut,
            overview: self.overview.clone(),
        }
    }

    /// Replaces the branch of the head and its counters.
    pub fn set_branch_state(&mut self, state: BranchState) {
        self.branch = state.path;
        self.next_seq = state.next_seq;
        self.next_record = state.next_record;
        self.turns = state.turns;
        self.log_bytes = state.log_bytes;
        self.merged_until = state.merged_until;
        self.has_deferred_compaction = state.has_deferred_compaction;
        self.last_request = state.last_request;
        self.erased = state.erased;
        self.chain_cut = state.chain_cut;
        self.overview = state.overview;
    }

    /// Returns the number of messages of the branch.
    #[must_use]
    pub fn message_count(&self) -> u64 {
        self.next_seq.saturating_sub(self.erased)
    }

    /// Remembers that a run began here from a snapshot, and forgets the oldest such run.
    pub fn remember_resumed(&mut self, run: &str) {
        self.resumed_runs.push(run.to_owned());
        let excess = self.resumed_runs.len().saturating_sub(MAX_RESUMED_RUNS);
        self.resumed_runs.drain(..excess);
    }

    /// Remembers marks of what a provider refused, and forgets the oldest ones.
    pub fn remember_refused(&mut self, marks: &[String]) {
        self.refused.retain(|mark| !marks.contains(mark));
        self.refused.extend_from_slice(marks);
        let excess = self.refused.len().saturating_sub(MAX_REFUSED);
        self.refused.drain(..excess);
    }

    /// Returns the bytes of the last request.
    #[must_use]
    pub fn last_request(&self) -> Option<&[u8]> {
        self.last_request.as_ref().map(|bytes| bytes.as_slice())
    }

    /// Replaces the last request, if it still is the one that `next` followed. Of another process's request, which was
    /// stored meanwhile, this one knew nothing.
    pub fn follow_last_request(&mut self, before: Option<&[u8]>, next: Option<&[u8]>) {
        if self.last_request() == before {
            self.last_request = next.map(|bytes| bytes.to_vec().into());
        }
    }

    /// Returns true if a run of this id began here from a snapshot.
    #[must_use]
    pub fn was_resumed_here(&self, run: &str) -> bool {
        self.resumed_runs.iter().any(|id| id == run)
    }

    /// Raises the highest source number to `number`, if that is higher.
    pub fn raise_highest_source(&mut self, number: Option<u64>) {
        let number = number.and_then(|number| i64::try_from(number).ok()).unwrap_or(-1);
        self.source_high_water = self.source_high_water.max(number);
    }

    /// Returns the runs that are in progress or wait to be resumed or discarded: all unfinished ones except those that
    /// the user stopped.
    pub fn pending_runs(&self) -> impl Iterator<Item = &RunEntry> {
        self.runs.iter().filter(|run| !run.is_stopped())
    }

    /// Returns the number of calls that wait for a person's approval. A run that failed asks again when it is resumed.
    #[must_use]
    pub fn pending_approvals(&self) -> u64 {
        self.runs.iter().filter(|run| run.failed.is_none()).map(|run| run.approvals).sum()
    }

    /// Returns a copy in which no run has a lease.
    #[must_use]
    pub fn without_leases(&self) -> Self {
        let mut head = self.clone();
        for run in &mut head.runs {
            run.lease_until = 0;
            run.holder = None;
        }
        head
    }

    /// Names who wrote the present lease of a run, if it has one.
    pub fn set_holder(&mut self, run: &str, name: Option<&str>) {
        if let Some(run) = self.runs.iter_mut().find(|entry| entry.id == run) {
            run.holder = name.filter(|_| run.lease_until > 0).map(|name| format!("{}:{name}", run.epoch));
        }
    }

    /// Sets how many calls of a run wait for an approval, if the run is not over.
    pub fn set_approvals(&mut self, run: &str, approvals: u64) {
        if let Some(run) = self.runs.iter_mut().find(|entry| entry.id == run) {
            run.approvals = approvals;
        }
    }

    /// Returns the entry of an unfinished run.
    #[must_use]
    pub fn run(&self, id: &str) -> Option<&RunEntry> {
        self.runs.iter().find(|run| run.id == id)
    }
}

impl UnfinishedErasure {
    /// Returns true if nothing is left to do.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.pending.is_empty() && self.messages.is_empty() && self.invocations.is_empty()
    }

    /// Adds what is left of another one.
    pub fn add(&mut self, other: Self) {
        if !other.messages.is_empty() {
            let is_first = self.messages.is_empty();
            self.first_seq = if is_first { other.first_seq } else { self.first_seq.min(other.first_seq) };
        }
        for (ids, more) in [
            (&mut self.pending, other.pending),
            (&mut self.messages, other.messages),
            (&mut self.invocations, other.invocations),
        ] {
            let known: BTreeSet<String> = ids.iter().cloned().collect();
            ids.extend(more.into_iter().filter(|id| !known.contains(id)));
        }
    }

    /// Removes what was done.
    pub fn remove(&mut self, done: &BTreeSet<String>) {
        for ids in [&mut self.pending, &mut self.messages, &mut self.invocations] {
            ids.retain(|id| !done.contains(id));
        }
        if self.messages.is_empty() {
            self.first_seq = 0;
        }
    }
}

/// A branch and its counters, which a head has of the branch that was written last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct BranchState {
    pub path: BranchPath,
    pub next_seq: u64,
    pub next_record: u64,
    pub turns: u32,
    pub log_bytes: u64,
    pub merged_until: u64,
    pub has_deferred_compaction: bool,
    pub last_request: Option<ByteVec>,
    pub erased: u64,
    pub chain_cut: u64,
    pub overview: Overview,
}
encode_fields!(struct BranchState {
    0 => path,
    1 => next_seq,
    2 => next_record,
    3 => turns,
    4 => log_bytes,
    5 => merged_until,
    6 => has_deferred_compaction,
    7 => last_request,
    8 => erased,
    9 => chain_cut,
    10 => overview,
});

/// What is left of an erasure: its removal from history is one append for some messages each, and stores that write
/// values once keep earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnfinishedErasure {
    /// The ids of the messages that are still in history.
    pub pending: Vec<String>,
    /// The ids of those that are not, of which the store may have copies.
    pub messages: Vec<String>,
    /// The ids of their calls.
    pub invocations: Vec<String>,
    /// The lowest `seq` among them.
    pub first_seq: u64,
}
encode_fields!(struct UnfinishedErasure {
    0 => pending: list,
    1 => messages: list,
    2 => invocations: list,
    3 => first_seq,
});

/// The counters of a head as of an append, contained in the log record or journal record of that append.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct HeadMark {
    /// The store's revision that the append made.
    pub revision: u64,
    pub history_revision: u64,
    pub born: u64,
    pub created_at: Ms,
    pub title: Option<String>,
    pub channel: Option<String>,
    pub next_seq: u64,
    pub next_invocation: u64,
    pub next_run: u64,
    pub turns: u32,
    pub source_high_water: i64,
}
encode_fields!(struct HeadMark {
    0 => revision,
    1 => history_revision,
    2 => born,
    3 => created_at,
    4 => title,
    5 => channel,
    6 => next_seq,
    7 => next_invocation,
    8 => next_run,
    9 => turns,
    10 => source_high_water,
});

/// The owner of a conversation's state, in the form in which it is stored: `owner/` gives it its meaning. The default
/// is the session.
///
/// Number 7 was an owner without an id, of which there was one. A build that does not know number 19 keeps it and
/// replays history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredOwner {
    /// The number of the kind of owner.
    pub kind: u32,
    /// The id of the conversation, or of the response that the chain begins after.
    pub id: Option<String>,
    /// True if a chain of responses may begin with none, or a conversation without an id begins with a request. Older
    /// builds reject such a conversation.
    pub auto: bool,
    /// True if a run fails where the service does not continue the chain. Older builds begin it again.
    pub fails_if_lost: bool,
    /// Fields that a newer build wrote.
    pub unknown: UnknownFields,
}
encode_with_unknown_fields!(struct StoredOwner {
    0 => kind,
    1 => id,
    2 => auto,
    3 => fails_if_lost,
});

impl StoredOwner {
    /// Returns true if the session begins conversations at a service.
    #[must_use]
    pub fn begins_conversations(&self) -> bool {
        self.auto && self.kind == CONVERSATION
    }
}

/// The number of the kind of owner that is a service's conversation.
pub const CONVERSATION: u32 = 2;
