//! Messages that the application adds to a request: those of its history providers (R33), and the conversation that it
//! holds itself (R22). They precede the input of the run, and are never stored in history. Loaded ones are the history
//! of the conversation (R34).

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
    /// Reads a list of `{"provider":"rag","loads":false,"messages":[…]}`.
    ///
    /// # Errors
    /// `callback_failed`, which names the provider and the message.
    pub fn read_all(list: JsonRef<'_>) -> Result<Vec<Self>> {
        list.items().map(Self::read).collect()
    }

    fn read(provided: JsonRef<'_>) -> Result<Self> {
        let loads = provided.get("loads").and_then(JsonRef::as_bool) == Some(true);
        let kind = if loads { SourceKind::History } else { SourceKind::Context };
        let source = Source { kind, id: Some(provided.string("provider")) };
        let messages = provided.get("messages").map_or_else(|| Ok(Vec::new()), NewItem::read_all);
        match messages {
            Ok(messages) => Ok(Self { source, messages }),
            Err(error) => Err(rejection(&source, &error)),
        }
    }

    /// Returns the name of the provider that loaded the history of the conversation.
    #[must_use]
    pub fn loader(&self) -> Option<&str> {
        self.source.id.as_deref().filter(|_| self.source.kind == SourceKind::History)
    }
}

/// Checks that a conversation comes from one place: if a provider loads it, the input has only what is new.
///
/// # Errors
/// `two_loaders`, which names the provider.
pub fn check_one_loader(provided: &[ProvidedMessages], earlier: &[Incoming]) -> Result<()> {
    let loader = provided.iter().find_map(ProvidedMessages::loader);
    let Some(name) = loader.filter(|_| !earlier.is_empty()) else { return Ok(()) };
    Err(Error::new(
        ErrorCode::TwoLoaders,
        format!(
            "the history provider \"{name}\" loads the conversation, and the input has answers or results of it, too, so the model would get \
             them twice; pass only what is new, or leave `loadMessages` out"
        ),
    ))
}

fn rejection(source: &Source, error: &Error) -> Error {
    let name = source.id.as_deref().unwrap_or_default();
    let message = format!("the history provider \"{name}\" gave messages that cannot be used: {}", error.message);
    Error::new(ErrorCode::CallbackFailed, message)
}

/// Adds provided messages to a live turn, in the order of the providers. A call without a result is closed in the
/// request.
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
        let loads = source.kind == SourceKind::History;
        let origin = Origin { source, message_ids: Vec::new(), ..origin.clone() };
        // Loaded history is what requests contain in the place of the stored one, and has its ids.
        let base = if loads { JoinBase::history(live) } else { JoinBase::live(before, live) };
        let joined = join_apart(base, messages, &origin, ids);
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

    /// Returns true if the model would have nothing to answer: there is no input, and the last item is an answer
    /// without calls.
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

/// Adds the earlier part of a conversation that the application holds to an empty live turn, with its calls and their
/// results. Call ids are those of the application, whatever history contains. Returns the report.
pub fn join_held(live: &mut History, earlier: Vec<Incoming>, origin: &Origin, ids: &dyn IdSource) -> Report {
    let source = Source { kind: SourceKind::History, id: None };
    let origin = Origin { source, message_ids: Vec::new(), ..origin.clone() };
    let joined = join(JoinBase::history(live), earlier, &origin, ids);
    joined.entries.into_iter().for_each(|entry| live.apply(entry));
    joined.report
}
