//! The interface of a dialect's reader of frames, for streams that are no server-sent events.

use super::assembled::WireError;
use super::sse::SseEvent;

/// Reads the frames of one stream.
pub(crate) trait FrameReader: Send {
    /// Returns true if a stream of frames, and no other response, begins with this byte.
    fn begins(&self, first: u8) -> bool;

    /// Reads the next chunk and passes the event of each completed frame to `sink`.
    ///
    /// # Errors
    /// Returns the error once if the bytes are no frames, and reads nothing more.
    fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(SseEvent<'_>)) -> Result<(), WireError>;
}
