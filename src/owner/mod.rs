//! The owner of a conversation's state (R22 to R26): the session, the application or a service.
//!
//! A service that owns the state stores what it is sent, so a request contains only what the service has not
//! acknowledged ([`Delta`]). That is read from stored data: an answer of such a service has a
//! [`ServiceMark`](crate::message::ServiceMark), which is stored with it. A request whose answer was not stored leaves
//! no mark, so what it contained is not acknowledged.

mod conversation_conflict;
mod delta;
mod state_owner;
mod transfer;

pub use conversation_conflict::{ConversationCheck, OnConflict, check_continued, check_conversation};
pub use delta::{Delta, Unacknowledged};
pub use state_owner::{OnLost, StateOwner};
pub use transfer::{transfer_findings, unsent_system_findings};

#[cfg(test)]
mod tests;
