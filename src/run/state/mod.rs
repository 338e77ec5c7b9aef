//! The states of a run, one file each. A state owns its data, and returns the state that follows.

mod addressed_request;
mod awaiting_answer_save;
mod awaiting_body;
mod awaiting_end_save;
mod awaiting_journal;
mod awaiting_model;
mod awaiting_retry;
mod awaiting_tools;
mod background_call;
mod call_plan;
mod chain_restart;
mod dropped_reasoning;
mod settled_request;

pub(super) use awaiting_answer_save::AwaitingAnswerSave;
pub(super) use awaiting_body::{AwaitingBody, begin_call, build_body, replay_body, send};
pub(super) use awaiting_end_save::AwaitingEndSave;
pub(super) use awaiting_journal::AwaitingJournal;
pub(super) use awaiting_model::AwaitingModel;
pub(super) use awaiting_retry::{AwaitingRetry, repeat_unconfirmed, repeat_undelivered};
pub(super) use awaiting_tools::{AwaitingTools, no_waiting_call};
pub(super) use background_call::can_pick_up;
