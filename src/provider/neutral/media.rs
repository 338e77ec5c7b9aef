//! Images and files, for a dialect that they did not come in.

use crate::finding::{Action, Finding, FindingCode};
use crate::json::JsonStr;
use crate::message::{Dialect, Media, Part, PartBody};
use crate::text;

impl Media {
    /// The address as a JSON string: the URL, or the data as a `data:` URL.
    #[must_use]
    pub fn address(&self) -> String {
        match (&self.url, &self.data) {
            (Some(url), _) => url.token().to_owned(),
            (None, Some(data)) => {
                let kind = JsonStr::new(self.media_type.as_deref().unwrap_or("application/octet-stream"));
                format!("\"data:{};base64,{}\"", kind.inside(), data.inside())
            }
            (None, None) => "\"\"".into(),
        }
    }

    /// Type and base64 data, where it holds its own bytes.
    #[must_use]
    pub fn inline(&self) -> Option<(String, JsonStr)> {
        if let Some(data) = &self.data {
            return Some((self.media_type.clone().unwrap_or_else(|| "application/octet-stream".into()), data.clone()));
        }
        let url = self.url.as_ref()?.inside();
        let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
        let kind = head.strip_suffix(";base64")?;
        let kind = text::replaced(kind.split(';').next()?, "\\/", "/").to_ascii_lowercase();
        Some((if kind == "image/jpg" { "image/jpeg".into() } else { kind }, JsonStr::from_inside(data)))
    }
}

/// What the ending of an address or of a name says about a file.
pub fn kind_of(address: &str) -> Option<&'static str> {
    let path = address.split(['?', '#']).next().unwrap_or("");
    let ending = path.rsplit_once('.')?.1.to_ascii_lowercase();
    Some(match ending.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "pdf" => "application/pdf",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        _ => return None,
    })
}

/// What a file is called that has no name; `address` is a JSON string.
pub fn default_name(address: &str) -> &'static str {
    if address.starts_with("\"data:application/pdf") { "file.pdf" } else { "file" }
}

/// Why a part of a message or of a result that came in `from` cannot go out in another dialect.
///
/// A file that one provider holds is unknown to the others. Anthropic takes PDF files and four types of images
/// (`Base64PDFSource`, `Base64ImageSource`), OpenAI chat files by their bytes alone (`ChatCompletionContentPart.File`).
pub fn refused(part: &Part, from: Option<Dialect>, target: Dialect) -> Option<Finding> {
    let (media, image) = match &part.body {
        PartBody::Image(media) => (media, true),
        PartBody::File(media) => (media, false),
        _ => return None,
    };
    if from == Some(target) {
        return None;
    }
    let inline = media.inline();
    let kind = inline.as_ref().map(|(kind, _)| kind.as_str());
    let openai = |dialect| matches!(dialect, Some(Dialect::OpenAiChat | Dialect::OpenAiResponses) | None);
    // An application that gives an id of its own knows whose it is; OpenAI's are known to both of its formats.
    let known = from.is_none() || openai(from) && openai(Some(target));
    let takes = match target {
        _ if media.url.is_none() && inline.is_none() => {
            media.file_id.is_some() && known && !(image && matches!(target, Dialect::OpenAiChat | Dialect::Mistral))
        }
        Dialect::Anthropic if image => {
            kind.is_none_or(|kind| matches!(kind, "image/jpeg" | "image/png" | "image/gif" | "image/webp"))
        }
        Dialect::Anthropic => kind.is_none_or(|kind| kind == "application/pdf"),
        Dialect::OpenAiChat => image || kind.is_some(),
        _ => true,
    };
    let why = "this image or file is of a type, or in a place, that the other provider does not know; it is left out";
    (!takes).then(|| Finding::info(FindingCode::UnsupportedPart, why).with_action(Action::Dropped))
}
