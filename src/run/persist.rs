//! Questions to a tool's `persist` function and their replies (R12).

use crate::id::{IdMap, Seed};
use crate::json::Json;
use crate::replay::Callback;

/// A question to the application: what is stored of this call?
#[derive(Clone, Debug, PartialEq)]
pub struct PersistQuestion {
    /// The function to call.
    pub callback: Callback,
    /// The id of the invocation.
    pub invocation: String,
    /// The tool's name.
    pub name: String,
    /// The call's arguments; a JSON string if they are not JSON.
    pub arguments: Json,
    /// The call's result, if it has one.
    pub result: Option<Json>,
}

/// The application's reply: what is stored of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum PersistReply {
    /// Replacements; what has none is stored unchanged.
    Replaced {
        /// Replaces the arguments.
        arguments: Option<Json>,
        /// Replaces the result.
        result: Option<Json>,
    },
    /// Nothing except that the call happened.
    Nothing,
    /// The function threw or returned something else; nothing is stored except that the call happened.
    Failed(String),
}

/// The replies for the calls of a run.
#[derive(Clone, Debug)]
pub(super) struct Redactions {
    pub by_invocation: IdMap<Redaction>,
    /// The save that `next` belongs to.
    pub save: u64,
    /// Index of the first entry of that save, and of the first call in it, for which `persist` may have to be called.
    pub next: (usize, usize),
}

impl Redactions {
    /// Creates an empty set of redactions.
    pub fn new(seed: Seed) -> Self {
        Self { by_invocation: IdMap::with_seed(seed), save: 0, next: (0, 0) }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Redaction {
    /// True if the application was asked with the result.
    pub with_result: bool,
    pub arguments: Option<Json>,
    pub result: Option<Json>,
    pub withheld: bool,
    /// True if `persist` failed: nothing of the call is stored, and it is not asked again.
    pub failed: bool,
}

impl Redaction {
    /// Returns true if the call is not stored unchanged.
    pub fn changes(&self) -> bool {
        self.withheld || self.arguments.is_some() || self.result.is_some()
    }
}
