//! Images and files, for a dialect that they were not received in.

use crate::json::JsonStr;
use crate::message::Media;

impl Media {
    /// Returns the URL, or the data as a `data:` URL, as a JSON string.
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

    /// Returns the media type and the base64 data, if the data is inline: as such, or as a `data:` URL.
    #[must_use]
    pub fn inline(&self) -> Option<(String, JsonStr)> {
        if let Some(data) = &self.data {
            return Some((self.media_type.clone().unwrap_or_else(|| "application/octet-stream".into()), data.clone()));
        }
        let url = self.url.as_ref()?.inside();
        let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
        let kind = head.strip_suffix(";base64")?;
        let kind = kind.split(';').next()?.replace("\\/", "/").to_ascii_lowercase();
        Some((if kind == "image/jpg" { "image/jpeg".into() } else { kind }, JsonStr::from_inside(data)))
    }
}

/// Returns the media type that the extension of a URL's path or of a file name stands for.
pub fn media_type_of(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next().unwrap_or("");
    let extension = path.rsplit_once('.')?.1.to_ascii_lowercase();
    Some(match extension.as_str() {
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

/// Returns a name for a file without one. `url` is a JSON string.
pub fn default_name(url: &str) -> &'static str {
    if url.starts_with("\"data:application/pdf") { "file.pdf" } else { "file" }
}

/// The properties of an image or a file of another dialect by which a target accepts or rejects it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfferedMedia<'m> {
    pub is_image: bool,
    /// The media type, if the bytes are inline.
    pub inline_type: Option<&'m str>,
    /// The bytes are inline, or there is a URL.
    pub has_bytes_or_url: bool,
    /// There is only a file id, and the target's provider knows it.
    pub has_known_file_id: bool,
}
