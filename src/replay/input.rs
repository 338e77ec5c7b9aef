//! The inputs of replay.

use super::citations::TrimmedResults;
use super::handoff_view::HandoffView;
use super::policy::Policy;
use super::reduce::{ReducerCache, ReducerReplies};
use super::request_draft::{DraftMessage, DraftOrigin, ExtraContent};
use super::selection::ReplayChoice;
use super::sent_request::SentRequest;
use crate::clock::Ms;
use crate::history::{ActiveSummary, History};
use crate::message::{Dialect, Message};
use crate::owner::Delta;

/// What a draft is made from. `'h` is the lifetime of what the draft borrows.
#[derive(Clone, Copy, Debug)]
pub struct ReplayInput<'h, 'p> {
    /// The stored history.
    pub history: &'h History,
    /// A turn that is not in history yet. It follows the history.
    pub live: Option<&'h History>,
    /// Results without uncited sources, up to date with `history` and `policy`. None keeps all sources.
    pub trimmed: Option<&'h TrimmedResults>,
    /// What the service that owns the conversation has not acknowledged; the draft has only that. `None` if no service
    /// owns it.
    pub delta: Option<&'p Delta<'h>>,
    /// The dialect of the request.
    pub dialect: Option<Dialect>,
    /// The compaction that the request contains instead of what it covers, if no service owns the conversation: the
    /// newest that the provider can read.
    pub compaction: Option<&'h ActiveSummary>,
    /// The index of the stored answer that begins with what its provider says stands for all before it; 0 without one.
    /// There is no other compaction then.
    pub compacted_before: usize,
    /// Returns what an answer contains in a form that only its own dialect has.
    pub extra_content: fn(&Message) -> ExtraContent,
    /// The settings.
    pub policy: &'p Policy,
    /// The handoffs of the run, in their order. They do not apply to what a service owns.
    pub handoffs: &'h [HandoffView],
    /// What of the history is sent.
    pub scope: HistoryScope<'h>,
    /// The last request of the session, if this one repeats what that one had of the history.
    pub sent: Option<&'h SentRequest>,
    /// The current time.
    pub now: Ms,
    /// Token counts and summaries of earlier renders.
    pub cache: &'h ReducerCache,
    /// The application's replies in this render.
    pub replies: &'h ReducerReplies,
}

impl<'h> ReplayInput<'h, '_> {
    /// Returns true if a provider of context or history has added the message to the live turn, unchanged or changed by
    /// a reducer.
    pub(super) fn is_provided(&self, item: &DraftMessage<'_>) -> bool {
        let is_in_live = || {
            let original = self.live.and_then(|live| live.message(&item.message.id));
            original.is_some_and(|original| original.source.is_of_provider())
        };
        item.is_provided() || item.origin == DraftOrigin::Created && is_in_live()
    }

    /// Returns what tells the stored messages that the live turn has, too, with their raw values.
    pub(super) fn in_live_turn(&self) -> impl Fn(&Message) -> bool + use<'h> {
        let live = self.live;
        let run = live.and_then(|live| live.messages().first()).and_then(|first| first.run_id.as_ref());
        move |message| {
            let is_of_run = run.is_some() && message.run_id.as_ref() == run;
            // A provided message may name any run.
            is_of_run && live.is_some_and(|live| live.message(&message.id).is_some())
        }
    }
}

/// What of the history a request contains, before the policy applies to it.
#[derive(Clone, Copy, Debug, Default)]
pub enum HistoryScope<'h> {
    /// All of it.
    #[default]
    Whole,
    /// What was stored when the run began: the messages up to this id, or none for an empty id. All messages if that is
    /// not known.
    UpTo(Option<&'h str>),
    /// What the run has chosen before.
    Chosen {
        /// The choice.
        choice: &'h ReplayChoice,
        /// As in [`UpTo`](Self::UpTo).
        base: Option<&'h str>,
    },
}

impl<'h> HistoryScope<'h> {
    /// Returns the id of the last message that was stored when the run began, empty if there was none; `None` if that
    /// is not known.
    pub(super) fn base(&self) -> Option<&'h str> {
        match *self {
            Self::Whole => None,
            Self::UpTo(base) | Self::Chosen { base, .. } => base,
        }
    }

    /// Returns the index after the last stored message in this scope. A message that was deleted bounds nothing.
    #[must_use]
    pub fn end_of(&self, history: &History) -> usize {
        match self {
            Self::UpTo(Some("")) => 0,
            Self::UpTo(Some(last)) => history.message_index(last).map_or(usize::MAX, |index| index + 1),
            Self::Whole | Self::UpTo(None) | Self::Chosen { .. } => usize::MAX,
        }
    }
}
