//! Google Gemini generateContent.

mod codec;
mod config;
mod decode;
mod encode;
pub(crate) mod rules;
mod stream;

pub(crate) use codec::Gemini;
pub(crate) use decode::shown_by;
