//! [`SentRequest`]: what the last request of a session contained of the history, so that the next one repeats it (R72).

use super::cut::Cut;
use super::selection::SelectedRange;
use crate::clock::Ms;
use crate::encoding::{RecordSource, encode_fields};
use crate::finding::Report;
use crate::history::{ActiveSummary, History};
use bytes::Bytes;

/// The size above which a session's head, which each append writes again, does not contain the ranges of what was sent.
const MAX_STORED_BYTES: usize = 32 * 1024;

/// What a provider's cache depends on besides the messages, as hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestIdentity {
    /// The dialect.
    pub dialect: u64,
    /// The host; 0 if it is not known, as that of a render.
    pub host: u64,
    /// The model.
    pub model: u64,
    /// The instructions.
    pub instructions: u64,
    /// The tools.
    pub tools: u64,
}
encode_fields!(struct RequestIdentity {
    0 => dialect,
    1 => host,
    2 => model,
    3 => instructions,
    4 => tools,
});

impl RequestIdentity {
    fn has_other_provider(&self, other: &Self) -> bool {
        let is_other_host = self.host != other.host && self.host != 0 && other.host != 0;
        self.dialect != other.dialect || is_other_host
    }
}

/// What a request contained of the history, and why not the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SentRequest {
    /// What is stored of it.
    pub record: SentRequestRecord,
    /// The findings about what it does not contain. They are not stored.
    pub report: Report,
}

/// What is stored of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SentRequestRecord {
    /// When it was sent.
    pub at: Ms,
    /// What else the provider's cache depends on.
    pub identity: RequestIdentity,
    /// The id of the last message that was stored then, empty if there was none. What became of it and of earlier ones
    /// is decided.
    pub base: String,
    /// The run that sent it.
    pub run: Option<String>,
    /// The id of the last message of that run's turn. What became of it and of the run's earlier messages is decided.
    pub live_end: Option<String>,
    /// A hash of what the compaction covers; 0 without one.
    pub compaction: u64,
    /// The number of calls without a result that it does not contain. If one of them has a result since, it must be
    /// looked at again.
    pub hidden_open_calls: u64,
    /// The messages, in the order in which they were sent, without those that are not stored, such as those of history
    /// providers. One that replaces others and has no message is the compaction.
    pub ranges: Vec<SelectedRange>,
    /// True if something was left out or changed.
    pub is_reduced: bool,
    /// True if the ranges are not known: they are too many for a session's head, or must not be stored.
    pub has_no_ranges: bool,
    /// How long the provider keeps it in its cache, in milliseconds.
    pub cache_life: Ms,
    /// The hash of the results that history had when it was decided
    /// ([`History::late_results_hash`](crate::history::History::late_results_hash)).
    pub known_results: u64,
}
encode_fields!(struct SentRequestRecord {
    0 => at,
    1 => identity,
    2 => base,
    3 => run,
    4 => live_end,
    5 => compaction,
    6 => hidden_open_calls,
    7 => ranges: list,
    8 => is_reduced,
    9 => has_no_ranges,
    10 => cache_life,
    11 => known_results,
});

impl SentRequest {
    /// Returns the bytes that the session's head contains. If there are too many ranges, they are not among them, and
    /// only this process has them.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let bytes = self.record.encoded()?;
        if bytes.len() <= MAX_STORED_BYTES { Some(bytes) } else { self.without_ranges().record.encoded() }
    }

    /// Returns what is known of the request if its ranges are not: that there was one, and why the next one may be
    /// decided anew otherwise.
    #[must_use]
    pub fn without_ranges(&self) -> Self {
        let SentRequestRecord { at, identity, cache_life, .. } = self.record;
        let record =
            SentRequestRecord { at, identity, cache_life, has_no_ranges: true, ..SentRequestRecord::default() };
        Self { record, report: Report::new() }
    }

    /// Reads the bytes of a session's head. What cannot be read is as if it was not there: the next request is decided
    /// anew.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let record = minicbor::decode_with(bytes, &mut RecordSource::new(Bytes::copy_from_slice(bytes))).ok()?;
        Some(Self { record, report: Report::new() })
    }
}

impl SentRequestRecord {
    fn encoded(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        minicbor::encode_with(self, &mut out, &mut RecordSource::default()).ok().map(|()| out)
    }

    /// Returns why the next request is decided anew; `None` if it repeats this one.
    #[must_use]
    pub fn cut_before(&self, now: Ms, identity: &RequestIdentity) -> Option<Cut> {
        let own = &self.identity;
        match identity {
            _ if identity.has_other_provider(own) => Some(Cut::Provider),
            _ if identity.model != own.model => Some(Cut::Model),
            _ if identity.tools != own.tools => Some(Cut::Tools),
            _ if identity.instructions != own.instructions => Some(Cut::Instructions),
            _ if now.saturating_sub(self.at) > self.cache_life => Some(Cut::Idle),
            _ if self.has_no_ranges => Some(Cut::NotStored),
            _ => None,
        }
    }

    /// Returns true if a compaction is in force that was not, or another one, or none any more.
    /// `compaction` is the hash of the one that is in force, 0 without one.
    pub(super) fn has_other_compaction(&self, compaction: u64) -> bool {
        self.compaction != compaction
    }

    /// Returns true if it has messages that are stored nowhere else.
    #[must_use]
    pub fn has_own_messages(&self) -> bool {
        self.ranges.iter().any(|range| range.message.is_some())
    }

    /// Returns the index after the last stored message that is decided; `None` if that message is not in history any
    /// more.
    pub(super) fn base_end(&self, history: &History) -> Option<usize> {
        if self.base.is_empty() { Some(0) } else { history.message_index(&self.base).map(|index| index + 1) }
    }
}

/// Returns a hash of what a compaction covers.
pub(super) fn hash_of(compaction: &ActiveSummary) -> u64 {
    let coverage = &compaction.stored.coverage;
    // Never 0, which stands for none.
    crate::id::hash_words(coverage.ids_hash, &coverage.message_count.to_le_bytes()) | 1
}
