//! Messages that the application adds to a request: those of its history providers (R33), and the conversation that it holds itself (R22).
//! They precede the input of the run, and are never stored in history.

use super::fold::History;
use super::incoming::{Incoming, IncomingPart};
use super::join::{JoinBase, Origin, join};
use super::new_message::{NewItem, join_apart};
use crate::error::{Error, ErrorCode, Result};
use crate::finding::Report;
use crate::id::IdSource;
use crate::json::JsonRef;
use crate::message::{Role, Source, SourceKind};

/// The messages of one provider, stamped with their source.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvidedMessages {
    source: Source,
    messages: Vec<NewItem>,
}

impl ProvidedMessages {
    /// Reads a list of `{"provider":"rag","messages":[…]}`.
    ///
    /// # Errors
    /// `callback_failed`, which names the provider and the message.
    pub fn read_all(list: JsonRef<'_>) -> Result<Vec<Self>> {
        list.items().map(Self::read).collect()
    }

    fn read(provided: JsonRef<'_>) -> Result<Self> {
        let source = Source { kind: SourceKind::Context, id: Some(provided.string("provider")) };
        let messages = provided.get("messages").map_or_else(|| Ok(Vec::new()), NewItem::read_all);
        match messages {
            Ok(messages) => Ok(Self { source, messages }),
            Err(error) => Err(rejection(&source, &error)),
        }
    }
}

fn rejection(source: &Source, error: &Error) -> Error {
    let name = source.id.as_deref().unwrap_or_default();
    let message = format!("the history provider \"{name}\" gave messages that cannot be used: {}", error.message);
    Error::new(ErrorCode::CallbackFailed, message)
}

/// Adds provided messages to a live turn, in the order of the providers. A call without a result is closed in the request.
///
/// # Errors
/// `callback_failed`, which names the provider, for a result whose call the provider did not give.
pub fn join_provided(
    before: &History,
    live: &mut History,
    provided: Vec<ProvidedMessages>,
    origin: &Origin,
    ids: &dyn IdSource,
) -> Result<()> {
    for ProvidedMessages { source, messages } in provided {
        let origin = Origin { source, message_ids: Vec::new(), ..origin.clone() };
        let joined = join_apart(JoinBase::live(before, live), messages, &origin, ids);
        let joined = joined.map_err(|error| rejection(&origin.source, &error))?;
        joined.entries.into_iter().for_each(|entry| live.apply(entry));
    }
    Ok(())
}

/// A body of the application, which contains the whole conversation.
#[derive(Debug, Default)]
pub struct HeldConversation {
    /// Everything up to the last answer of the model and its results.
    pub earlier: Vec<Incoming>,
    /// What follows: the input of a run.
    pub input: Vec<Incoming>,
}

impl HeldConversation {
    /// Splits the items of a body.
    #[must_use]
    pub fn split(mut items: Vec<Incoming>) -> Self {
        let is_earlier = |item: &Incoming| match item {
            Incoming::Message(message) => message.role == Role::Assistant,
            Incoming::Result(_) | Incoming::LateResult(_) | Incoming::Unknown(_) => true,
        };
        let end = items.iter().rposition(is_earlier).map_or(0, |last| last + 1);
        let input = items.split_off(end);
        Self { earlier: items, input }
    }

    /// Returns true if the model would have nothing to answer: there is no input, and the last item is an answer without calls.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.input.is_empty()
            && match self.earlier.last() {
                Some(Incoming::Message(answer)) => {
                    !answer.parts.iter().any(|part| matches!(part, IncomingPart::Call(_)))
                }
                Some(Incoming::Result(_) | Incoming::LateResult(_) | Incoming::Unknown(_)) => false,
                None => true,
            }
    }
}

/// Adds the earlier part of a conversation that the application holds to an empty live turn, with its calls and their results. Call ids
/// are those of the application, whatever history contains. Returns the report.
pub fn join_held(live: &mut History, earlier: Vec<Incoming>, origin: &Origin, ids: &dyn IdSource) -> Report {
    let source = Source { kind: SourceKind::History, id: None };
    let origin = Origin { source, message_ids: Vec::new(), ..origin.clone() };
    let joined = join(JoinBase::history(live), earlier, &origin, ids);
    joined.entries.into_iter().for_each(|entry| live.apply(entry));
    joined.report
}
