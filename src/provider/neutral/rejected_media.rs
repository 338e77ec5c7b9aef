//! Images and files that another dialect does not accept.

use super::media::OfferedMedia;
use crate::finding::{Action, Finding, FindingCode};
use crate::message::{Dialect, Part, PartBody};
use crate::provider::spec::ContentProfile;

/// The sentence about an image or a file that the target does not take.
pub(crate) const REJECTED_MEDIA: &str =
    "this image or file is of a type, or in a place, that the other provider does not know; it is left out";

/// The sentence about images and files in an answer, where the target takes none.
pub(crate) const NO_ASSISTANT_MEDIA: &str = "an assistant message of this dialect holds no image or file";

/// Returns a finding if an image or file that came in the dialect `from` cannot be sent to `target`.
pub(crate) fn rejected_media(part: &Part, from: Option<Dialect>, target: &ContentProfile) -> Option<Finding> {
    let (media, is_image) = match &part.body {
        PartBody::Image(media) => (media, true),
        PartBody::File(media) => (media, false),
        _ => return None,
    };
    if from == Some(target.dialect) {
        return None;
    }
    let inline = media.inline();
    let has_bytes_or_url = media.url.is_some() || inline.is_some();
    // An application that passes a file id itself knows whose it is.
    let knows_files = from.is_none_or(|from| target.shares_files_with == Some(from));
    let offered = OfferedMedia {
        is_image,
        inline_type: inline.as_ref().map(|(kind, _)| kind.as_str()),
        has_bytes_or_url,
        has_known_file_id: !has_bytes_or_url && media.file_id.is_some() && knows_files,
    };
    (!(target.accepts_media)(&offered))
        .then(|| Finding::info(FindingCode::UnsupportedPart, REJECTED_MEDIA).with_action(Action::Dropped))
}

/// Returns true if a part is sent as a part of a message's content. `native`: to the dialect that it came in.
pub(crate) fn is_content_part(part: &Part, from: Option<Dialect>, (target, native): (&ContentProfile, bool)) -> bool {
    match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => native || !text.is_empty(),
        PartBody::Image(_) | PartBody::File(_) => rejected_media(part, from, target).is_none(),
        PartBody::Opaque(_) => native,
        PartBody::Data { .. } | PartBody::Reasoning(_) | PartBody::ToolCall { .. } => false,
    }
}
