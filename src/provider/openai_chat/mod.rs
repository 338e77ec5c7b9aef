//! OpenAI Chat Completions, and what is nearly it.

mod codec;
mod decode;
mod encode;
pub(crate) mod rules;
pub(crate) mod stream;

pub(crate) use codec::{Chat, OPENAI, Ways};
