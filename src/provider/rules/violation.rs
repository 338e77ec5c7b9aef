//! What a rule reports: a finding about a value of the body. Its JSON pointer is computed when all rules are done.

use crate::finding::{Action, FindingCode, Severity};
use crate::json::JsonRef;
use std::borrow::Cow;

/// What a finding is about: a value of the body, or a member of it, which may be missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLocation<'a> {
    pub value: JsonRef<'a>,
    /// A member's name or a relative pointer such as `functionCall/name`; empty for the value itself.
    pub member: &'static str,
}

impl<'a> From<JsonRef<'a>> for BodyLocation<'a> {
    fn from(value: JsonRef<'a>) -> Self {
        Self { value, member: "" }
    }
}

/// A rule that a value violates. It borrows its texts, since most violations of a hostile body are only counted.
/// Reported with [`Plan::report`](super::Plan::report):
///
/// ```ignore
/// plan.report(
///     Violation::error(FindingCode::UnsupportedPart, "messages.{at}: Input tag '{}' was not expected")
///         .at_member(part, "type")
///         .quoting(&kind)
///         .dropped(),
/// );
/// ```
#[derive(Debug)]
pub(crate) struct Violation<'a, 'q> {
    pub(super) severity: Severity,
    pub(super) code: FindingCode,
    pub(super) sentence: Cow<'static, str>,
    /// Replaces `{}` in the sentence.
    pub(super) quoted: &'q str,
    pub(super) location: BodyLocation<'a>,
    pub(super) call_id: Option<&'q str>,
    pub(super) action: Option<Action>,
}

impl<'a, 'q> Violation<'a, 'q> {
    fn new(severity: Severity, code: FindingCode, sentence: Cow<'static, str>) -> Self {
        Self { severity, code, sentence, quoted: "", location: JsonRef::default().into(), call_id: None, action: None }
    }

    /// Creates a violation for which the provider rejects the body. The sentence is the provider's own. In a literal,
    /// `{at}` stands for the index of the current item and `{}` for the text given to [`quoting`](Self::quoting).
    pub fn error(code: FindingCode, sentence: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Severity::Error, code, sentence.into())
    }

    /// Creates a note about a value that the provider accepts, or that no edit can fix. The body stays as it is.
    pub fn warning(code: FindingCode, sentence: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Severity::Warning, code, sentence.into()).with_action(Action::Kept)
    }

    /// Sets what the violation is about.
    pub fn at(mut self, location: impl Into<BodyLocation<'a>>) -> Self {
        self.location = location.into();
        self
    }

    /// Sets the member that the violation is about. It need not exist.
    pub fn at_member(self, value: JsonRef<'a>, member: &'static str) -> Self {
        self.at(BodyLocation { value, member })
    }

    /// Sets the text that stands for `{}` in the sentence.
    pub fn quoting(mut self, text: &'q str) -> Self {
        self.quoted = text;
        self
    }

    /// Sets the call that the violation is about, and its id as the text for `{}`.
    pub fn of_call(mut self, id: &'q str) -> Self {
        self.call_id = Some(id);
        self.quoting(id)
    }

    /// Sets what the repair does.
    pub fn with_action(mut self, action: Action) -> Self {
        self.action = Some(action);
        self
    }

    /// The repair removes the value.
    pub fn dropped(self) -> Self {
        self.with_action(Action::Dropped)
    }

    /// The repair moves the value to another place.
    pub fn moved(self) -> Self {
        self.with_action(Action::Moved)
    }

    /// The repair gives the call or result another id.
    pub fn renamed(self) -> Self {
        self.with_action(Action::Renamed)
    }

    /// The repair writes another value.
    pub fn rewritten(self) -> Self {
        self.with_action(Action::Rewritten)
    }

    /// The repair adds what is missing.
    pub fn synthesized(self) -> Self {
        self.with_action(Action::Synthesized)
    }

    /// The repair cannot fix the value and keeps it.
    pub fn kept(self) -> Self {
        self.with_action(Action::Kept)
    }
}
