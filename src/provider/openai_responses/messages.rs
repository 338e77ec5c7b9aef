//! Items of the Responses API.

use super::kinds::kind_of;
use super::{Responses, decode, encode};
use crate::history::Incoming;
use crate::json::JsonRef;
use crate::message::{Part, PartBody};
use crate::provider::spec::{EncodeContext, MessageCodec, Wire};
use crate::replay::DraftMessage;

impl MessageCodec for Responses {
    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        decode::decode(wires, items);
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode::decode_block(block)
    }

    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
        encode::encode(wire, item, context);
    }

    /// A reference stands for an item that the server stores, which an output may answer: what may follow is left to
    /// the rules.
    fn may_begin(&self, item: &DraftMessage<'_>) -> bool {
        has_no_part_of_others(item)
    }

    fn may_follow(&self, _before: &DraftMessage<'_>, item: &DraftMessage<'_>) -> bool {
        has_no_part_of_others(item)
    }
}

/// Returns true if a message has no item that the rules may count to an item of another message: calls may share an id.
fn has_no_part_of_others(item: &DraftMessage<'_>) -> bool {
    item.message.parts.iter().all(|part| match &part.body {
        PartBody::Opaque(value) => {
            let kind = kind_of(value.view());
            kind != "item_reference" && !kind.ends_with("_output")
        }
        _ => true,
    })
}
