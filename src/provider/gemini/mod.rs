//! Google Gemini generateContent.

mod codec;
mod config;
mod decode;
mod encode;
mod model_version;
mod part;
pub(crate) mod rules;
mod sdk_request;
mod stream;

pub(crate) use codec::Gemini;
pub(crate) use decode::media_of_result;
