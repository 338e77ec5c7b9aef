//! The list of dialects.

use crate::error::{Error, Result};
use minicbor::{Decode, Encode};

/// Gives the list of dialects to a macro: of each its number in stored records, its public name, its folder in
/// `src/provider`, how its results name their calls, and where they may be.
macro_rules! dialects {
    ($make:ident) => {
        $make! {
            /// OpenAI Chat Completions and compatible servers.
            0 => OpenAiChat = "openai-chat" in openai_chat, ById, AfterCall;
            /// OpenAI Responses.
            1 => OpenAiResponses = "openai-responses" in openai_responses, ById, Later;
            /// Anthropic Messages.
            2 => Anthropic = "anthropic" in anthropic, ById, AfterCall;
            /// Google Gemini.
            3 => Gemini = "gemini" in gemini, ByName, AfterCall;
            /// Mistral's chat completions.
            4 => Mistral = "mistral" in mistral, ById, AfterCall;
            /// Amazon Bedrock's Converse.
            5 => Bedrock = "bedrock" in bedrock, ById, AfterCall;
            /// Mistral's conversations.
            6 => MistralConversations = "mistral-conversations" in mistral_conversations, ById, AfterCall;
            /// Gemini's Interactions API.
            7 => GeminiInteractions = "gemini-interactions" in gemini_interactions, ById, AfterCall;
        }
    };
}

pub(crate) use dialects;

/// Declares [`Dialect`].
macro_rules! declare {
    ($($(#[$doc:meta])* $number:literal => $variant:ident = $name:literal in $_folder:ident, $matching:ident, $outputs:ident;)*) => {
        /// The wire formats.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode)]
        #[cbor(index_only)]
        pub enum Dialect {
            $($(#[$doc])* #[n($number)] $variant,)*
        }

        impl Dialect {
            /// Every dialect.
            pub const ALL: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];

            /// Returns the name in the public types.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns how a result names the call that it answers.
            #[must_use]
            pub const fn call_matching(self) -> CallMatching {
                match self {
                    $(Self::$variant => CallMatching::$matching,)*
                }
            }

            /// Returns where the result of a call may be.
            #[must_use]
            pub const fn result_places(self) -> ResultPlaces {
                match self {
                    $(Self::$variant => ResultPlaces::$outputs,)*
                }
            }
        }
    };
}

/// How a result names the call that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMatching {
    /// By the call's id, which every call has.
    ById,
    /// By the call's id if there is one, else by the tool's name and the order: ids are optional.
    ByName,
}

/// Where the result of a call may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultPlaces {
    /// After the answer with the call, and nowhere else.
    AfterCall,
    /// For a call that is marked as asynchronous anywhere later, or nowhere yet (OpenAI, 2026-11-10).
    Later,
}

dialects!(declare);

impl Dialect {
    /// Returns the value of a name in the public types.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == name)
    }

    /// Reads a name that an application gave.
    ///
    /// # Errors
    /// `config_invalid` for another word; the message lists the names.
    pub fn read(name: &str) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            Error::config(format!("\"{name}\" is no dialect; the dialects are {names}"))
        })
    }
}
