//! Entries of a conversation.

use super::{MistralConversations, decode, encode};
use crate::history::Incoming;
use crate::json::JsonRef;
use crate::message::Part;
use crate::provider::spec::{EncodeContext, MessageCodec, Wire};
use crate::replay::DraftMessage;

impl MessageCodec for MistralConversations {
    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        decode::decode(wires, items);
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode::decode_block(block)
    }

    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
        encode::encode(wire, item, context);
    }
}
