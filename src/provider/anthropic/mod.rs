//! Anthropic Messages.

mod codec;
mod decode;
mod encode;
pub(crate) mod rules;
pub(crate) mod stream;

pub(crate) use codec::Anthropic;
