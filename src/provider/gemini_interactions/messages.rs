//! Steps of the Interactions API.

use super::media::decode_content;
use super::{Interactions, decode, encode};
use crate::history::Incoming;
use crate::json::{JsonKind, JsonRef, JsonStr};
use crate::message::Part;
use crate::provider::neutral::{split_media, text_or_json};
use crate::provider::spec::{EncodeContext, MessageCodec, Wire};
use crate::replay::DraftMessage;
use crate::tool::ToolResult;

impl MessageCodec for Interactions {
    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        decode::decode(wires, items);
    }

    fn decode_answer(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        decode::decode_answer(wires, items);
    }

    fn decode_block(&self, block: JsonRef<'_>) -> Part {
        decode_content(block)
    }

    /// A result is a text, a list of contents, or an object of the application's own.
    fn decode_result(&self, result: &ToolResult) -> (Vec<JsonStr>, Vec<Part>) {
        let view = result.content.view();
        match view.kind() {
            JsonKind::Array => split_media(view.items().map(decode_content)),
            _ => (vec![text_or_json(&result.content)], Vec::new()),
        }
    }

    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
        encode::encode(wire, item, context);
    }
}
