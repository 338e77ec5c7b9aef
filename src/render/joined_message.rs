//! A draft message together with the messages that share its wire form.

use crate::id::hash_words;
use crate::json::JsonKind;
use crate::message::{Part, PartBody};
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
        let all = draft.messages.get(..index).unwrap_or(&[]);
        let joined = all.iter().rev().take_while(|before| before.results_go_on).count();
        Some(Self { item, before: all.get(all.len() - joined..).unwrap_or(&[]) })
    }

    /// Returns a hash of everything in which two drafts of one message may differ. It depends on the order of the messages.
    pub fn signature(&self) -> u64 {
        let add = |hash, before: &DraftMessage<'_>| hash_words(hash, &before.signature().to_le_bytes());
        self.before.iter().fold(self.item.signature(), add)
    }

    /// Returns true if a part of the wire form was received as it is, so that this crate did not choose its form.
    pub fn is_as_received(&self) -> bool {
        is_as_received(self.item) || self.before.iter().any(is_as_received)
    }
}

fn is_as_received(item: &DraftMessage<'_>) -> bool {
    let message = item.message;
    message.template.is_some()
        || message.parts.iter().any(is_part_as_received)
        || item.calls.iter().any(|call| call.invocation.template.is_some() || is_result_as_received(call))
}

fn is_part_as_received(part: &Part) -> bool {
    part.template.is_some() || matches!(part.body, PartBody::Opaque(_) | PartBody::Image(_) | PartBody::File(_))
}

fn is_result_as_received(call: &DraftCall<'_>) -> bool {
    let Some(DraftResult::Stored(result)) = call.result else { return false };
    result.template.is_some() || (result.dialect.is_some() && result.content.view().kind() != JsonKind::String)
}
