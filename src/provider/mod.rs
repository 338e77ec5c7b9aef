//! Wire formats, a folder each: rules, encode, decode, stream. What they share is here and in `sse` and `assembler`.

mod assembled;

pub use assembled::{AnswerStatus, Assembled, AssembledCall, StreamEvent, WireError};
