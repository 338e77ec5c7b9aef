//! OpenAI Responses.

mod codec;
mod decode;
mod encode;
mod kinds;
mod params;
pub(crate) mod rules;
mod stream;

pub(crate) use codec::Responses;
