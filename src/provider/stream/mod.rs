//! Responses: server-sent events, frames of a dialect and plain JSON, read into a message and its calls. Each dialect
//! implements [`AnswerReader`].

mod answer_block;
mod answer_reader;
mod assembled;
mod assembler;
mod frame_reader;
mod json_array;
mod json_text;
mod latest_positions;
mod response_meta;
mod sse;
mod streamed_fields;
mod string_buffer;

pub use answer_block::{AnswerBlock, BlockBody};
pub(crate) use answer_reader::AnswerReader;
pub use assembled::{
    AnswerStatus, Assembled, AssembledCall, InputTransformation, StreamEvent, TransformationEffect, TransformedPlace,
    WireError,
};
pub use assembler::StreamAssembler;
pub(crate) use assembler::read_whole;
pub(crate) use frame_reader::FrameReader;
pub(crate) use json_text::{inside, keep_lone_surrogates, non_empty_text};
pub(crate) use latest_positions::LatestPositions;
pub(crate) use response_meta::{MetaMembers, ResponseMeta, malformed, message_of, read_error};
pub(crate) use sse::SseEvent;
pub(crate) use streamed_fields::{StreamedFields, StreamedValue};
pub(crate) use string_buffer::StringBuffer;
