//! What Anthropic accepts in messages of other dialects.

use crate::message::Dialect;
use crate::provider::name_charset::is_plain_id;
use crate::provider::neutral::OfferedMedia;
use crate::provider::spec::{ContentMeaning, ContentMember, ContentProfile};

/// The pattern of ids is `^[a-zA-Z0-9_-]+$`. It sets no limit, but all dialects accept an id of 64 characters.
pub(super) static CONTENT: ContentProfile = ContentProfile {
    flags_errors: true,
    accepts_media,
    members: MEMBERS,
    names_file: |_| true,
    ..ContentProfile::common(Dialect::Anthropic, is_plain_id)
};

/// Four types of images (`Base64ImageSource`) and PDF files (`Base64PDFSource`).
fn accepts_media(media: &OfferedMedia<'_>) -> bool {
    match media.inline_type {
        Some(kind) if media.is_image => matches!(kind, "image/jpeg" | "image/png" | "image/gif" | "image/webp"),
        Some(kind) => kind == "application/pdf",
        None => media.has_bytes_or_url || media.has_known_file_id,
    }
}

/// The members that say more than the neutral form of a message.
const MEMBERS: &[ContentMember] = &[
    ContentMember::new("content/*/title", ContentMeaning::FileName),
    ContentMember::new("content/*/context", ContentMeaning::DocumentContext),
    ContentMember::new("content/*/citations", ContentMeaning::DocumentCitations),
    ContentMember::new("content/*/citations", ContentMeaning::Citations),
    ContentMember::new("content/*/content/*/title", ContentMeaning::FileName),
    ContentMember::new("content/*/content/*/context", ContentMeaning::DocumentContext),
    ContentMember::new("content/*/content/*/citations", ContentMeaning::DocumentCitations),
];
