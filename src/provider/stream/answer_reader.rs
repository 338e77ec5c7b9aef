//! The interface of a dialect's reader of responses.

use super::answer_block::AnswerBlock;
use super::assembled::{Assembled, StreamEvent};
use super::frame_reader::FrameReader;
use super::response_meta::ResponseMeta;
use crate::json::JsonRef;

/// Reads one response of a dialect.
pub(crate) trait AnswerReader: Send {
    /// Reads one event of a stream; `name` is empty if the event has none. If extending one string by a fragment was
    /// the event's only effect, returns the fragment: the content of its string token, as a slice of `data`.
    fn read_event<'a>(&mut self, name: &str, data: JsonRef<'a>, out: &mut Vec<StreamEvent>) -> Option<&'a str>;
    /// Reads an event that differs from the one before only in the fragment that [`read_event`](Self::read_event)
    /// returned.
    fn read_fragment(&mut self, fragment: &str, out: &mut Vec<StreamEvent>);
    /// Reads a whole response.
    fn read_body(&mut self, body: JsonRef<'_>);
    /// Reads the whole response of which a part was received as a stream, and appends the events of what is new.
    fn read_rest(&mut self, body: JsonRef<'_>, out: &mut Vec<StreamEvent>) {
        self.read_event("", body, out);
    }
    /// Returns true if a JSON array is a stream of events in this dialect. In others it is an error that some gateways
    /// wrap.
    fn accepts_array(&self) -> bool {
        false
    }
    /// Returns a reader of a stream's frames; none if the dialect's streams are server-sent events.
    fn frames(&self) -> Option<Box<dyn FrameReader>> {
        None
    }
    /// Returns the response's metadata.
    fn meta(&self) -> &ResponseMeta;
    /// Returns the response's metadata for modification.
    fn meta_mut(&mut self) -> &mut ResponseMeta;
    /// Visits the blocks received so far, without their text being copied: they are read after each event. Calls are no
    /// blocks: they are part of an answer when it is complete.
    fn visit_blocks(&self, visit: &mut dyn FnMut(AnswerBlock<'_>));
    /// Returns true if something of the answer was received, be it no block: a stream that is read from its start again
    /// would add it once more.
    fn has_content(&self) -> bool {
        let mut has_any = false;
        self.visit_blocks(&mut |_| has_any = true);
        has_any
    }
    /// Returns the response received so far. `stopped`: the application stopped it, so it counts as truncated.
    fn assemble(&self, stopped: bool) -> Assembled;
    /// Returns the id of the container in which the provider ran code, if it reports one (Anthropic).
    fn container(&self) -> Option<&str> {
        None
    }
}
