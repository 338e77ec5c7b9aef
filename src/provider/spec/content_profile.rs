//! What a dialect's messages may contain.

use super::content_member::{ContentMeaning, ContentMember};
use crate::message::{Dialect, Media};
use crate::provider::name_charset::plain_id_of;
use crate::provider::neutral::OfferedMedia;

/// What a provider accepts in messages that were received in another dialect: ids of calls, refusals, marks of errors,
/// images and files.
pub(crate) struct ContentProfile {
    pub dialect: Dialect,
    /// Returns true if the provider accepts a call id.
    pub accepts_call_id: fn(&str) -> bool,
    /// Returns an id that the provider accepts, derived from one that it does not accept. Equal ids give equal results.
    pub valid_call_id: fn(&str) -> String,
    /// A refusal has a form of its own; otherwise it is sent as text.
    pub has_refusals: bool,
    /// A result has a member that says that the tool failed. Otherwise its text says so.
    pub flags_errors: bool,
    /// The dialect of the same provider, which knows the same file ids.
    pub shares_files_with: Option<Dialect>,
    /// Returns true if an image or file of another dialect can be sent.
    pub accepts_media: fn(&OfferedMedia<'_>) -> bool,
    /// The members of messages that say more than their neutral form.
    pub members: &'static [ContentMember],
    /// Returns true if a file of another dialect is sent with its name.
    pub names_file: fn(&Media) -> bool,
}

impl ContentProfile {
    /// Returns the profile that most dialects have.
    pub const fn common(dialect: Dialect, accepts_call_id: fn(&str) -> bool) -> Self {
        Self {
            dialect,
            accepts_call_id,
            valid_call_id: plain_id_of,
            has_refusals: true,
            flags_errors: false,
            shares_files_with: None,
            accepts_media: |media| media.has_bytes_or_url || media.has_known_file_id,
            members: &[],
            names_file: |_| false,
        }
    }

    /// Returns true if messages of the dialect have a member that says this.
    pub fn has_member(&self, meaning: ContentMeaning) -> bool {
        self.members.iter().any(|member| member.meaning == meaning)
    }
}
