//! JSON of an owner, in the form of the public option `owner`.

use super::StateOwner;
use crate::json::ObjectWriter;

impl StateOwner {
    /// Writes the members of a `StateOwner`.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        out.text("kind", self.kind());
        match self {
            Self::Session | Self::Caller => {}
            Self::Conversation { id } => {
                out.text("conversationId", id);
            }
            Self::Response { previous: Some(previous) } => {
                out.text("previousResponseId", previous);
            }
            Self::Response { previous: None } => {
                out.bool("auto", true);
            }
        }
    }
}
