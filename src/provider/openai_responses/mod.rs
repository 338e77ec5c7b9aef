//! OpenAI Responses.

mod codec;
mod decode;
mod encode;
mod kinds;
mod models;
mod parameters;
mod reasoning;
mod remedies;
pub(crate) mod rules;
mod stream;
mod tools;
mod unknown_params;

/// The dialect of OpenAI Responses.
pub(crate) struct Responses;
