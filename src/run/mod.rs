//! The run: one turn, from its input to the answer that ends it, as a state machine without I/O.
//!
//! The host performs the open effects ([`Run::effects`]) and reports back ([`Run::handle`]). The binding answers
//! [`Run::take_save`] itself. An answer, the start of a tool and its result are each saved before the next effect is
//! offered.
//!
//! `machine.rs` has [`Run`], `state/` a file for each of its states, `turn.rs` what they share. A state handles the
//! inputs that concern it and returns a `NextState`, which the machine enters.

mod answer;
mod answered_call;
mod appended_results;
mod approval;
mod archive_descriptions;
mod background_answer;
mod body_filter_question;
mod context;
mod credential_filter;
mod effect;
mod event;
mod external_loop;
mod handoff;
mod healing;
mod history_choice;
mod incoming_answer;
mod journal;
mod journal_cache;
mod late_results;
mod machine;
mod next_state;
mod open_effects;
mod open_results;
mod outcome;
mod persist_question;
mod redaction;
mod replay_safety;
mod response_limit;
mod resume;
mod retry;
mod run_writes;
mod save_queue;
mod setup;
mod snapshot;
mod start;
mod state;
mod state_behavior;
mod stored_results;
mod stored_run;
mod stored_turn;
mod turn;
mod turn_totals;

pub use answered_call::{AnsweredCall, PendingTurn, RunHolder, find_answered_call, is_known_to_history};
pub use appended_results::AppendedResults;
pub use approval::{ApprovalDecision, ApprovalQuestion, ApprovalReply, ResumedCalls, WaitingCall};
pub use archive_descriptions::ARCHIVE_DESCRIPTIONS;
pub use background_answer::BackgroundAnswer;
pub use body_filter_question::BodyFilterQuestion;
pub use context::RunContext;
pub use effect::{Effect, EffectKind, EffectReply, Method, RunInput, Save, SaveKind};
pub use event::RunEvent;
pub use external_loop::{ExternalBody, ExternalContext, ExternalLoop};
pub use handoff::{Handoff, StoredHandoff};
pub use incoming_answer::{IncomingAnswer, PartialAnswer};
pub use journal::{JournalEntry, RunStart, StoredPause, StoredProvider};
pub use journal_cache::JournalCache;
pub use machine::Run;
pub use open_effects::effect_id;
pub use outcome::{OpenCall, RunOutcome, RunStatus};
pub use persist_question::{PersistQuestion, PersistReply};
pub use response_limit::{DEFAULT_MAX_RESPONSE_BYTES, HIGHEST_MAX_RESPONSE_BYTES};
pub use retry::{ReplayQuestion, RetryPolicy};
pub use run_writes::{RunWriter, change_for, discarded_entries, mark_open_calls, stopped_entries, without_calls};
pub use setup::{OnInterrupted, OnStop, Persistence, RunSetup, ToolSettings, ToolTiming};
pub use snapshot::{RunSnapshot, SnapshotOrigin};
pub use start::TurnInput;
pub use stored_run::StoredRun;
