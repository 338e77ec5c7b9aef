//! What happened: messages in order, the tool calls in them, and the results of these calls.
//!
//! A [`History`] is folded from the [`HistoryEntry`]s of the log. Entries are never rewritten: a result that comes
//! later is an entry of its own, and a message refers to its calls by id.

mod alternatives;
mod annotation;
mod beginning;
mod call_search;
mod compactable;
mod continuation;
mod dialect_data;
mod earlier_fields;
mod early_results;
mod entry;
mod fold;
mod ids;
mod incoming;
mod join;
mod late_results;
mod message_writer;
mod new_message;
mod new_result;
mod open_call_index;
mod open_calls;
mod overtaken_results;
mod provided;
mod sources;
mod stored_summary;
mod summaries;
mod summary_index;

pub use alternatives::{Alternatives, NO_ALTERNATIVES};
pub use annotation::Annotation;
pub use call_search::{Answerable, CallSearch, find_call, stored_result, stored_results};
pub use compactable::Compactable;
pub use continuation::{Continuation, ConversationUnits, NoContinuation, continuation};
pub use earlier_fields::{EarlierCall, EarlierFields};
pub use entry::{HistoryEntry, LogRecord, ResultEntry, SetAsideItem};
pub use fold::{History, TurnPosition};
pub use ids::free_id;
pub use incoming::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
pub use join::{JoinBase, JoinedEntries, Origin, join};
pub use late_results::{LateResult, LateResults};
pub use message_writer::{
    MessageFormat, MessageWriter, write_invocation, write_payload, write_result_entry, write_usage,
};
pub use new_message::{NewCall, NewItem, NewMessage, NewPart, join_new, read_part};
pub use new_result::{NewResult, join_results};
pub use overtaken_results::OvertakenResults;
pub use provided::{HeldConversation, ProvidedMessages, check_one_loader, join_held, join_provided};
pub use sources::{change_sources, highest_source, source_number};
pub use stored_summary::{Coverage, StoredSummary, summary_message};
pub use summary_index::ActiveSummary;

#[cfg(test)]
mod tests;
