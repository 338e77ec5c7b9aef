//! What the Responses API accepts in messages of other dialects.

use crate::message::Dialect;
use crate::provider::spec::ContentProfile;

/// The length limit of OpenAI's call ids, in characters (`string_above_max_length`).
const MAX_CALL_ID: usize = 64;

/// Chat Completions is of the same provider.
pub(super) static CONTENT: ContentProfile = ContentProfile {
    shares_files_with: Some(Dialect::OpenAiChat),
    ..ContentProfile::common(Dialect::OpenAiResponses, |id| id.chars().count() <= MAX_CALL_ID)
};
