//! Messages of the Chat Completions family.

use super::variant::ChatVariant;
use super::{decode, encode};
use crate::history::Incoming;
use crate::json::JsonRef;
use crate::message::{Message, Part, Role};
use crate::provider::spec::{EncodeContext, MessageCodec, Wire};
use crate::replay::{DraftMessage, ExtraContent};

impl MessageCodec for ChatVariant {
    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        for wire in wires {
            items.push(decode::decode_message(self, *wire));
        }
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode::decode_block(self, block)
    }

    fn extra_content(&self, answer: &Message) -> ExtraContent {
        decode::extra_content(answer)
    }

    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
        encode::ChatEncoder::new(self, item, context).encode(wire, context.report);
    }

    fn may_end(&self, item: &DraftMessage<'_>) -> bool {
        self.free_order || item.message.role != Role::Assistant || !item.calls.is_empty()
    }

    fn may_follow(&self, before: &DraftMessage<'_>, item: &DraftMessage<'_>) -> bool {
        self.free_order
            || before.message.role != Role::Assistant
            || !matches!(item.message.role, Role::System | Role::Developer)
    }
}
