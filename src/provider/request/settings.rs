//! Settings for servers that differ from their dialect in details.

use crate::id::hash_words;
use crate::message::Role;

/// Settings of one provider. The encoding of a message depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The role in which system and developer messages are sent (OpenAI chat).
    pub system_role: Option<Role>,
    /// Where reasoning is sent (OpenAI chat).
    pub reasoning: ReasoningField,
    /// True to not request token counts in a stream (OpenAI chat).
    pub no_stream_usage: bool,
    /// The model's version, if its name contains one: 306 for 3.6, otherwise 0 (Gemini).
    pub version: u16,
    /// The vendor of the model, if rules depend on it (OpenAI Responses); otherwise empty.
    pub model: &'static str,
    /// True to leave out items that name what the service stored, since it does not have that any more (OpenAI
    /// Responses).
    pub omits_kept_items: bool,
}

/// Where reasoning is sent in a dialect that has no member of its own for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReasoningField {
    /// In the member in which it was received. Other reasoning is not sent.
    #[default]
    AsCame,
    /// In this member, all of it.
    Named(&'static str),
    /// Nowhere.
    Drop,
}

impl Settings {
    /// Returns a number that differs between settings under which messages are encoded differently.
    #[must_use]
    pub fn signature(&self) -> u64 {
        let role = self.system_role.map_or(0, |role| 1 + role as u64);
        let (reasoning, field) = match self.reasoning {
            ReasoningField::AsCame => (0, ""),
            ReasoningField::Named(field) => (1, field),
            ReasoningField::Drop => (2, ""),
        };
        let numbers = ((role * 4 + reasoning) * 2 + u64::from(self.omits_kept_items)) << 16 | u64::from(self.version);
        hash_words(hash_words(numbers, field.as_bytes()), self.model.as_bytes())
    }
}
