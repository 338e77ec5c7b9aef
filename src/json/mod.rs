//! JSON that loses nothing.
//!
//! A provider compares what it sent with what comes back: a number's digits, the order and the
//! doubling of keys, an escape, a lone surrogate must survive (R45). So a value is kept as the text
//! it was written in, checked once, and read through borrowed views; only what an application
//! reads is ever decoded. No recursion: nesting of any depth is safe.

mod memory_estimate;
mod scan;
mod string;
mod view;
mod write;

pub use memory_estimate::fits_memory;
pub use scan::{SyntaxError, check, skip_space};
pub(crate) use string::ends_in_high_surrogate;
pub use string::{JsonStr, push_escaped, push_text};
pub use view::{Entries, Items, JsonRef, Kind, TextMembers, trimmed};
pub use write::{ArrayWriter, ObjectWriter, list_of};

use crate::encoding::TextSource;
use bytestring::ByteString;
use minicbor::encode::{Encoder, Write};
use minicbor::{Decode, Decoder, Encode};

/// An owned JSON value, as its own text. Always well-formed: built by [`Json::parse`] or by a writer.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(ByteString);

impl Json {
    /// Checks the text and keeps it, without the white space around it.
    ///
    /// # Errors
    /// Where the text stops being JSON.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        Ok(JsonRef::parse(text)?.to_owned())
    }

    /// For text that a writer of this crate has just produced.
    pub(crate) fn trusted(text: String) -> Self {
        debug_assert!(check(&text).is_ok(), "not JSON: {text}");
        Self(text.into())
    }

    /// `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(ByteString::from_static("null"))
    }

    /// A borrowed view to read it by.
    #[must_use]
    pub fn view(&self) -> JsonRef<'_> {
        JsonRef::trusted(&self.0)
    }

    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Stored as its text. It was checked when it was written, and the record's checksum vouches for it since.
impl<Ctx> Encode<Ctx> for Json {
    fn encode<W: Write>(&self, out: &mut Encoder<W>, _: &mut Ctx) -> Result<(), minicbor::encode::Error<W::Error>> {
        out.str(&self.0)?.ok()
    }
}

impl<'b, Ctx: TextSource> Decode<'b, Ctx> for Json {
    fn decode(from: &mut Decoder<'b>, context: &mut Ctx) -> Result<Self, minicbor::decode::Error> {
        Ok(Self(context.share(from.str()?)?))
    }
}

#[cfg(test)]
mod tests;
