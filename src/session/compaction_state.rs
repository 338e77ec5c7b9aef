//! The compaction of a session that is under way, or waits for a turn to be over.

use super::overtaken_compactions::OvertakenCompactions;
use crate::error::Result;
use crate::provider::{ProviderRequest, ToolDefinition};
use crate::replay::{Callback, FallbackReducers, Reducer};
use crate::run::RunSetup;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Who shortens the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionMode {
    /// The service if only the service has all of it, else the application.
    Auto,
    /// The application, from the messages that are stored here.
    Input,
    /// The service, from its chain of responses.
    PreviousResponseId,
    /// The provider, from the messages that are stored here.
    Provider,
}

/// What a request of the session was made for, without its input.
#[derive(Clone, Debug)]
pub struct RequestSetup {
    /// The model.
    pub provider: ProviderRequest,
    /// The system message.
    pub instructions: Option<String>,
    /// The definitions of the tools.
    pub tools: Vec<ToolDefinition>,
}

impl RequestSetup {
    /// Returns what the requests of a run are made for.
    #[must_use]
    pub fn of_run(setup: &RunSetup) -> Self {
        let RunSetup { provider, instructions, tools, .. } = setup;
        Self { provider: provider.clone(), instructions: instructions.clone(), tools: tools.clone() }
    }
}

/// A call of `compact`.
pub struct CompactionRequest {
    /// Who shortens the conversation.
    pub mode: CompactionMode,
    /// True if little is compacted, too.
    pub is_forced: bool,
    /// How many tokens the newest request must have had; without it a number of items counts.
    pub tokens: Option<u64>,
    /// Writes the summary.
    pub summarize: Callback,
    /// The model that `summarize` calls, if the application named one.
    pub provider: Option<ProviderRequest>,
}

impl CompactionRequest {
    /// Returns true if it is made only if the newest request had a number of tokens.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        self.tokens.is_some() && !self.is_forced
    }
}

/// The option `compaction` of a session.
#[derive(Clone)]
pub struct AutomaticCompaction {
    /// What is made.
    pub request: Rc<CompactionRequest>,
    /// What shortens requests while it is not made.
    fallback: FallbackReducers,
}

impl AutomaticCompaction {
    /// Creates the option. `tokens`: from how many tokens a request is large.
    #[must_use]
    pub fn new(tokens: u64, mode: CompactionMode, summarize: Callback, fallback: Vec<Reducer>) -> Self {
        let request = CompactionRequest { mode, is_forced: false, tokens: Some(tokens), summarize, provider: None };
        Self { request: Rc::new(request), fallback: FallbackReducers { tokens, reducers: fallback } }
    }

    /// Returns what shortens requests that are larger; `None` if nothing does.
    #[must_use]
    pub fn fallback(&self) -> Option<FallbackReducers> {
        Some(self.fallback.clone()).filter(|fallback| !fallback.reducers.is_empty())
    }
}

/// The compaction of a session: under way, or waiting for a turn to be over.
#[derive(Default)]
pub struct CompactionState {
    /// True while a call of `compact` is under way.
    pub is_under_way: Cell<bool>,
    /// What waits for a turn to be over.
    pub deferred: RefCell<Option<Rc<CompactionRequest>>>,
    /// What is compacted without a call of `compact`.
    pub automatic: RefCell<Option<AutomaticCompaction>>,
    /// Those that runs have overtaken.
    pub overtaken: OvertakenCompactions,
    /// True if the session changed while a call of `compact` was under way, so that the deferred one may be possible
    /// now.
    pub must_check_again: Cell<bool>,
}

impl CompactionState {
    /// Returns true if a compaction waits for a turn to be over.
    pub fn is_deferred(&self) -> bool {
        self.deferred.borrow().is_some()
    }

    /// Returns the reducers of requests that are too large although the session compacts by itself.
    pub fn fallback(&self) -> Option<FallbackReducers> {
        self.automatic.borrow().as_ref().and_then(AutomaticCompaction::fallback)
    }

    /// Notes how a compaction in the background ended. One that was stored is noted where it is stored.
    pub fn note_outcome(&self, outcome: &Result<CompactionOutcome>) {
        if matches!(outcome, Ok(CompactionOutcome::Superseded)) {
            self.overtaken.add();
        }
    }

    /// Drops the deferred compaction.
    pub fn drop_deferred(&self) {
        self.deferred.replace(None);
    }
}

impl CompactionMode {
    /// Returns the name in the public types.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Input => "input",
            Self::PreviousResponseId => "previous_response_id",
            Self::Provider => "provider",
        }
    }
}

/// How a call of `compact` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionOutcome {
    /// It was made: there was enough to compact, or the newest request was large enough.
    Threshold,
    /// It was made because of `force`.
    Forced,
    /// It was made because an earlier one could not be.
    WasDeferred,
    /// There is less than the threshold.
    BelowThreshold,
    /// No turn is over that is not compacted already.
    NothingNew,
    /// A run is under way, or a turn waits for results of tools.
    Deferred,
    /// The provider could not summarize the conversation.
    NoSummary,
    /// Another call of this session is under way.
    UnderWay,
    /// Another writer compacted meanwhile, or changed what the summary covers, or a run continued the chain of
    /// responses.
    Superseded,
}

impl CompactionOutcome {
    /// Returns whether the session was compacted, and why or why not, as the public types have it.
    #[must_use]
    pub fn described(self) -> (bool, &'static str) {
        match self {
            Self::Threshold => (true, "threshold"),
            Self::Forced => (true, "forced"),
            Self::WasDeferred => (true, "was_deferred"),
            Self::BelowThreshold => (false, "below_threshold"),
            Self::NothingNew => (false, "nothing_new"),
            Self::Deferred => (false, "deferred"),
            Self::NoSummary => (false, "no_summary"),
            Self::UnderWay => (false, "under_way"),
            Self::Superseded => (false, "superseded"),
        }
    }
}
