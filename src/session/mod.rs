//! Open sessions: what every binding does with them, whatever its language.
//!
//! [`OpenStore`] opens sessions of a store, [`OpenSession`] is one, [`RunDriver`] drives a run in it. They see the
//! world through [`Host`], which a binding implements, and so does a test with a clock of its own: nothing here knows a
//! type of JavaScript, reads a clock or draws a random number.
//!
//! No function holds a borrow across an await or while a function of the application runs: it may call back.

mod adoption;
mod annotations;
mod answer;
mod answer_broadcast;
mod append;
mod application;
mod archive;
mod audit;
mod automatic_compaction;
mod backup;
mod begin_backoff;
mod begin_write;
mod branches;
mod branching;
mod compaction;
mod compaction_state;
mod context;
mod deferred_saves;
mod erasure;
mod head_fields;
mod host;
mod idle_merge;
mod journals;
mod launch;
mod lease;
mod left_out;
mod live_run;
mod message_page;
mod new_run;
mod older_records;
mod open_loop;
mod open_session;
mod open_store;
mod overtaken_compactions;
mod payloads;
mod pending_callbacks;
mod pending_run;
mod pending_runs;
mod pending_turns;
mod provider_turns;
mod prune;
mod queue_begin;
mod queued_question;
mod queued_run;
mod read_error;
mod read_mark;
mod render;
mod resume;
mod rotation;
mod run_approvals;
mod run_context;
mod run_driver;
mod run_lock;
mod run_queue;
mod run_saves;
mod search;
mod send;
mod shared_task;
mod signal;
mod state_bag;
mod superseded_run;
mod take_up;
mod title;
mod unread_branches;
mod unsaved_request;
mod unshown_branch;
mod wait_in_queue;
mod write_queue;

pub use annotations::annotate;
pub use answer::Answer;
pub use append::AppendOrigin;
pub use application::{Application, LocalFuture};
pub use archive::{clear, copy_session, read_archive, restore_archive};
pub use audit::{JsonPage, audit_page};
pub use backup::{Backup, BackupRestore, OnExisting, RestoredBackup};
pub use branches::{Branch, BranchKind, branch_log, branches};
pub use branching::{fork, switch_to};
pub use compaction::compact;
pub use compaction_state::{AutomaticCompaction, CompactionMode, CompactionOutcome, CompactionRequest, RequestSetup};
pub use context::{DEFAULT_NAME, DEFAULT_STORE_TIMEOUT, StoreContext, StoreSettings, concerns_settings};
pub use erasure::delete_messages;
pub use host::{
    AnswerNews, Audience, HeldLocks, Host, LockOutcome, RunLock, RunLockNames, SessionChange, SessionSurface,
};
pub use live_run::LiveRun;
pub use new_run::NewRun;
pub use open_loop::OpenLoop;
pub use open_session::OpenSession;
pub use open_store::{OpenStore, SessionSettings};
pub use pending_callbacks::PendingCallbacks;
pub use pending_run::{PendingRun, PendingState};
pub use provider_turns::AppendedContent;
pub use prune::{PruneRequest, Pruned, PrunedSession, prune};
pub use read_mark::mark_read;
pub use resume::{ResumeRequest, discard_run, resume_run, resume_snapshot};
pub use rotation::{Rotated, rotate_keys, rotate_keys_soon};
pub use run_driver::RunDriver;
pub use search::{DEFAULT_HITS, MAX_HITS, search_sessions};
pub use signal::Signal;
