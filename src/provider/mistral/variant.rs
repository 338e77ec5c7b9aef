//! Where Mistral's chat endpoint differs from Chat Completions.

use super::ids::{ID_LENGTH, is_valid_id};
use super::parameters;
use crate::id::short_name;
use crate::message::Dialect;
use crate::provider::openai_chat::ChatVariant;
use crate::provider::spec::{ContentMeaning, ContentMember, ContentProfile, is_within};

pub(crate) static MISTRAL: ChatVariant = ChatVariant {
    content: ContentProfile {
        valid_call_id: |id| short_name(id, ID_LENGTH),
        has_refusals: false,
        // An image needs its bytes or a URL.
        accepts_media: |media| media.has_bytes_or_url || media.has_known_file_id && !media.is_image,
        members: MEMBERS,
        names_file: |media| media.file_id.is_none(),
        ..ContentProfile::common(Dialect::Mistral, is_valid_id)
    },
    parameter: parameters::parameter,
    has_allowed_tools: false,
    any_tool_choice: "any",
    usage_on_request: false,
    free_order: false,
    empty_content: "\"\"",
    content_chunks: true,
    service_of: |host| is_within(host, "mistral.ai").then_some("mistral"),
    #[cfg(test)]
    recognition: super::recognition::RECOGNITION,
};

/// The members that say more than the neutral form of a message.
const MEMBERS: &[ContentMember] = &[
    ContentMember::new("content/*/image_url/detail", ContentMeaning::ImageDetail),
    ContentMember::new("content/*/document_name", ContentMeaning::FileName),
];
