//! What the endpoint accepts in messages of other dialects.

use crate::id::short_name;
use crate::message::Dialect;
use crate::provider::mistral::{ID_LENGTH, is_valid_id};
use crate::provider::spec::ContentProfile;

/// Ids of calls are those of Mistral's chat endpoint. An image or a document needs its bytes or a URL: `tool_file`
/// names only files that a tool of Mistral made (client-python, `MessageInputContentChunks`).
pub(super) static CONTENT: ContentProfile = ContentProfile {
    valid_call_id: |id| short_name(id, ID_LENGTH),
    has_refusals: false,
    accepts_media: |media| media.has_bytes_or_url,
    ..ContentProfile::common(Dialect::MistralConversations, is_valid_id)
};
