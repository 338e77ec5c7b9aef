//! A row of the table of remedies.

use super::cure::Cure;
use super::error_answer::ErrorAnswer;

/// An error with which a provider refuses a request, and its cure.
pub(crate) struct Remedy {
    /// The provider's sentences, each as the parts that are the same for all bodies, in their order. Without quotation
    /// marks and backticks, which gateways escape and replace.
    pub sentences: &'static [&'static [&'static str]],
    /// The provider's stable error codes.
    pub codes: &'static [&'static str],
    /// The heading of the entry in the dialect's page of rules.
    pub rule: &'static str,
    /// What the cure does, in a sentence.
    pub done: &'static str,
    /// Plans the edits. The rules of the dialect run afterwards.
    pub cure: fn(&mut Cure<'_>, &ErrorAnswer),
}

impl Remedy {
    /// Returns true if the answer has one of the sentences or codes.
    pub fn cures(&self, answer: &ErrorAnswer) -> bool {
        self.is_named_by(answer, &[])
    }

    /// Returns true if the answer has one of the codes, or one of the sentences that are not `general`.
    pub fn is_named_by(&self, answer: &ErrorAnswer, general: &[&[&str]]) -> bool {
        self.sentences.iter().any(|parts| !general.contains(parts) && answer.find(parts).is_some())
            || self.codes.iter().any(|code| answer.has_word(code))
    }

    /// Returns what the provider said: its own sentence, or its code.
    pub fn quotation(&self, answer: &ErrorAnswer) -> String {
        let sentence = self.sentences.iter().find_map(|parts| answer.quotation(parts));
        let code = || self.codes.iter().find(|code| answer.has_word(code)).map(|code| (*code).to_owned());
        sentence.or_else(code).unwrap_or_default()
    }
}

/// The cure by the rules alone.
pub(crate) fn by_rules(_cure: &mut Cure<'_>, _answer: &ErrorAnswer) {}
