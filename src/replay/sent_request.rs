//! [`SentRequest`]: what the last request of a session contained of the history, so that the next one repeats it (R72).

use super::chosen_draft::RangeBuilder;
use super::input::{HistoryScope, ReplayInput};
use super::request_draft::{DraftMessage, DraftOrigin, RequestDraft};
use super::selection::SelectedRange;
use crate::clock::Ms;
use crate::encoding::{RecordSource, encode_fields};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::{ActiveSummary, History};
use crate::tool::ToolInvocation;
use bytes::Bytes;

/// The size above which a session's head, which each append writes again, does not contain what was sent.
const MAX_STORED_BYTES: usize = 32 * 1024;

/// Why what was sent before is decided anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The last request is longer ago than the provider's cache lives.
    Idle,
    /// Another provider gets the request.
    Provider,
    /// Another model gets it.
    Model,
    /// The instructions are others.
    Instructions,
    /// The tools are others.
    Tools,
    /// A compaction was made, or does not apply any more.
    Compaction,
    /// The request would be larger than a `token_budget`.
    Budget,
    /// Messages of the last request are not in history any more, or what replaced messages in it does not say what is known of them by now.
    History,
}

impl Cut {
    /// Every value.
    pub const ALL: &'static [Self] = &[
        Self::Idle,
        Self::Provider,
        Self::Model,
        Self::Instructions,
        Self::Tools,
        Self::Compaction,
        Self::Budget,
        Self::History,
    ];

    /// Returns the stable name in the public types.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Provider => "provider",
            Self::Model => "model",
            Self::Instructions => "instructions",
            Self::Tools => "tools",
            Self::Compaction => "compaction",
            Self::Budget => "budget",
            Self::History => "history",
        }
    }
}

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
    pub stored: StoredRequest,
    /// The findings about what it does not contain. They are not stored.
    pub report: Report,
}

/// What is stored of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredRequest {
    /// When it was sent.
    pub at: Ms,
    /// What else the provider's cache depends on.
    pub identity: RequestIdentity,
    /// The id of the last message that was stored then, empty if there was none. What became of it and of earlier ones is decided.
    pub base: String,
    /// The run that sent it.
    pub run: Option<String>,
    /// The id of the last message of that run's turn. What became of it and of the run's earlier messages is decided.
    pub live_end: Option<String>,
    /// A hash of what the compaction covers; 0 without one.
    pub compaction: u64,
    /// The number of calls without a result that it does not contain. If one of them has a result since, it must be looked at again.
    pub hidden_open_calls: u64,
    /// The messages, in the order in which they were sent, without those that are not stored, such as those of history providers. One that
    /// replaces others and has no message is the compaction.
    pub ranges: Vec<SelectedRange>,
    /// True if something was left out or changed.
    pub is_reduced: bool,
}
encode_fields!(struct StoredRequest {
    0 => at,
    1 => identity,
    2 => base,
    3 => run,
    4 => live_end,
    5 => compaction,
    6 => hidden_open_calls,
    7 => ranges: list,
    8 => is_reduced,
});

impl SentRequest {
    /// Returns what the request of a draft contains. `report` has the findings of making it.
    #[must_use]
    pub fn of(draft: &RequestDraft<'_>, input: &ReplayInput<'_, '_>, report: &[Finding]) -> Self {
        let is_run = !matches!(input.scope, HistoryScope::Whole);
        let compaction = input.history.compaction_for(input.dialect);
        let mut builder = RangeBuilder::new(input);
        for item in &draft.messages {
            match item.origin {
                // The messages of a render are stored later, if at all, under other ids.
                DraftOrigin::Live(_) if !is_run => {}
                _ if item.message.source.is_provided() => {}
                DraftOrigin::Replacement if is_compaction(item, compaction) => builder.add_compaction(),
                _ => builder.add(item),
            }
        }
        let last_stored = || input.history.messages().last().map(|last| last.id.as_str());
        let base = input.scope.base().or_else(last_stored).unwrap_or_default();
        let own = |live: &'_ History| live.messages().last().filter(|last| !last.source.is_provided()).cloned();
        let last_live = input.live.filter(|_| is_run).and_then(own);
        // Each request reports the others itself.
        let is_kept = |finding: &&Finding| {
            let is_change = matches!(finding.action, Some(Action::Dropped | Action::Rewritten | Action::Synthesized));
            is_change && finding.code != FindingCode::OrphanReasoning
        };
        let report: Report = report.iter().filter(is_kept).cloned().collect();
        let mut stored = StoredRequest {
            at: input.now,
            base: base.to_owned(),
            run: last_live.as_ref().and_then(|last| last.run_id.clone()),
            live_end: last_live.map(|last| last.id),
            compaction: compaction.map_or(0, hash_of),
            ranges: builder.into_ranges(),
            is_reduced: !report.is_empty(),
            ..StoredRequest::default()
        };
        stored.hidden_open_calls = stored.hidden_open_calls(input.history, &draft.messages) as u64;
        Self { stored, report }
    }

    /// Returns the bytes that the session's head contains; none if there are too many, so that only this process has it.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let encoded = minicbor::encode_with(&self.stored, &mut out, &mut RecordSource::default());
        (encoded.is_ok() && out.len() <= MAX_STORED_BYTES).then_some(out)
    }

    /// Reads the bytes of a session's head. What cannot be read is as if it was not there: the next request is decided anew.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let stored = minicbor::decode_with(bytes, &mut RecordSource::new(Bytes::copy_from_slice(bytes))).ok()?;
        Some(Self { stored, report: Report::new() })
    }
}

impl StoredRequest {
    /// Returns why the next request is decided anew; `None` if it repeats this one. `cache_life` in milliseconds.
    #[must_use]
    pub fn cut_before(&self, now: Ms, cache_life: Ms, identity: &RequestIdentity) -> Option<Cut> {
        let own = &self.identity;
        match identity {
            _ if identity.has_other_provider(own) => Some(Cut::Provider),
            _ if identity.model != own.model => Some(Cut::Model),
            _ if identity.tools != own.tools => Some(Cut::Tools),
            _ if identity.instructions != own.instructions => Some(Cut::Instructions),
            _ if now.saturating_sub(self.at) > cache_life => Some(Cut::Idle),
            _ => None,
        }
    }

    /// Returns true if a compaction is in force that was not, or another one, or none any more.
    pub(super) fn has_other_compaction(&self, compaction: Option<&ActiveSummary>) -> bool {
        self.compaction != compaction.map_or(0, hash_of)
    }

    /// Returns true if it has messages that are stored nowhere else.
    #[must_use]
    pub fn has_own_messages(&self) -> bool {
        self.ranges.iter().any(|range| range.message.is_some())
    }

    /// Returns the index after the last stored message that is decided; `None` if that message is not in history any more.
    pub(super) fn base_end(&self, history: &History) -> Option<usize> {
        if self.base.is_empty() { Some(0) } else { history.message_index(&self.base).map(|index| index + 1) }
    }

    /// Returns the number of calls without a result in decided messages that a draft does not contain.
    pub(super) fn hidden_open_calls(&self, history: &History, draft: &[DraftMessage<'_>]) -> usize {
        let end = self.base_end(history).unwrap_or_default();
        let is_open = |call: &ToolInvocation| call.result.is_none() && !call.is_deferred;
        let decided = history.messages().get(..end).unwrap_or_default().iter();
        let stored: usize = decided.map(|message| history.calls_of(message).filter(|call| is_open(call)).count()).sum();
        let is_decided = |item: &&DraftMessage<'_>| matches!(item.origin, DraftOrigin::Stored(index) if index < end);
        let sent = draft.iter().filter(is_decided).flat_map(|item| &item.calls);
        stored.saturating_sub(sent.filter(|call| is_open(call.invocation)).count())
    }
}

fn is_compaction(item: &DraftMessage<'_>, compaction: Option<&ActiveSummary>) -> bool {
    compaction.is_some_and(|active| std::ptr::eq(item.message, &raw const active.stored.message))
}

fn hash_of(compaction: &ActiveSummary) -> u64 {
    let coverage = &compaction.stored.coverage;
    // Never 0, which stands for none.
    crate::id::hash_words(coverage.ids_hash, &coverage.message_count.to_le_bytes()) | 1
}
