//! Stored summaries: a request contains the message of a summary instead of the messages that it covers (R30, R36).
//! These stay stored, and everything but replay shows them.
//!
//! A summary replaces exactly the messages that it was made of. It does not apply to a history in which one of them is
//! missing (another side of a fork, an erased message, a damaged record), or in which a call of theirs was answered
//! after the summary was made: then the request contains the messages. So no summary can hide a message or a result
//! that it does not contain.

use crate::encoding::encode_fields;
use crate::json::Json;
use crate::message::{AnswerMeta, Dialect, Message, PartBody, Role};

/// A summary as it is stored, in the record of an append.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSummary {
    /// The messages that it covers.
    pub coverage: Coverage,
    /// The message that is sent instead of them.
    pub message: Message,
    /// The hash of the reducer that asked for it, with its settings; `None` for a compaction.
    pub reducer_hash: Option<u64>,
    /// The response that the application gave as the beginning of the service's chain of responses, if the summary
    /// contains that chain.
    pub chain_start: Option<String>,
}
encode_fields!(struct StoredSummary {
    0 => coverage: required,
    1 => message: required,
    2 => reducer_hash,
    3 => chain_start,
});

impl StoredSummary {
    /// Creates a compaction from the model's text. Its message is the user's, so that every provider accepts it at the
    /// beginning, and alone.
    #[must_use]
    pub fn compaction(coverage: Coverage, text: &str, chain_start: Option<String>) -> Self {
        Self { coverage, message: summary_message(Role::User, text), reducer_hash: None, chain_start }
    }

    /// Creates a compaction from the items that a service of this dialect returned instead of its chain of responses,
    /// or instead of the messages that it was sent.
    #[must_use]
    pub fn of_items(coverage: Coverage, dialect: Dialect, items: Vec<Json>, chain_start: Option<String>) -> Self {
        let parts = items.into_iter().map(|item| PartBody::Opaque(item).into()).collect();
        let message = Message { parts, dialect: Some(dialect), ..summary_message(Role::Assistant, "") };
        Self { coverage, message, reducer_hash: None, chain_start }
    }

    /// Sets the facts of the answer with the items: only a provider that can read them gets them.
    #[must_use]
    pub fn made_by(self, answer: AnswerMeta) -> Self {
        Self { message: Message { answer: Some(Box::new(answer)), ..self.message }, ..self }
    }
}

/// Returns the message that is sent instead of those that a summary covers.
#[must_use]
pub fn summary_message(role: Role, text: &str) -> Message {
    Message::from_text(role, &format!("Summary of the conversation before this:\n{text}"))
}

/// Identifies the messages that a summary covers: the beginning of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The number of messages.
    pub message_count: u64,
    /// The hash of their ids.
    pub ids_hash: u64,
    /// The number of results in the whole history that were stored after their calls.
    pub late_result_count: u64,
    /// The hash of the ids of the invocations of these results.
    pub late_results_hash: u64,
    /// The id of the last message.
    pub last_message_id: String,
}
encode_fields!(struct Coverage {
    0 => message_count,
    1 => ids_hash,
    2 => late_result_count,
    3 => late_results_hash,
    4 => last_message_id,
});
