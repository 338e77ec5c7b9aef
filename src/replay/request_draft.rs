//! The draft of a request: messages in order, each with its calls, each call with its result.
//!
//! Pairing is valid by construction: a result belongs to its call and has no position of its own.

use super::cut::Cut;
use crate::id::{hash_word, hash_words};
use crate::message::{Message, Part, PartBody, Role};
use crate::tool::{ToolInvocation, ToolResult};

/// A draft of a history, followed by a live turn that is not in history yet.
#[derive(Clone, Debug, Default)]
pub struct RequestDraft<'h> {
    /// The messages, in the order in which they are sent.
    pub messages: Vec<DraftMessage<'h>>,
    /// True if it repeats what the run has chosen of history, and has only new messages of the live turn beside it.
    pub is_repeated: bool,
    /// Why it does not repeat what the last request contained, although the policy asks for that.
    pub cut: Option<Cut>,
    /// The hash of the results that history had when its part of the draft was chosen
    /// ([`History::late_results_hash`](crate::history::History::late_results_hash)).
    pub known_results: u64,
    /// The index of the stored answer that it begins with, and whose compaction stands for what precedes it; 0 without.
    pub compacted_before: usize,
}

/// A message of a draft.
#[derive(Clone, Debug)]
pub struct DraftMessage<'h> {
    /// The stored message.
    pub message: &'h Message,
    /// Where the message is stored.
    pub origin: DraftOrigin,
    /// The calls that are sent, in order.
    pub calls: Vec<DraftCall<'h>>,
    /// True if the results of these calls are part of the next wire message.
    pub results_go_on: bool,
    /// True if the service has the message and its calls: only the results of these calls are sent.
    pub is_acknowledged: bool,
    /// What the message contains beside its neutral content.
    pub extra_content: ExtraContent,
}

/// What an answer contains in a form that only its own dialect has, if that dialect accepts an answer of nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExtraContent {
    /// Nothing.
    #[default]
    None,
    /// Reasoning.
    Reasoning,
    /// Other content, such as `"audio":{"id":"audio_1"}` in Chat Completions.
    Other,
}

/// Where the message of a draft is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftOrigin {
    /// In history, at this index.
    Stored(usize),
    /// In the live turn, at this index.
    Live(usize),
    /// Nowhere: a reducer created it.
    Created,
    /// Nowhere: it replaces older messages, as a summary or as the history that is nested for an agent.
    Replacement,
    /// Nowhere: it is the late result of a call (R75), which is in the draft, too, if the dialect has late outputs.
    LateResult,
}

/// A call of a draft.
#[derive(Clone, Debug)]
pub struct DraftCall<'h> {
    /// The stored invocation.
    pub invocation: &'h ToolInvocation,
    /// The result. After the pairing pass a call without one is open, which its dialect allows.
    pub result: Option<DraftResult<'h>>,
}

/// The result of a call of a draft.
#[derive(Clone, Copy, Debug)]
pub enum DraftResult<'h> {
    /// The stored result, or the part of it that a pass kept.
    Stored(&'h ToolResult),
    /// A text that closes a call without a result.
    Closing(&'h str),
    /// A note instead of a result that is too old.
    Placeholder(&'h str),
    /// The beginning of the stored result.
    Cut {
        /// The complete result.
        result: &'h ToolResult,
        /// The number of bytes to show, including the note that the result is shortened.
        bytes: u32,
    },
}

impl<'h> RequestDraft<'h> {
    /// Keeps the messages for which `stays` returns true.
    pub fn retain(&mut self, stays: &mut dyn FnMut(&DraftMessage<'h>) -> bool) {
        self.messages.retain(|item| stays(item));
    }
}

impl<'h> DraftMessage<'h> {
    /// Returns a draft message without calls that is not in history.
    #[must_use]
    pub fn created(message: &'h Message, origin: DraftOrigin) -> Self {
        Self {
            message,
            origin,
            calls: Vec::new(),
            results_go_on: false,
            is_acknowledged: false,
            extra_content: ExtraContent::None,
        }
    }

    /// Returns true if a provider of context or history has added the message to this request, and no reducer has
    /// changed it.
    #[must_use]
    pub fn is_provided(&self) -> bool {
        matches!(self.origin, DraftOrigin::Live(_)) && self.message.source.is_of_provider()
    }

    /// Returns true for a system or developer message.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.message.is_system()
    }

    /// Returns the call of a part, unless the draft dropped it. Searches by the call's place in the message.
    #[must_use]
    pub fn call(&self, part: &PartBody) -> Option<&DraftCall<'h>> {
        let PartBody::ToolCall { invocation, place, .. } = part else { return None };
        let from = self.calls.partition_point(|call| call.invocation.place < *place);
        let at_place = self.calls.iter().skip(from).take_while(|call| call.invocation.place == *place);
        at_place.into_iter().find(|call| call.invocation.id == *invocation)
    }

    /// Returns true if the message has content besides its calls and reasoning.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.message.parts.iter().any(|part| match &part.body {
            PartBody::Text(text) | PartBody::Refusal(text) => !text.is_empty(),
            PartBody::Image(_) | PartBody::File(_) | PartBody::Opaque(_) => true,
            PartBody::Data { .. } | PartBody::Reasoning(_) | PartBody::ToolCall { .. } => false,
        })
    }

    /// Returns true if there is something to send: in an answer, content, calls, or
    /// [`extra_content`](Self::has_extra_content).
    #[must_use]
    pub fn is_sendable(&self, with_reasoning: bool) -> bool {
        self.message.role != Role::Assistant
            || self.has_content()
            || !self.calls.is_empty()
            || self.has_extra_content(with_reasoning)
    }

    /// Returns true if an answer has [`extra_content`](Self::extra_content). Reasoning counts only if `with_reasoning`
    /// is set.
    ///
    /// Returns false if a call of the answer was dropped: that content is dropped with it.
    #[must_use]
    pub fn has_extra_content(&self, with_reasoning: bool) -> bool {
        let counts = match self.extra_content {
            ExtraContent::None => false,
            ExtraContent::Reasoning => with_reasoning,
            ExtraContent::Other => true,
        };
        let is_call = |part: &&Part| matches!(part.body, PartBody::ToolCall { .. });
        counts && self.message.parts.iter().filter(is_call).count() == self.calls.len()
    }

    /// Returns a hash of everything in which two drafts of one message may differ.
    #[must_use]
    pub fn signature(&self) -> u64 {
        let flags = u64::from(self.results_go_on) + 2 * u64::from(self.is_acknowledged);
        self.calls.iter().fold(flags + 1, |sum, call| {
            let kind = match call.result {
                None => 0,
                Some(DraftResult::Stored(result)) => shown(call, result),
                Some(DraftResult::Closing(_)) => 16,
                Some(DraftResult::Placeholder(_)) => 17,
                Some(DraftResult::Cut { result, bytes }) => hash_word(shown(call, result), u64::from(bytes)),
            };
            hash_word(hash_word(sum, kind), u64::from(call.invocation.place))
        })
    }
}

/// Returns a hash of a result that is shown: the invocation's own, or the part of it that a pass kept.
fn shown(call: &DraftCall<'_>, result: &ToolResult) -> u64 {
    let is_unchanged = call.invocation.result.as_ref().is_some_and(|stored| std::ptr::eq(stored, result));
    let content = result.content.as_str().as_bytes();
    let length = content.len() as u64 * 2 + u64::from(is_unchanged);
    let hash = match content.first_chunk::<16>().filter(|_| is_unchanged) {
        // A stored result that replaces another one (R8) has another length, or begins with other bytes.
        Some(first) => first.as_chunks().0.iter().fold(length, |hash, word| hash_word(hash, u64::from_le_bytes(*word))),
        None => hash_words(length, content),
    };
    (hash << 8) + 1 + call.invocation.status as u64
}
