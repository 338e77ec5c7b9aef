//! An item of `input`, as the rules read it.

use crate::json::JsonRef;
use crate::provider::rules::BodyPiece;

/// What an item is to the items beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputKind {
    /// A call, with its index in [`Pairs::calls`](crate::provider::rules::Pairs).
    Call(usize),
    /// An output, with its index among the outputs.
    Output(usize),
    /// An output that names its tool and no call. It keeps its place.
    NamedOutput,
    /// A message of the user or the system. Calls before it must have their output before it.
    InputMessage,
    /// A message of the model, with or without an item id.
    AnswerMessage {
        has_id: bool,
    },
    /// Reasoning with an id of OpenAI's (`rs_…`): the item that it belongs to must follow.
    Reasoning,
    /// Any other item: it is kept.
    Other,
    Removed,
}

impl InputKind {
    pub fn is_output(self) -> bool {
        matches!(self, Self::Output(_) | Self::NamedOutput)
    }
}

/// An item of the list.
pub(super) struct InputItem<'a> {
    pub kind: InputKind,
    pub value: JsonRef<'a>,
    /// The text that stands for it in the new list.
    pub piece: BodyPiece,
}
