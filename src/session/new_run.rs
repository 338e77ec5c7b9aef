//! What a new run begins with.

use crate::history::Incoming;
use crate::replay::Callback;
use crate::run::RunSetup;

/// What a new run begins with.
#[derive(Clone)]
pub struct NewRun {
    /// Its setup, with the id that was drawn; it gets another one if another run has that id.
    pub setup: RunSetup,
    /// Its input.
    pub input: Vec<Incoming>,
    /// The id of the input, if the application gives it one.
    pub input_id: Option<String>,
    /// The branch that it continues, if that is not the one that is shown.
    pub branch: Option<String>,
    /// The id of the message that its turn stands beside, in a branch of its own.
    pub replace: Option<String>,
    /// Asks the history providers for messages before the input.
    pub provide: Option<Callback>,
    /// Gives the turn to the history providers.
    pub store: Option<Callback>,
}
