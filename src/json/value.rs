//! [`Json`], an owned JSON value.

use super::scan::{SyntaxError, check, trimmed, without_byte_order_mark};
use crate::encoding::TextSource;
use bytestring::ByteString;
use minicbor::encode::{Encoder, Write};
use minicbor::{Decode, Decoder, Encode};

/// An owned JSON value, kept as the text that it was written in. The text is always well-formed: it comes from
/// [`Json::parse`] or from a writer. A clone shares the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(ByteString);

impl Json {
    /// Checks `text` and copies it without the surrounding white space and byte order mark.
    ///
    /// # Errors
    /// If `text` is not one JSON value.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let text = without_byte_order_mark(text);
        check(text)?;
        Ok(Self::from_checked(trimmed(text)))
    }

    /// Wraps text that a writer of this crate has produced. It is checked in debug builds only.
    pub(crate) fn trusted(text: String) -> Self {
        debug_assert!(check(&text).is_ok(), "not JSON: {text}");
        Self(text.into())
    }

    /// Returns `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(ByteString::from_static("null"))
    }

    /// Copies text that was checked before.
    pub(super) fn from_checked(text: &str) -> Self {
        Self(text.into())
    }

    /// Wraps a string token that was checked before, without copying it.
    pub(super) fn from_token(token: ByteString) -> Self {
        Self(token)
    }

    /// Returns the text as it was written.
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

/// Stored as its text. It was checked before it was stored, so decoding relies on the record's checksum.
impl<Ctx> Encode<Ctx> for Json {
    fn encode<W: Write>(&self, out: &mut Encoder<W>, _: &mut Ctx) -> Result<(), minicbor::encode::Error<W::Error>> {
        out.str(&self.0)?.ok()
    }
}

impl<'b, Ctx: TextSource> Decode<'b, Ctx> for Json {
    fn decode(from: &mut Decoder<'b>, context: &mut Ctx) -> Result<Self, minicbor::decode::Error> {
        Ok(Self(context.read_text(from)?))
    }
}
