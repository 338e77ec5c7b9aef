//! A draft message together with the messages that share its wire form.

use crate::id::hash_word;
use crate::json::JsonKind;
use crate::message::{Dialect, Part, PartBody, Role, WireTemplate};
use crate::replay::{DraftCall, DraftMessage, DraftResult, RequestDraft};

/// A draft message, with the messages before it whose results are part of the same wire message.
///
/// In Anthropic, the user's text may follow the results in one message:
/// `{"role":"user","content":[{"type":"tool_result",…},{"type":"text",…}]}`.
#[derive(Clone, Copy)]
pub struct JoinedMessage<'d, 'h> {
    pub item: &'d DraftMessage<'h>,
    pub before: &'d [DraftMessage<'h>],
}

impl<'d, 'h> JoinedMessage<'d, 'h> {
    /// Returns the message at an index of a draft.
    pub fn at(draft: &'d RequestDraft<'h>, index: usize) -> Option<Self> {
        let item = draft.messages.get(index)?;
        // An answer whose own results are part of a later message contains none of those before it either.
        let goes_on = item.results_go_on && item.message.role == Role::Assistant;
        let all = draft.messages.get(..index).filter(|_| !goes_on).unwrap_or(&[]);
        let joined = all.iter().rev().take_while(|before| before.results_go_on).count();
        Some(Self { item, before: all.get(all.len() - joined..).unwrap_or(&[]) })
    }

    /// Returns a hash of everything in which two drafts of one message may differ. It depends on the order of the
    /// messages.
    pub fn signature(&self) -> u64 {
        let add = |hash, before: &DraftMessage<'_>| hash_word(hash, before.signature());
        self.before.iter().fold(self.item.signature(), add)
    }

    /// Returns true if a part of the wire form in a dialect was received as it is, so that this crate did not choose
    /// its form.
    pub fn is_as_received(&self, dialect: Dialect) -> bool {
        is_as_received(self.item, dialect) || self.before.iter().any(|before| is_as_received(before, dialect))
    }
}

fn is_as_received(item: &DraftMessage<'_>, dialect: Dialect) -> bool {
    let message = item.message;
    // Templates are not used for another dialect than the message's.
    let is_native = message.dialect == Some(dialect);
    let is_used = |template: &Option<WireTemplate>| is_native && template.is_some();
    is_used(&message.template)
        || message.parts.iter().any(|part| is_used(&part.template) || has_received_value(part))
        || item.calls.iter().any(|call| is_used(&call.invocation.template) || is_result_as_received(call))
}

fn has_received_value(part: &Part) -> bool {
    matches!(part.body, PartBody::Opaque(_) | PartBody::Image(_) | PartBody::File(_))
}

fn is_result_as_received(call: &DraftCall<'_>) -> bool {
    let Some(DraftResult::Stored(result)) = call.result else { return false };
    result.template.is_some() || (result.dialect.is_some() && result.content.view().kind() != JsonKind::String)
}
