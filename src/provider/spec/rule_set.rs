//! The rules of a dialect, and the errors that can be cured.

use crate::json::JsonRef;
use crate::provider::healing::{Cure, Remedy};
use crate::provider::rules::Plan;

/// What a provider rejects, and how it is repaired.
pub(crate) struct RuleSet {
    /// Plans the edits that make a body valid: reports every violation and adds its edit to the plan.
    pub plan: for<'a> fn(&mut Plan<'a, '_>, JsonRef<'a>),
    /// The statuses of an answer that refuses a request before anything of it is processed. Only such a request is
    /// repaired and sent once more.
    pub refusal_statuses: &'static [u16],
    /// The errors of the provider that can be cured (R74).
    pub remedies: &'static [Remedy],
    /// Sentences of the remedies with which the provider refuses anything: only a body tells what they are about.
    pub general_refusals: &'static [&'static [&'static str]],
    /// Removes what the marks of [`Healed::refused`](crate::provider::Healed::refused) name.
    pub leave_out_refused: fn(&mut Cure<'_>, &[String]),
    /// Answers that some models reject without their reasoning.
    pub missing_reasoning: Option<MissingReasoning>,
    /// Names that are unique in a request.
    pub unique_names: Option<UniqueNames>,
}

/// The status of a refusal, in most dialects.
pub(crate) const BAD_REQUEST: &[u16] = &[400];

/// Names that no two items of a list may have.
pub(crate) struct UniqueNames {
    /// What the text of an item with such a name contains.
    pub mark: &'static str,
    /// Returns true if two of the items have one name.
    pub repeats: fn(&[JsonRef<'_>]) -> bool,
}

/// Reasoning that models want back within the running tool loop.
pub(crate) struct MissingReasoning {
    /// Returns true if the model rejects an answer without its reasoning. The parameters may be a body.
    pub is_rejected: fn(JsonRef<'_>) -> bool,
    /// Returns the indices of the answers in a list, after the last message of the user, that lack their reasoning.
    pub find: FindMissingReasoning,
}

/// Returns the indices of the answers in a list that lack their reasoning.
pub(crate) type FindMissingReasoning = fn(JsonRef<'_>) -> Vec<usize>;

impl RuleSet {
    /// Returns how to find the answers of the running tool loop that the model rejects, since their reasoning is
    /// missing; `None` if it demands none with these parameters, which may be a body.
    pub fn find_missing_reasoning(&self, params: JsonRef<'_>) -> Option<FindMissingReasoning> {
        self.missing_reasoning.as_ref().filter(|missing| (missing.is_rejected)(params)).map(|missing| missing.find)
    }
}
