//! The run: one turn, from its input to the answer that ends it, as a state machine without I/O.
//!
//! The host performs the open effects ([`Run::effects`]) and reports back ([`Run::handle`]). The binding answers
//! [`Run::take_save`] itself. An answer, the start of a tool and its result are each saved before the next effect is offered.
//!
//! The data of a run is in `state.rs`; its transitions are in `start.rs`, `input.rs` (saves), `request.rs`, `model_reply.rs`,
//! `response.rs`, `tool_calls.rs` and `ending.rs`.

mod answer;
mod context;
mod credential_filter;
mod effect;
mod ending;
mod event;
mod input;
mod journal;
mod model_call;
mod model_reply;
mod open_effects;
mod outcome;
mod persist;
mod persistence;
mod redaction;
mod request;
mod response;
mod retry;
mod setup;
mod start;
mod state;
mod status;
mod to_json;
mod tool_calls;
mod tool_round;

pub use context::RunContext;
pub use effect::{Effect, EffectKind, EffectReply, RunInput, Save, SaveKind};
pub use event::RunEvent;
pub use journal::{JournalEntry, RecoveredRun, RunStart, StoredProvider, recover};
pub use open_effects::effect_id;
pub use outcome::{RunOutcome, RunStatus};
pub use persist::{PersistQuestion, PersistReply};
pub use persistence::{RunWriter, change_for, mark_open_calls, stopped_entries, without_calls};
pub use response::{DEFAULT_MAX_RESPONSE_BYTES, HIGHEST_MAX_RESPONSE_BYTES};
pub use retry::RetryPolicy;
pub use setup::{OnInterrupted, OnStop, RunSetup, ToolSettings};
pub use state::Run;

#[cfg(test)]
mod tests;
