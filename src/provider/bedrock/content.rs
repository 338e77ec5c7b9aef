//! What Converse accepts in messages of other dialects.

use super::media::{DOCUMENT_FORMATS, IMAGE_FORMATS, OTHER_FORMATS, format_of};
use crate::message::Dialect;
use crate::provider::name_charset::plain_id_of;
use crate::provider::neutral::OfferedMedia;
use crate::provider::spec::{ContentMeaning, ContentMember, ContentProfile};

/// The longest id of a call.
pub(super) const MAX_ID_LENGTH: usize = 64;

pub(super) static CONTENT: ContentProfile = ContentProfile {
    has_refusals: false,
    flags_errors: true,
    valid_call_id: plain_id_of,
    accepts_media,
    members: MEMBERS,
    names_file: |media| media.inline().is_some_and(|(kind, _)| format_of(&kind, &DOCUMENT_FORMATS).is_some()),
    ..ContentProfile::common(Dialect::Bedrock, is_valid_id)
};

/// Returns true if Converse accepts a call id: `^[a-zA-Z0-9_.:-]+$`, up to 64 characters (recorded: Kimi's ids are
/// `functions.get_temperature:0`).
pub(super) fn is_valid_id(id: &str) -> bool {
    let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    !id.is_empty() && id.len() <= MAX_ID_LENGTH && id.bytes().all(is_accepted)
}

/// Media are bytes in the body, of the formats that the service names. It fetches no URL.
fn accepts_media(media: &OfferedMedia<'_>) -> bool {
    let Some(kind) = media.inline_type else { return false };
    if media.is_image {
        return format_of(kind, &IMAGE_FORMATS).is_some();
    }
    format_of(kind, &DOCUMENT_FORMATS).or_else(|| format_of(kind, &OTHER_FORMATS)).is_some()
}

/// The members that say more than the neutral form of a message.
const MEMBERS: &[ContentMember] = &[
    ContentMember::new("content/*/document/name", ContentMeaning::FileName),
    ContentMember::new("content/*/document/context", ContentMeaning::DocumentContext),
    ContentMember::new("content/*/document/citations", ContentMeaning::DocumentCitations),
    ContentMember::new("content/*/citationsContent/citations", ContentMeaning::Citations),
    ContentMember::new("content/*/toolResult/content/*/document/name", ContentMeaning::FileName),
    ContentMember::new("content/*/toolResult/content/*/document/context", ContentMeaning::DocumentContext),
    ContentMember::new("content/*/toolResult/content/*/document/citations", ContentMeaning::DocumentCitations),
];
