//! Messages of Anthropic's format.

use super::encode::AnthropicEncoder;
use super::{Anthropic, decode};
use crate::history::Incoming;
use crate::json::JsonRef;
use crate::message::{Part, Role};
use crate::provider::spec::{EncodeContext, MessageCodec, Wire};
use crate::replay::DraftMessage;

impl MessageCodec for Anthropic {
    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        for wire in wires {
            decode::decode_message(*wire, items);
        }
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode::decode_block(block)
    }

    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
        let mut encoder = AnthropicEncoder { decode_result: context.decode_result, report: context.report };
        encoder.encode(wire, item, context.deferred);
    }

    /// Returns false for an answer without calls: the rules decide whether the model may continue it.
    fn may_end(&self, item: &DraftMessage<'_>) -> bool {
        item.message.role != Role::Assistant || !item.calls.is_empty()
    }
}
