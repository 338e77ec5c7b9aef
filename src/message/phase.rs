//! What a text is within its answer.

use minicbor::{Decode, Encode};

/// What a text of the model is within its answer (OpenAI Responses, on assistant messages). An unknown one stays in the
/// template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Phase {
    /// It accompanies the work, such as a note before a call.
    #[n(0)]
    Commentary,
    /// It is the answer.
    #[n(1)]
    FinalAnswer,
}

impl Phase {
    /// Returns the value of a name in the public types.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Commentary, Self::FinalAnswer].into_iter().find(|phase| phase.as_str() == name)
    }

    /// Returns the name in the public types.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Commentary => "commentary",
            Self::FinalAnswer => "final_answer",
        }
    }
}
