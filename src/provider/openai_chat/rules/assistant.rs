//! Assistant messages, once their calls are paired.

use crate::finding::{Action, FindingCode};
use crate::json::{JsonKind, JsonRef};
use crate::provider::rules::{BodyPiece, ListMessage, Pairs, Plan, Violation, WireCall};
use std::ops::Range;

/// An assistant message that is fixed once its calls are paired: calls without a result may be omitted, and then
/// nothing may be left of it.
pub(crate) struct PendingAssistant<'a> {
    /// Its index in the list.
    pub at: usize,
    pub value: JsonRef<'a>,
    /// The member `tool_calls`.
    pub list: Option<JsonRef<'a>>,
    /// Its calls in [`Pairs::calls`].
    pub calls: Range<usize>,
    /// `tool_calls` must be written anew: it has items that are no calls, or is no list.
    pub needs_new_list: bool,
    /// The member `content`.
    pub content: Option<JsonRef<'a>>,
    /// The content was an empty list, or all its parts were removed.
    pub content_removed: bool,
    /// It has content beside `content` and `tool_calls`.
    pub has_other_content: bool,
    /// It has members that may be worth keeping the message for.
    pub has_extra_members: bool,
}

impl<'a> PendingAssistant<'a> {
    /// Returns the calls of the message.
    pub fn calls<'p>(&self, pairs: &'p Pairs<'a>) -> &'p [WireCall<'a>] {
        pairs.calls.get(self.calls.clone()).unwrap_or_default()
    }

    /// Writes the list of the calls that stay, and removes the message if nothing is left of it. `empty_answer`: the
    /// provider's error about a message without content and calls, if it counts empty text as none.
    pub fn settle(
        &self,
        plan: &mut Plan<'a, '_>,
        pairs: &Pairs<'a>,
        message: &mut ListMessage,
        empty_answer: Option<&'static str>,
    ) {
        let kept: Vec<BodyPiece> =
            self.calls(pairs).iter().filter(|call| !call.omitted).map(|call| plan.edits.source(call.value)).collect();
        let (has_calls, has_omitted_calls) = (!kept.is_empty(), kept.len() < self.calls.len());
        if self.needs_new_list || has_omitted_calls {
            self.write_calls(plan, kept);
        }
        let is_answer = has_calls || self.has_other_content;
        if let Some(content) = self.content.filter(|_| self.content_removed && is_answer) {
            plan.edits.replace(content, BodyPiece::New("null".into()));
        }
        let is_empty_text = self.content.is_some_and(|content| content.is_text(""));
        let is_blank = self.lacks_content(empty_answer.is_some()) || is_empty_text && has_omitted_calls;
        if !is_answer && is_blank {
            self.fix_empty(
                plan,
                message,
                EmptyCause { empty_answer, reported: has_omitted_calls || self.content_removed },
            );
        } else if !is_answer && is_empty_text {
            let sentence =
                "The assistant message has neither text nor calls: the provider accepts it, but it is empty.";
            plan.report(Violation::warning(FindingCode::EmptyContent, sentence).at_member(self.value, "content"));
        }
    }

    fn write_calls(&self, plan: &mut Plan<'a, '_>, kept: Vec<BodyPiece>) {
        let Some(list) = self.list else { return };
        if kept.is_empty() {
            plan.edits.remove(self.value, "tool_calls");
        } else if list.is_object() {
            plan.edits.wrap(list, "[", "]");
        } else {
            plan.edits.rebuild(list, kept);
        }
    }

    /// Returns true if the provider rejects the content of a message that has nothing else.
    fn lacks_content(&self, rejects_empty_text: bool) -> bool {
        let is_empty_list =
            |content: JsonRef<'_>| content.kind() == JsonKind::Array && content.items().next().is_none();
        let is_missing = |content: JsonRef<'_>| {
            content.is_null() || rejects_empty_text && (content.is_text("") || is_empty_list(content))
        };
        self.content_removed || self.content.is_none_or(is_missing)
    }

    /// Removes a message that has neither content nor calls. One with extra members stays with empty content: they may
    /// be reasoning that a compatible server wants back.
    fn fix_empty(&self, plan: &mut Plan<'a, '_>, message: &mut ListMessage, cause: EmptyCause) {
        let stays = self.has_extra_members && cause.empty_answer.is_none();
        if stays {
            plan.edits.set(self.value, "content", "\"\"".into());
        } else {
            message.remove();
        }
        if cause.reported && !stays {
            return;
        }
        plan.at = self.at;
        let sentence = cause.empty_answer.unwrap_or(
            "Invalid value for 'messages[{at}].content': expected a string, got null. Only a message with 'tool_calls' may go without.",
        );
        let action = if stays { Action::Rewritten } else { Action::Dropped };
        plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(self.value).with_action(action));
    }
}

/// Why a message is empty.
struct EmptyCause {
    /// The provider's error about it, if it rejects empty text.
    empty_answer: Option<&'static str>,
    /// The violation that emptied it was reported.
    reported: bool,
}
