//! The configuration of a run.

use super::retry::RetryPolicy;
use crate::error::Result;
use crate::finding::Report;
use crate::json::ObjectWriter;
use crate::owner::{OnConflict, StateOwner};
use crate::provider::{ProviderRequest, ToolDefinition, check_owner};
use crate::replay::{Callback, Policy, UnboundReasoning};
use crate::tool::Window;
use minicbor::{Decode, Encode};
use std::collections::BTreeMap;

/// The configuration of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSetup {
    /// The run's id.
    pub id: String,
    /// The model's address, dialect and parameters.
    pub provider: ProviderRequest,
    /// The system message of this run. It is not stored.
    pub instructions: Option<String>,
    /// The tools that the model may call.
    pub tools: Vec<ToolDefinition>,
    /// Settings of the tools, by name. A tool without an entry is unknown.
    pub tool_settings: BTreeMap<String, ToolSettings>,
    /// The application's `persist` functions, by tool: they decide what is stored of a call (R12).
    pub persist: BTreeMap<String, Callback>,
    /// The application's `needsApproval` functions, by tool (R29).
    pub approval_callbacks: BTreeMap<String, Callback>,
    /// The highest number of model calls.
    pub max_turns: u32,
    /// The highest number of bytes of a response; a larger response fails the run (R62).
    pub max_response_bytes: u64,
    /// When history is written.
    pub persistence: Persistence,
    /// In mode `run`: true if results that no later model call saw are not stored, as a service would not store them.
    pub trim_trailing_results: bool,
    /// What a cancelled or failed run leaves in history.
    pub on_stop: OnStop,
    /// The application's filter, which sees and may change each body before it is sent (R24).
    pub input_filter: Option<Callback>,
    /// When a failed model call is repeated.
    pub retry: RetryPolicy,
    /// What the model is shown of the history.
    pub policy: Policy,
    /// The session's channel.
    pub channel: Option<String>,
    /// The owner of the conversation's state.
    pub owner: StateOwner,
    /// What happens if the service keeps the conversation although the owner is another one.
    pub on_conflict: OnConflict,
}

impl RunSetup {
    /// Returns true if requests let the service drop reasoning whose prefix has changed.
    #[must_use]
    pub(super) fn drops_unbound(&self) -> bool {
        self.policy.unbound_reasoning() == UnboundReasoning::DropBlock && self.provider.dropping_unbound().is_some()
    }

    /// Returns the setup in which history is written as often as the owner needs. A conversation keeps every answer at
    /// once, so history has to: a turn of which it had nothing could be discarded here and not there.
    #[must_use]
    pub(super) fn for_owner(mut self) -> Self {
        if self.owner.is_conversation() && self.persistence == Persistence::Run {
            self.persistence = Persistence::Call;
        }
        self
    }

    /// Rejects a configuration that no request can be built from.
    ///
    /// # Errors
    /// `config_invalid`.
    pub fn check(&self) -> Result<()> {
        self.provider.check()?;
        check_owner(&self.provider, &self.owner)?;
        self.provider.write_head(&mut ObjectWriter::new(&mut String::new()), &self.tools, &mut Report::new())?;
        Ok(())
    }
}

/// When history is written (R15 to R17). In every mode the journal has what history has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Persistence {
    /// Once, when the run succeeds: the whole turn.
    #[default]
    #[n(0)]
    Run,
    /// After each model call, as a service would store it: its new inputs and its answer.
    #[n(1)]
    Call,
    /// As `Call`, and each tool result at once.
    #[n(2)]
    Result,
}

/// How a run treats a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// True if its result ends the run.
    pub ends_run: bool,
    /// True if a person must approve each call.
    pub needs_approval: bool,
    /// What happens to a call that was interrupted.
    pub on_interrupted: OnInterrupted,
    /// The freshness window that is stored with its results.
    pub freshness: Option<Window>,
    /// Whether the run may go on before its result.
    pub timing: ToolTiming,
}

/// When the result of a tool comes (R75).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolTiming {
    /// Before the next model call.
    #[default]
    InRun,
    /// Then, or later if the host says so.
    MayBeLater,
    /// Later: the host is not asked to run it.
    Later,
}

/// What happens to a call that was started and has no result when its run is resumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInterrupted {
    /// It gets an error as its result, which says that it was interrupted.
    #[default]
    Report,
    /// It runs again.
    Rerun,
    /// It runs again if a person approves.
    Ask,
}

/// What a cancelled or failed run leaves in history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStop {
    /// Nothing.
    #[default]
    Discard,
    /// The input and the incomplete answer, marked as stopped or failed.
    Keep,
}
