//! Contents of Gemini's format.

use super::encode::GeminiEncoder;
use super::{Gemini, decode};
use crate::history::Incoming;
use crate::json::{JsonRef, JsonStr};
use crate::message::{Part, Role};
use crate::provider::neutral::text_or_json;
use crate::provider::spec::{EncodeContext, MessageCodec, Wire};
use crate::replay::DraftMessage;
use crate::tool::ToolResult;

impl MessageCodec for Gemini {
    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        for wire in wires {
            decode::decode_content(*wire, items);
        }
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode::decode_part(block)
    }

    /// A response is data: only its `parts` are images and files.
    fn decode_result(&self, result: &ToolResult) -> (Vec<JsonStr>, Vec<Part>) {
        (vec![text_or_json(&result.content)], decode::media_of_result(result))
    }

    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
        let EncodeContext { deferred, settings, decode_result, report } = context;
        GeminiEncoder { settings, decode_result: *decode_result, report }.encode(wire, item, deferred);
    }

    /// Gemini rejects a call that does not follow a user turn (gemini-cli#11814).
    fn may_begin(&self, item: &DraftMessage<'_>) -> bool {
        item.calls.is_empty()
    }

    /// Gemini rejects a request that ends with a model turn (crewAI#6973).
    fn may_end(&self, item: &DraftMessage<'_>) -> bool {
        item.message.role != Role::Assistant || !item.calls.is_empty()
    }
}
