//! Messages of Converse.

use super::encode::BedrockEncoder;
use super::{Bedrock, decode};
use crate::history::Incoming;
use crate::json::JsonRef;
use crate::message::{Part, Role};
use crate::provider::spec::{EncodeContext, MessageCodec, Wire};
use crate::replay::DraftMessage;

impl MessageCodec for Bedrock {
    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        for wire in wires {
            decode::decode_message(*wire, items);
        }
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode::decode_block(block)
    }

    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
        let EncodeContext { deferred, settings, decode_result, report } = context;
        BedrockEncoder { settings, decode_result: *decode_result, report }.encode(wire, item, deferred);
    }

    /// "A conversation must start with a user message."
    fn may_begin(&self, item: &DraftMessage<'_>) -> bool {
        item.message.role != Role::Assistant
    }

    /// Returns false for an answer without calls: the rules decide whether the model may continue it.
    fn may_end(&self, item: &DraftMessage<'_>) -> bool {
        item.message.role != Role::Assistant || !item.calls.is_empty()
    }

    /// "A conversation must alternate between user and assistant roles." After calls, the message before ends in their
    /// results, which are the user's.
    fn may_follow(&self, before: &DraftMessage<'_>, item: &DraftMessage<'_>) -> bool {
        let ends_as_user = before.message.role != Role::Assistant || !before.calls.is_empty();
        let begins_as_user = item.message.role != Role::Assistant;
        ends_as_user != begins_as_user
    }
}
