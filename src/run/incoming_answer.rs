//! The answer of a run as an application sees it before it is part of the turn.

use crate::clock::Ms;
use crate::message::Message;
use crate::provider::{AnswerBlock, StreamAssembler};

/// The answer that a run receives, or whose rest it will not receive.
pub enum PartialAnswer<'r> {
    /// It is coming in.
    Incoming(IncomingAnswer<'r>),
    /// The run ended early.
    Cut(&'r Message),
}

/// A streamed answer that is coming in. Reading it after each piece copies none of its text.
pub struct IncomingAnswer<'r> {
    message: &'r Message,
    assembler: &'r StreamAssembler,
    duration: Ms,
}

impl<'r> IncomingAnswer<'r> {
    /// Returns none if nothing of the answer can be shown. `message` is the answer's without parts, `duration` the time
    /// since the request.
    pub(super) fn new(message: &'r Message, assembler: &'r StreamAssembler, duration: Ms) -> Option<Self> {
        let mut is_empty = true;
        assembler.visit_blocks(&mut |_| is_empty = false);
        (!is_empty).then_some(Self { message, assembler, duration })
    }

    /// Returns the answer's message, without parts.
    #[must_use]
    pub fn message(&self) -> Message {
        let mut message = self.message.clone();
        if let Some(answer) = &mut message.answer {
            let meta = self.assembler.meta();
            answer.model.clone_from(&meta.model);
            answer.usage = meta.usage;
            answer.finish_reason.clone_from(&meta.finish_reason);
            answer.duration_ms = Some(self.duration);
        }
        message
    }

    /// Visits the blocks received so far.
    pub fn visit_blocks(&self, visit: &mut dyn FnMut(AnswerBlock<'_>)) {
        self.assembler.visit_blocks(visit);
    }
}

impl PartialAnswer<'_> {
    /// Returns a copy of the answer.
    #[must_use]
    pub fn to_message(&self) -> Message {
        match self {
            Self::Incoming(answer) => {
                let mut message = answer.message();
                answer.visit_blocks(&mut |block| message.parts.push(block.to_part()));
                message
            }
            Self::Cut(message) => (*message).clone(),
        }
    }
}
