//! The compaction of a session that is under way, or waits for a turn to be over.

use super::option_reader::BoundFunction;
use crate::provider::ProviderRequest;
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
}

/// A call of `compact`.
pub struct CompactionRequest {
    pub mode: CompactionMode,
    pub is_forced: bool,
    pub summarize: BoundFunction,
    /// The model that `summarize` calls, if the application named one.
    pub provider: Option<ProviderRequest>,
}

/// The compaction of a session: under way, or waiting for a turn to be over.
#[derive(Default)]
pub struct CompactionState {
    /// True while a call of `compact` is under way.
    pub is_under_way: Cell<bool>,
    /// What waits for a turn to be over.
    pub deferred: RefCell<Option<Rc<CompactionRequest>>>,
    /// True if the session changed while a call of `compact` was under way, so that the deferred one may be possible now.
    pub must_check_again: Cell<bool>,
}

impl CompactionState {
    /// Returns true if a compaction waits for a turn to be over.
    pub fn is_deferred(&self) -> bool {
        self.deferred.borrow().is_some()
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
        }
    }
}
