//! The configuration of a run.

use super::retry::RetryPolicy;
use crate::error::Result;
use crate::finding::Report;
use crate::json::ObjectWriter;
use crate::provider::{ProviderRequest, ToolDefinition};
use crate::replay::{Callback, Policy};
use crate::tool::Window;
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
    /// The highest number of model calls.
    pub max_turns: u32,
    /// The highest number of bytes of a response; a larger response fails the run (R62).
    pub max_response_bytes: u64,
    /// What a cancelled or failed run leaves in history.
    pub on_stop: OnStop,
    /// When a failed model call is repeated.
    pub retry: RetryPolicy,
    /// What the model is shown of the history.
    pub policy: Policy,
    /// The session's channel.
    pub channel: Option<String>,
}

impl RunSetup {
    /// Rejects a configuration that no request can be built from.
    pub(super) fn check(&self) -> Result<()> {
        self.provider.check()?;
        self.provider.write_head(&mut ObjectWriter::new(&mut String::new()), &self.tools, &mut Report::new())
    }
}

/// How a run treats a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// True if its result ends the run.
    pub ends_run: bool,
    /// What happens to a call that was interrupted.
    pub on_interrupted: OnInterrupted,
    /// The freshness window that is stored with its results.
    pub freshness: Option<Window>,
}

/// What happens to a call that was started and has no result when its run is resumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInterrupted {
    /// It gets an error as its result, which says that it was interrupted.
    #[default]
    Report,
    /// It runs again.
    Rerun,
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
