//! What Gemini accepts in messages of other dialects.

use crate::message::Dialect;
use crate::provider::spec::ContentProfile;

pub(super) static CONTENT: ContentProfile =
    ContentProfile { flags_errors: true, ..ContentProfile::common(Dialect::Gemini, |id| !id.is_empty()) };
