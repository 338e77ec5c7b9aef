//! The content of a message or a result, for a dialect that it was not received in.

mod blocks;
mod media;
mod part_members;
mod rejected_media;
mod system_text;
mod text;

pub(crate) use blocks::{split_media, text_of, text_or_json};
pub(crate) use media::{OfferedMedia, default_name, media_type_of};
pub(crate) use part_members::{asks_for_citations, common_detail, image_detail, write_document_context};
pub(crate) use rejected_media::{NO_ASSISTANT_MEDIA, REJECTED_MEDIA, is_content_part, rejected_media};
pub(crate) use system_text::{SYSTEM_TEXT_ONLY, input_text, is_system_text, system_texts};
pub(crate) use text::{MessageText, ResultText, arguments_object, result_text};
