//! What the Interactions API accepts in messages of other dialects.

use crate::message::Dialect;
use crate::provider::spec::ContentProfile;

/// Google's Files API serves both of its APIs.
pub(super) static CONTENT: ContentProfile = ContentProfile {
    has_refusals: false,
    flags_errors: true,
    shares_files_with: Some(Dialect::Gemini),
    ..ContentProfile::common(Dialect::GeminiInteractions, |id| !id.is_empty())
};
