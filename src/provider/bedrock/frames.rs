//! Frames of `application/vnd.amazon.eventstream`, in which ConverseStream sends its events.
//!
//! ```text
//! total length: u32 │ headers length: u32 │ CRC of these 8 bytes: u32 │ headers │ payload │ CRC of all before: u32
//! ```
//!
//! Numbers are big-endian. A header is a name with its length in one byte, a type in one byte, and a value. Headers
//! tell what a frame is: `:message-type` (`event`, `exception` or `error`), and `:event-type`, `:exception-type` or
//! `:error-code` with `:error-message`. Source: "Event stream encoding" of Amazon's Smithy, read on 2026-11-26.

use crate::json::{Json, JsonStr, ObjectWriter};
use crate::provider::stream::{FrameReader, SseEvent, WireError, malformed};
use crc::{CRC_32_ISO_HDLC, Crc, Table};

const CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC);

/// The end of the names of errors: `throttlingException`, `modelStreamErrorException`.
pub(super) const EXCEPTION: &str = "Exception";

/// The lengths and their CRC.
const PRELUDE: usize = 12;
/// The prelude and the CRC at the end.
const LEAST: usize = PRELUDE + 4;
/// The longest frame that is read: the longest that the services send.
const LONGEST: usize = 16 * 1024 * 1024;
const LONGEST_HEADERS: usize = 128 * 1024;

/// The type of a header whose value is a text: a length in two bytes, and the text.
const TEXT_HEADER: u8 = 7;

/// Reads frames from bytes that arrive in arbitrary chunks. Each byte is copied once, and one that is in a whole frame
/// of a chunk not at all.
#[derive(Debug, Default)]
pub(super) struct EventFrames {
    /// The start of a frame whose end has not arrived.
    partial: Vec<u8>,
    /// A frame could not be read: what follows it has no meaning.
    failed: bool,
}

impl FrameReader for EventFrames {
    /// The first byte of a frame's length is 0: none is longer than 16 MB.
    fn begins(&self, first: u8) -> bool {
        first == 0
    }

    fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(SseEvent<'_>)) -> Result<(), WireError> {
        let mut rest = bytes;
        while !self.failed && !rest.is_empty() {
            match self.take_frame(&mut rest, sink) {
                Ok(true) => {}
                Ok(false) => break,
                Err(why) => {
                    self.failed = true;
                    self.partial = Vec::new();
                    return Err(malformed(format!("the event stream cannot be read: {why}")));
                }
            }
        }
        Ok(())
    }
}

impl EventFrames {
    /// Reads one frame, from what earlier chunks left and the next bytes. Returns false if its end has not arrived.
    fn take_frame(&mut self, rest: &mut &[u8], sink: &mut dyn FnMut(SseEvent<'_>)) -> Result<bool, &'static str> {
        if self.partial.is_empty() {
            if let Some(length) = frame_length(rest)?
                && let Some((frame, tail)) = rest.split_at_checked(length)
            {
                *rest = tail;
                read_frame(frame, sink)?;
                return Ok(true);
            }
            self.partial.extend_from_slice(std::mem::take(rest));
            return Ok(false);
        }
        // The prelude first, since it has the length.
        self.fill(PRELUDE, rest);
        let Some(length) = frame_length(&self.partial)? else { return Ok(false) };
        self.fill(length, rest);
        if self.partial.len() < length {
            return Ok(false);
        }
        let frame = std::mem::take(&mut self.partial);
        read_frame(&frame, sink)?;
        // The buffer is kept for the next frame.
        self.partial = frame;
        self.partial.clear();
        Ok(true)
    }

    /// Adds bytes until there are as many as `length`.
    fn fill(&mut self, length: usize, rest: &mut &[u8]) {
        let missing = length.saturating_sub(self.partial.len()).min(rest.len());
        let (more, tail) = rest.split_at(missing);
        self.partial.extend_from_slice(more);
        *rest = tail;
    }
}

/// Returns the number at an offset.
fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// Returns the length of the frame that bytes begin with; `None` if its prelude is incomplete.
fn frame_length(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
    let (Some(total), Some(headers), Some(crc)) = (number_at(bytes, 0), number_at(bytes, 4), number_at(bytes, 8))
    else {
        return Ok(None);
    };
    if CRC.checksum(bytes.get(..8).unwrap_or_default()) != crc {
        return Err("the checksum of a prelude does not match");
    }
    let (total, headers) = (total as usize, headers as usize);
    if total > LONGEST || headers > LONGEST_HEADERS {
        return Err("a frame is longer than 16 MB, or its headers than 128 KB");
    }
    if total < LEAST || headers > total - LEAST {
        return Err("the lengths of a frame contradict each other");
    }
    Ok(Some(total))
}

/// Reads a whole frame, whose prelude was checked.
fn read_frame(frame: &[u8], sink: &mut dyn FnMut(SseEvent<'_>)) -> Result<(), &'static str> {
    let (content, crc) = frame.split_at(frame.len().saturating_sub(4));
    if number_at(crc, 0) != Some(CRC.checksum(content)) {
        return Err("the checksum of a frame does not match");
    }
    let headers_length = number_at(frame, 4).unwrap_or_default() as usize;
    let after_prelude = content.get(PRELUDE..).unwrap_or_default();
    let (headers, payload) = after_prelude.split_at_checked(headers_length).ok_or("a frame has no such headers")?;
    let FrameHeaders { message_type, name, error_message } = read_headers(headers)?;
    let payload = String::from_utf8_lossy(payload);
    match message_type {
        "error" => {
            sink_error(name, &JsonStr::new(error_message), sink);
        }
        // The events know an exception by its name; one of another name is an error nevertheless.
        "exception" if !name.ends_with(EXCEPTION) => {
            let payload = Json::parse(&payload).unwrap_or_else(|_| Json::null());
            let message = payload.view().text("message").or_else(|| payload.view().text("Message")).unwrap_or_default();
            sink_error(name, &JsonStr::new(&message), sink);
        }
        _ => sink(SseEvent { name, data: &payload }),
    }
    Ok(())
}

/// Passes an error on as an event.
fn sink_error(code: &str, message: &JsonStr, sink: &mut dyn FnMut(SseEvent<'_>)) {
    let data = ObjectWriter::build(|out| _ = out.text("code", code).token("message", message));
    let wrapped = ObjectWriter::build(|out| _ = out.json("error", data.view()));
    sink(SseEvent { name: "error", data: wrapped.as_str() });
}

/// The headers of a frame that tell what it is.
#[derive(Default)]
struct FrameHeaders<'a> {
    message_type: &'a str,
    /// The type of the event or of the exception, or the code of the error.
    name: &'a str,
    error_message: &'a str,
}

fn read_headers(mut bytes: &[u8]) -> Result<FrameHeaders<'_>, &'static str> {
    const CUT: &str = "a header is cut off";
    let mut headers = FrameHeaders::default();
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length)).ok_or(CUT)?;
        let (kind, rest) = rest.split_first().ok_or(CUT)?;
        let (value, rest) = split_value(*kind, rest).ok_or(CUT)?;
        bytes = rest;
        let text = std::str::from_utf8(value).unwrap_or_default();
        match name {
            _ if *kind != TEXT_HEADER => {}
            b":message-type" => headers.message_type = text,
            b":event-type" | b":exception-type" | b":error-code" => headers.name = text,
            b":error-message" => headers.error_message = text,
            _ => {}
        }
    }
    Ok(headers)
}

/// Splits the value of a header off, by the type of the header.
fn split_value(kind: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = match kind {
        // True and false.
        0 | 1 => 0,
        2 => 1,
        3 => 2,
        4 => 4,
        // A number of 64 bits, and a time.
        5 | 8 => 8,
        9 => 16,
        // Bytes and texts have their length before them.
        6 | TEXT_HEADER => {
            let (length, rest) = bytes.split_at_checked(2)?;
            let length = u16::from_be_bytes(length.try_into().ok()?);
            return rest.split_at_checked(usize::from(length));
        }
        _ => return None,
    };
    bytes.split_at_checked(length)
}

#[cfg(test)]
pub(super) mod tests;
