//! What Anthropic accepts in messages of other dialects.

use crate::message::Dialect;
use crate::provider::name_charset::is_plain_id;
use crate::provider::neutral::OfferedMedia;
use crate::provider::spec::ContentProfile;

/// The pattern of ids is `^[a-zA-Z0-9_-]+$`. It sets no limit, but all dialects accept an id of 64 characters.
pub(super) static CONTENT: ContentProfile =
    ContentProfile { flags_errors: true, accepts_media, ..ContentProfile::common(Dialect::Anthropic, is_plain_id) };

/// Four types of images (`Base64ImageSource`) and PDF files (`Base64PDFSource`).
fn accepts_media(media: &OfferedMedia<'_>) -> bool {
    match media.inline_type {
        Some(kind) if media.is_image => matches!(kind, "image/jpeg" | "image/png" | "image/gif" | "image/webp"),
        Some(kind) => kind == "application/pdf",
        None => media.has_bytes_or_url || media.has_known_file_id,
    }
}
