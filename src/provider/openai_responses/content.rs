//! What the Responses API accepts in messages of other dialects.

use crate::message::Dialect;
use crate::provider::spec::{ContentMeaning, ContentMember, ContentProfile};

/// The length limit of OpenAI's call ids, in characters (`string_above_max_length`).
const MAX_CALL_ID: usize = 64;

/// Chat Completions is of the same provider.
pub(super) static CONTENT: ContentProfile = ContentProfile {
    shares_files_with: Some(Dialect::OpenAiChat),
    members: MEMBERS,
    names_file: |media| media.inline().is_some(),
    ..ContentProfile::common(Dialect::OpenAiResponses, |id| id.chars().count() <= MAX_CALL_ID)
};

/// The members that say more than the neutral form of a message.
const MEMBERS: &[ContentMember] = &[
    ContentMember::new("content/*/detail", ContentMeaning::ImageDetail),
    ContentMember::new("content/*/filename", ContentMeaning::FileName),
    ContentMember::new("content/*/annotations", ContentMeaning::Citations),
    ContentMember::new("output/*/detail", ContentMeaning::ImageDetail),
    ContentMember::new("output/*/filename", ContentMeaning::FileName),
];
