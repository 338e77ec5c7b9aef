//! What an entry may hold.

use crate::id::short_name;
use crate::message::Dialect;
use crate::provider::mistral::{ID_LENGTH, is_valid_id};
use crate::provider::spec::{ContentMeaning, ContentMember, ContentProfile};

/// The content of messages of other dialects. Ids of calls become those of Mistral's chat endpoint, which are valid
/// whether this one checks them or not (`rules.rs`). An image or a document needs its bytes or a URL: `tool_file`
/// names only files that a tool of Mistral made (client-python, `MessageInputContentChunks`).
const CONTENT_PROFILE: ContentProfile = ContentProfile {
    valid_call_id: |id| short_name(id, ID_LENGTH),
    has_refusals: false,
    accepts_media: |media| media.has_bytes_or_url,
    members: MEMBERS,
    names_file: |_| true,
    ..ContentProfile::common(Dialect::MistralConversations, is_valid_id)
};

pub(super) static CONTENT: ContentProfile = CONTENT_PROFILE;

/// The content of own messages: the schema accepts any id.
pub(super) static OWN_CONTENT: ContentProfile =
    ContentProfile { accepts_call_id: |id| !id.is_empty(), ..CONTENT_PROFILE };

/// The members that say more than the neutral form of a message.
const MEMBERS: &[ContentMember] = &[
    ContentMember::new("content/*/image_url/detail", ContentMeaning::ImageDetail),
    ContentMember::new("content/*/document_name", ContentMeaning::FileName),
];
