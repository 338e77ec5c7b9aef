//! Anthropic Messages.

mod decode;
mod encode;
pub(crate) mod rules;
pub(crate) mod stream;

pub use decode::{decode_block, decode_message, decode_system};
pub use encode::{encode, system_blocks};
