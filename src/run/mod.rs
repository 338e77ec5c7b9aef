//! The run: from one model call to the next, as a machine without I/O.
//!
//! The host asks what to do ([`Run::effects`]), does it, and tells ([`Run::handle`]). The binding
//! answers [`Run::take_save`] itself. Order makes the promises: what a provider answered, that a
//! tool starts, and what it returned is written before the next step is offered.

mod answer;
mod credential_filter;
mod effect;
mod event;
mod journal;
mod model_call;
mod open_effects;
mod outcome;
mod parts;
mod persistence;
mod redaction;
mod request;
mod response;
mod retry;
mod state;
mod status;
mod to_json;
mod tools;

pub use effect::{Effect, EffectKind, EffectReply, RunInput, Save, SaveKind};
pub use event::RunEvent;
pub use journal::{JournalEntry, RecoveredRun, RunStart, StoredProvider, recover};
pub use open_effects::effect_id;
pub use outcome::{RunOutcome, RunStatus};
pub use persistence::{RunWriter, change_for, mark_open_calls, stopped_entries, without_calls};
pub use redaction::{PersistQuestion, PersistReply};
pub use response::{DEFAULT_MAX_RESPONSE_BYTES, HIGHEST_MAX_RESPONSE_BYTES};
pub use retry::RetryPolicy;
pub use state::Run;

use crate::clock::Ms;
use crate::error::Result;
use crate::finding::Report;
use crate::history::History;
use crate::id::{IdSource, Seed};
use crate::json::ObjectWriter;
use crate::provider::{ProviderRequest, ToolDefinition};
use crate::render::Renderer;
use crate::replay::{Callback, Policy};
use crate::sorted::Sorted;
use crate::tool::Window;

/// What a run was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSetup {
    /// The run's id.
    pub id: String,
    /// Where to call and how.
    pub provider: ProviderRequest,
    /// The system message of this run; not stored.
    pub instructions: Option<String>,
    /// What the model may call.
    pub tools: Vec<ToolDefinition>,
    /// How each of them is treated, by name.
    pub tool_settings: Sorted<String, ToolSettings>,
    /// What says what is stored of a call, by tool (R12).
    pub persist: Sorted<String, Callback>,
    /// How many model calls at the most.
    pub max_turns: u32,
    /// How many bytes a response may have; one that has more fails the run (R62).
    pub max_response_bytes: u64,
    /// When a run that ends early keeps what there is.
    pub on_stop: OnStop,
    /// When a call is tried again.
    pub retry: RetryPolicy,
    /// What the model is shown.
    pub policy: Policy,
    /// The session's channel.
    pub channel: Option<String>,
}

impl RunSetup {
    /// Refuses what no request could be built from.
    fn check(&self) -> Result<()> {
        self.provider.check()?;
        self.provider.write_head(&mut ObjectWriter::new(&mut String::new()), &self.tools, &mut Report::new())
    }
}

/// How a tool is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// Its result ends the run.
    pub ends_run: bool,
    /// What becomes of a call that was started and cut off.
    pub on_interrupted: OnInterrupted,
    /// Its own freshness, stored with its results.
    pub freshness: Option<Window>,
}

/// What becomes of a call that was started and has no result when its run is resumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInterrupted {
    /// It is closed with an error that says so.
    #[default]
    Report,
    /// It runs again.
    Rerun,
}

/// What a cancelled or failed run leaves behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStop {
    /// History as it was.
    #[default]
    Discard,
    /// The question and what there was of the answer, marked.
    Keep,
}

/// What the machine works with, lent for one step.
pub struct RunContext<'d> {
    /// The session's history.
    pub history: &'d History,
    /// Its renderer.
    pub renderer: &'d mut Renderer,
    /// The time.
    pub now: Ms,
    /// Fresh ids.
    pub ids: &'d dyn IdSource,
    /// For the live turn's maps.
    pub seed: Seed,
}

#[cfg(test)]
mod tests;
