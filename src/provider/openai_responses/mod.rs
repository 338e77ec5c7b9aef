//! OpenAI Responses.

mod codec;
mod decode;
mod encode;
mod kinds;
mod parameters;
mod params;
pub(crate) mod rules;
mod stream;

/// The dialect of OpenAI Responses.
pub(crate) struct Responses;
