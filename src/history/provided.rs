//! Messages that a history provider of the application adds to a request (R33). They precede its input, and are never stored in history.

use super::fold::History;
use super::incoming::{Incoming, IncomingMessage, IncomingPart};
use super::join::{JoinBase, Origin, join};
use super::new_message::{NewItem, NewMessage, NewPart};
use crate::error::{Error, ErrorCode, Result};
use crate::id::IdSource;
use crate::json::JsonRef;
use crate::message::{Source, SourceKind};

/// The messages of one provider, stamped with their source.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvidedMessages {
    source: Source,
    messages: Vec<Incoming>,
}

impl ProvidedMessages {
    /// Reads a list of `{"provider":"rag","type":"context","messages":[…]}`.
    ///
    /// # Errors
    /// `callback_failed`, which names the provider and the message.
    pub fn read_all(list: JsonRef<'_>) -> Result<Vec<Self>> {
        list.items().map(Self::read).collect()
    }

    fn read(provided: JsonRef<'_>) -> Result<Self> {
        let name = provided.string("provider");
        let is_history = provided.has_text("type", SourceKind::History.as_str());
        let kind = if is_history { SourceKind::History } else { SourceKind::Context };
        let messages = provided.get("messages").map_or_else(|| Ok(Vec::new()), read_messages).map_err(|error| {
            let message =
                format!("the history provider \"{name}\" gave messages that cannot be used: {}", error.message);
            Error::new(ErrorCode::CallbackFailed, message)
        })?;
        Ok(Self { source: Source { kind, id: Some(name) }, messages })
    }
}

fn read_messages(list: JsonRef<'_>) -> Result<Vec<Incoming>> {
    let read = |(at, item)| {
        match item {
            NewItem::Message(message) => incoming(message).map(Incoming::Message),
            NewItem::Results(..) => None,
        }
        .ok_or_else(|| {
            Error::invalid(format!(
                "message {at}: calls of tools and their results cannot be provided; provide their text"
            ))
        })
    };
    NewItem::read_all(list)?.into_iter().enumerate().map(read).collect()
}

/// Returns a message without its id, which may be in use; none if it has calls.
fn incoming(message: NewMessage) -> Option<IncomingMessage> {
    let part = |part| match part {
        NewPart::Part(part) => Some(IncomingPart::Part(part)),
        NewPart::Call(_) | NewPart::StepStart => None,
    };
    let parts = message.parts.into_iter().map(part).collect::<Option<Vec<_>>>()?;
    Some(IncomingMessage { role: message.role, parts, dialect: None, template: None })
}

/// Adds provided messages to a live turn, in the order of the providers.
pub fn join_provided(
    before: &History,
    live: &mut History,
    provided: Vec<ProvidedMessages>,
    origin: &Origin,
    ids: &dyn IdSource,
) {
    for ProvidedMessages { source, messages } in provided {
        let origin = Origin { source, message_ids: Vec::new(), ..origin.clone() };
        let joined = join(JoinBase::live(before, live), messages, &origin, ids);
        joined.entries.into_iter().for_each(|entry| live.apply(entry));
    }
}
