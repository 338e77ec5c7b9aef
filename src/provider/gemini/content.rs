//! What Gemini accepts in messages of other dialects.

use crate::message::Dialect;
use crate::provider::spec::{ContentMeaning, ContentMember, ContentProfile};

pub(super) static CONTENT: ContentProfile = ContentProfile {
    flags_errors: true,
    members: MEMBERS,
    ..ContentProfile::common(Dialect::Gemini, |id| !id.is_empty())
};

/// The members that say more than the neutral form of a message. The name of a file is for Vertex alone: Google's SDKs
/// throw "displayName parameter is not supported in Gemini API." (November 2026), so no file of another dialect has it.
const MEMBERS: &[ContentMember] = &[
    ContentMember::new("parts/*/videoMetadata", ContentMeaning::VideoClip),
    ContentMember::new("parts/*/video_metadata", ContentMeaning::VideoClip),
    ContentMember::new("parts/*/mediaResolution", ContentMeaning::MediaResolution),
    ContentMember::new("parts/*/media_resolution", ContentMeaning::MediaResolution),
    ContentMember::new("parts/*/inlineData/displayName", ContentMeaning::FileName),
    ContentMember::new("parts/*/inline_data/display_name", ContentMeaning::FileName),
    ContentMember::new("parts/*/fileData/displayName", ContentMeaning::FileName),
    ContentMember::new("parts/*/file_data/display_name", ContentMeaning::FileName),
];
