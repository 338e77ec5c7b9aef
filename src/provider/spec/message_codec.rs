//! Messages and the wire messages of a dialect.

use super::wire::Wire;
use crate::finding::Report;
use crate::history::Incoming;
use crate::json::{JsonKind, JsonRef, JsonStr};
use crate::message::{Message, Part};
use crate::provider::neutral::{split_media, text_or_json};
use crate::provider::request::Settings;
use crate::replay::{DraftMessage, ExtraContent};
use crate::tool::ToolResult;

/// What [`MessageCodec::encode`] needs beside the message.
pub(crate) struct EncodeContext<'c> {
    /// The messages before this one whose results are encoded with it: in this message, or together with the results of
    /// its calls.
    pub deferred: &'c [DraftMessage<'c>],
    pub settings: &'c Settings,
    pub decode_result: DecodeResult,
    pub report: &'c mut Report,
}

/// Decodes the content of a result of any dialect: texts, and images and files.
pub(crate) type DecodeResult = fn(&ToolResult) -> (Vec<JsonStr>, Vec<Part>);

/// Decodes and encodes the messages of a dialect. Methods that most dialects share have a default.
pub(crate) trait MessageCodec: Sync {
    /// Decodes the items of a list, or of an answer.
    fn decode(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>);

    /// Decodes the items of an answer, where a result is that of a call which the service has run itself.
    fn decode_answer(&self, wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
        self.decode(wires, items);
    }

    /// Decodes a block of a message's or a result's content. A block without a neutral meaning becomes an opaque part.
    fn decode_block(&self, block: JsonRef<'_>) -> Part;

    /// Decodes the content of a result of this dialect for another dialect: texts, and images and files.
    fn decode_result(&self, result: &ToolResult) -> (Vec<JsonStr>, Vec<Part>) {
        let view = result.content.view();
        match view.kind() {
            JsonKind::Array => split_media(view.items().map(|block| self.decode_block(block))),
            JsonKind::Object => split_media([self.decode_block(view)]),
            _ => (vec![text_or_json(&result.content)], Vec::new()),
        }
    }

    /// Returns what an answer that was decoded from this dialect contains in a form that only this dialect has, if the
    /// provider accepts an answer of nothing else.
    fn extra_content(&self, _answer: &Message) -> ExtraContent {
        ExtraContent::None
    }

    /// Writes a draft message and the results of its calls.
    fn encode(&self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>);

    /// Returns true if a body may begin with this message as it is encoded. Called for the messages before the user's
    /// first one.
    fn may_begin(&self, _item: &DraftMessage<'_>) -> bool {
        true
    }

    /// Returns true if a body may end in this message as it is encoded. If not, the rules check the body.
    fn may_end(&self, _item: &DraftMessage<'_>) -> bool {
        true
    }

    /// Returns true if a message may follow another one. If not, the rules check the body.
    fn may_follow(&self, _before: &DraftMessage<'_>, _item: &DraftMessage<'_>) -> bool {
        true
    }
}
