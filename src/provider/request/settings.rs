//! What a server that is nearly the dialect wants otherwise.

use crate::message::Role;

/// Settings of one provider; part of what a kept encoding depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The role that system and developer messages take (OpenAI chat).
    pub system_role: Option<Role>,
    /// What becomes of reasoning (OpenAI chat).
    pub reasoning: ReasoningField,
    /// Ask for usage in a stream (OpenAI chat); on unless said otherwise.
    pub no_stream_usage: bool,
    /// The model's version where its name says one: 306 for 3.6, else 0 (Gemini).
    pub version: u16,
    /// Whose model it is, where rules tell that apart (OpenAI Responses); otherwise empty. Names are of different lengths.
    pub model: &'static str,
}

/// What becomes of reasoning in a dialect that has no place of its own for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReasoningField {
    /// It returns in the member it came in, and only there.
    #[default]
    AsCame,
    /// All of it goes out in that member.
    Named(&'static str),
    /// None goes out.
    Drop,
}

impl Settings {
    /// Stands for all that changes a message's encoding.
    #[must_use]
    pub fn signature(&self) -> u64 {
        let role = self.system_role.map_or(0, |role| 1 + role as u64);
        let reasoning = match self.reasoning {
            ReasoningField::AsCame => 0,
            ReasoningField::Named("reasoning") => 1,
            ReasoningField::Named(_) => 2,
            ReasoningField::Drop => 3,
        };
        ((role * 4 + reasoning) << 16 | u64::from(self.version)) ^ (self.model.len() as u64) << 32
    }
}
