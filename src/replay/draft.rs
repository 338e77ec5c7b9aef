//! The draft of what the model is shown: messages in order, each with its calls, each call with what answers it.
//!
//! Pairing is valid by construction: a result has no place of its own, it hangs on its call.

use crate::message::{ExtraMembers, Message, PartBody, Role, TemplateSlot};
use crate::tool::{ToolInvocation, ToolResult};

/// A draft over a history and, behind it, a turn that is not in it yet.
#[derive(Clone, Debug, Default)]
pub struct Draft<'h> {
    /// In the order in which they are sent.
    pub messages: Vec<DraftMessage<'h>>,
}

/// A message as the model is shown it.
#[derive(Clone, Debug)]
pub struct DraftMessage<'h> {
    /// The stored message.
    pub message: &'h Message,
    /// Its place in the history, or in the live turn.
    pub origin: DraftOrigin,
    /// Its calls in their places; one that is left out is not here.
    pub calls: Vec<DraftCall<'h>>,
    /// The results of these calls stand in the next message's wire form.
    pub results_go_on: bool,
}

/// Where a draft message's stored form is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftOrigin {
    /// In the history, at that index.
    Stored(usize),
    /// In the live turn, at that index.
    Live(usize),
    /// Nowhere: a reducer made it.
    Made,
    /// Nowhere: it stands in for the messages that it sums up.
    Summary,
}

/// A call as the model is shown it.
#[derive(Clone, Debug)]
pub struct DraftCall<'h> {
    /// The stored invocation.
    pub invocation: &'h ToolInvocation,
    /// What answers it; none only before the pairing pass.
    pub result: Option<DraftResult<'h>>,
}

/// What answers a call.
#[derive(Clone, Copy, Debug)]
pub enum DraftResult<'h> {
    /// The stored result, or what a pass left of it.
    Stored(&'h ToolResult),
    /// It was never started, or nobody knows.
    Closing(&'h str),
    /// A note in place of a result that is too old.
    Placeholder(&'h str),
    /// The beginning of the stored result.
    Cut {
        /// All of it.
        result: &'h ToolResult,
        /// How much is shown, in bytes, the note that says so included.
        bytes: u32,
    },
}

/// Whether servers of OpenAI's format keep reasoning in a member of that name.
#[must_use]
pub fn names_reasoning(member: &str) -> bool {
    member.starts_with("reasoning") || member.starts_with("thinking")
}

impl<'h> Draft<'h> {
    /// Keeps the messages that are to stay.
    pub fn retain(&mut self, stays: &mut dyn FnMut(&DraftMessage<'h>) -> bool) {
        self.messages.retain(|item| stays(item));
    }
}

impl<'h> DraftMessage<'h> {
    /// Returns the call of a part, unless the draft dropped it. Searches by the call's place in the message.
    #[must_use]
    pub fn call(&self, part: &PartBody) -> Option<&DraftCall<'h>> {
        let PartBody::ToolCall { invocation, place, .. } = part else { return None };
        let from = self.calls.partition_point(|call| call.invocation.place < *place);
        let at_place = self.calls.iter().skip(from).take_while(|call| call.invocation.place == *place);
        at_place.into_iter().find(|call| call.invocation.id == *invocation)
    }

    /// Whether it says anything beside its calls.
    #[must_use]
    pub fn has_words(&self) -> bool {
        self.message.parts.iter().any(|part| match &part.body {
            PartBody::Text(text) | PartBody::Refusal(text) => !text.is_empty(),
            PartBody::Image(_) | PartBody::File(_) | PartBody::Opaque(_) => true,
            PartBody::Data { .. } | PartBody::Reasoning(_) | PartBody::ToolCall { .. } => false,
        })
    }

    /// Whether there is anything to send: of an answer words, calls, or what [`has_own`](Self::has_own) finds.
    #[must_use]
    pub fn says(&self, reasoning: bool) -> bool {
        self.message.role != Role::Assistant || self.has_words() || !self.calls.is_empty() || self.has_own(reasoning)
    }

    /// Whether an answer says something in a form of its own: reasoning (where that counts), or a member that holds something,
    /// such as OpenAI's `audio`. A text or a number in a member is an id, a name, a state. What stood beside a call that went
    /// goes with it. Only servers of OpenAI's format take such an answer without words.
    #[must_use]
    pub fn has_own(&self, reasoning: bool) -> bool {
        let message = self.message;
        let mut asked = 0;
        let mut own = false;
        for part in &message.parts {
            match &part.body {
                PartBody::ToolCall { .. } => asked += 1,
                PartBody::Reasoning(text) => own |= reasoning && !text.is_empty(),
                _ => {}
            }
        }
        for (key, slot) in message.template.iter().flat_map(|template| &template.0) {
            let TemplateSlot::Raw(value) = slot else { continue };
            let holds = value.as_str().len() > 2 && value.as_str().starts_with(['{', '[']);
            let key = key.inside();
            own |= holds && !matches!(key, "content" | "tool_calls") && (reasoning || !names_reasoning(key));
        }
        own && asked == self.calls.len()
            && message.role == Role::Assistant
            && message.dialect.is_some_and(|dialect| dialect.extra_members() == ExtraMembers::Content)
    }

    /// Stands for everything that makes this draft differ from another one of the same message.
    #[must_use]
    pub fn signature(&self) -> u64 {
        self.calls.iter().fold(u64::from(self.results_go_on) + 1, |sum, call| {
            let kind = match call.result {
                None => 0,
                Some(DraftResult::Stored(result)) => shown(call, result),
                Some(DraftResult::Closing(_)) => 16,
                Some(DraftResult::Placeholder(_)) => 17,
                Some(DraftResult::Cut { result, bytes }) => {
                    crate::id::hash_words(shown(call, result), &bytes.to_le_bytes())
                }
            };
            crate::id::hash_words(crate::id::hash_words(sum ^ kind, &[]) ^ u64::from(call.invocation.place), &[])
        })
    }
}

/// Stands for a result that is shown: the invocation's own, or what is left of it.
fn shown(call: &DraftCall<'_>, result: &ToolResult) -> u64 {
    let own = call.invocation.result.as_ref().is_some_and(|own| std::ptr::eq(own, result));
    let less = if own { 0 } else { crate::id::hash_words(1, result.content.as_str().as_bytes()) << 8 };
    less + 1 + call.invocation.status as u64
}
