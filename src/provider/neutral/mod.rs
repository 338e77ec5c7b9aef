//! The content of a message or a result, for a dialect that it did not come in.

mod media;
mod text;

pub(crate) use media::{default_name, kind_of, refused};
pub(crate) use text::{MessageText, ResultText, arguments_object, result_text, text_of};
