//! A session's head: identity, owner, channel, state bag and counters. It is small, and every append rewrites it.

use crate::clock::Ms;
use crate::encoding::{UnknownFields, is_default, rewritten};
use crate::error::Code;
use crate::json::Json;
use minicbor::{Decode, Encode};

/// What is known of a session without reading its log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionHead {
    /// Any non-empty text.
    pub id: String,
    /// When it was first written.
    pub created_at: Ms,
    /// The store's revision of its first write: tells it from one of the same id that was deleted before it. 0 before that.
    pub born: u64,
    /// When it was last written.
    pub updated_at: Ms,
    /// For a list on screen.
    pub title: Option<String>,
    /// Names a set of replay settings.
    pub channel: Option<String>,
    /// The application's own.
    pub metadata: Option<Json>,
    /// Who holds the conversation's state.
    pub owner: Owner,
    /// Provider-scoped state by key, sorted.
    pub state: Vec<(String, Json)>,
    /// The session's public revision: the number of appends that changed history, 0 while it is empty. After a session was deleted, a
    /// new one with its id continues from the last revision, so that one revision never stands for two histories.
    pub history_revision: u64,
    /// The next message's `seq`.
    pub next_seq: u64,
    /// The next log record's key.
    pub next_record: u64,
    /// The next audit row's key.
    pub next_invocation: u64,
    /// The next run's number.
    pub next_run: u64,
    /// How many turns have begun.
    pub turns: u32,
    /// Bytes of all log records.
    pub log_bytes: u64,
    /// The highest source number ever stored, -1 for none: numbering goes on from here (R9).
    pub source_high_water: i64,
    /// Unfinished runs.
    pub runs: Vec<RunEntry>,
    /// Fields that a newer build wrote.
    pub unknown: UnknownFields,
}
rewritten!(struct SessionHead {
    0 => id,
    1 => created_at,
    2 => born,
    3 => updated_at,
    4 => title,
    5 => channel,
    6 => metadata,
    7 => owner,
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
});

impl SessionHead {
    /// A session that nothing was appended to.
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
            owner: Owner::SessionHead,
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
            unknown: UnknownFields::default(),
        }
    }

    /// What records keep of the head, so that it can be rebuilt from them.
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

    /// The head as of a record: without what records do not keep (metadata, state bag, unfinished runs).
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

    /// Takes over what a rebuilt head lacks and an earlier one of the same session has; counters never go back.
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
        self.next_seq = self.next_seq.max(earlier.next_seq);
        self.next_invocation = self.next_invocation.max(earlier.next_invocation);
        self.next_run = self.next_run.max(earlier.next_run);
        self.turns = self.turns.max(earlier.turns);
        self.source_high_water = self.source_high_water.max(earlier.source_high_water);
    }

    /// There was a source of that number.
    pub fn raise_highest_source(&mut self, number: Option<u64>) {
        let number = number.and_then(|number| i64::try_from(number).ok()).unwrap_or(-1);
        self.source_high_water = self.source_high_water.max(number);
    }

    /// Returns the runs that are in progress or wait to be resumed or discarded: all unfinished ones except those that the user stopped.
    pub fn pending_runs(&self) -> impl Iterator<Item = &RunEntry> {
        self.runs.iter().filter(|run| !run.is_stopped())
    }

    /// The entry of an unfinished run.
    #[must_use]
    pub fn run(&self, id: &str) -> Option<&RunEntry> {
        self.runs.iter().find(|run| run.id == id)
    }
}

/// A head's counters, as of a record of the log or of a journal that was appended with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[allow(missing_docs)]
#[cbor(map)]
pub struct HeadMark {
    /// The store's revision that the append made.
    #[cbor(n(0), skip_if = "is_default")]
    pub revision: u64,
    #[cbor(n(1), skip_if = "is_default")]
    pub history_revision: u64,
    #[cbor(n(2), skip_if = "is_default")]
    pub born: u64,
    #[cbor(n(3), skip_if = "is_default")]
    pub created_at: Ms,
    #[n(4)]
    pub title: Option<String>,
    #[n(5)]
    pub channel: Option<String>,
    #[cbor(n(6), skip_if = "is_default")]
    pub next_seq: u64,
    #[cbor(n(7), skip_if = "is_default")]
    pub next_invocation: u64,
    #[cbor(n(8), skip_if = "is_default")]
    pub next_run: u64,
    #[cbor(n(9), skip_if = "is_default")]
    pub turns: u32,
    #[cbor(n(10), skip_if = "is_default")]
    pub source_high_water: i64,
}

/// Who holds the conversation's state. One owner by construction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Owner {
    /// History is here and replayed in full.
    #[default]
    #[n(0)]
    SessionHead,
}

/// An unfinished run, as the head knows it; its journal is in the `runs` table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunEntry {
    /// The run's id.
    pub id: String,
    /// Its number in the session: its journal's keys begin there.
    pub number: u64,
    /// How many journal entries it has.
    pub entries: u64,
    /// Counts owners: a resume takes the next one, and the writes of the one before it conflict (R18).
    pub epoch: u32,
    /// Until when its owner may be taken for alive, where no lock of the platform says so.
    pub lease_until: Ms,
    /// When it began.
    pub started_at: Ms,
    /// Why it failed, if it did and waits to be resumed or discarded: the error's code and sentence. `aborted` if it was stopped.
    pub failed: Option<(String, String)>,
    /// Fields that a newer build wrote.
    pub unknown: UnknownFields,
}
rewritten!(struct RunEntry {
    0 => id,
    1 => number,
    2 => entries,
    3 => epoch,
    4 => lease_until,
    5 => started_at,
    6 => failed,
});

impl RunEntry {
    /// Whether the user stopped the run. It is not pending, and is kept only until the next run begins.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.failed.as_ref().is_some_and(|(code, _)| code == Code::Aborted.as_str())
    }
}
