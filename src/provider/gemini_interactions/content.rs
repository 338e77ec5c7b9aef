//! What the Interactions API accepts in messages of other dialects.

use crate::message::Dialect;
use crate::provider::spec::{ContentMeaning, ContentMember, ContentProfile};

/// Google's Files API serves both of its APIs.
pub(super) static CONTENT: ContentProfile = ContentProfile {
    has_refusals: false,
    flags_errors: true,
    shares_files_with: Some(Dialect::Gemini),
    members: MEMBERS,
    ..ContentProfile::common(Dialect::GeminiInteractions, |id| !id.is_empty())
};

/// The members that say more than the neutral form of a message.
const MEMBERS: &[ContentMember] = &[
    ContentMember::new("content/*/annotations", ContentMeaning::Citations),
    ContentMember::new("content/*/resolution", ContentMeaning::MediaResolution),
];
