//! How stored values are encoded: CBOR maps and arrays whose fields have numbers, as [`minicbor`] derives them. Most
//! structs use `encode_fields!`, which writes the same bytes: the derived decoder contains each field twice and
//! enlarges the wasm.
//!
//! A number is never used twice. A reader skips fields that it does not know, and a field that is absent reads as its
//! default, so two builds work on one database. Texts are not copied: they are slices of the record's bytes.

use bytes::Bytes;
use bytestring::ByteString;
use minicbor::Decode;
use minicbor::data::Int;
use minicbor::decode::{Decoder, Error};
use minicbor::encode::{Encoder, Write};
use std::ops::Range;

/// Maximum nesting depth of a stored value. Deeper nesting could overflow the stack.
const MAX_DEPTH: u32 = 64;

/// The context of decoding: where texts come from, and how deep the decoder is.
pub trait TextSource {
    /// Reads a text as a slice of the record, or as a copy if it is not part of the record.
    ///
    /// # Errors
    /// If the next value is not a text in UTF-8.
    fn read_text(&self, from: &mut Decoder<'_>) -> Result<ByteString, Error>;

    /// Enters a value that may contain values of its own type.
    ///
    /// # Errors
    /// If values are nested too deeply.
    fn enter(&mut self) -> Result<(), Error>;

    /// Leaves the value entered last.
    fn leave(&mut self);
}

/// The bytes of one record, which its texts share.
#[derive(Clone, Debug, Default)]
pub struct RecordSource {
    record: Bytes,
    depth: u32,
}

impl RecordSource {
    /// Shares slices of `record`.
    #[must_use]
    pub fn new(record: Bytes) -> Self {
        Self { record, depth: 0 }
    }
}

impl TextSource for RecordSource {
    fn read_text(&self, from: &mut Decoder<'_>) -> Result<ByteString, Error> {
        // `Decoder::str` checks the text as UTF-8, which making a `ByteString` of it would repeat.
        let Some(range) = text_range(from) else { return from.str().map(ByteString::from) };
        let text = from.input().get(range.clone()).unwrap_or_default();
        // `slice_ref` panics for bytes of another buffer.
        let (record, slice) = (self.record.as_ptr_range(), text.as_ptr_range());
        let is_shared = slice.start >= record.start && slice.end <= record.end;
        let bytes = if is_shared { self.record.slice_ref(text) } else { Bytes::copy_from_slice(text) };
        from.set_position(range.end);
        ByteString::try_from(bytes).map_err(|_| Error::message("a text is not UTF-8"))
    }

    fn enter(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Error::message("values are nested too deeply")) } else { Ok(()) }
    }

    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}

/// Returns where the bytes of the next value are, if it is a text of definite length (RFC 8949, section 3).
fn text_range(from: &Decoder<'_>) -> Option<Range<usize>> {
    let input = from.input();
    let (first, rest) = input.get(from.position()..)?.split_first()?;
    let (length, size) = match first {
        0x60..=0x77 => (u64::from(first & 0x1f), 0),
        0x78 => (u64::from(*rest.first()?), 1),
        0x79 => (u64::from(u16::from_be_bytes(*rest.first_chunk()?)), 2),
        0x7a => (u64::from(u32::from_be_bytes(*rest.first_chunk()?)), 4),
        0x7b => (u64::from_be_bytes(*rest.first_chunk()?), 8),
        _ => return None,
    };
    let start = from.position() + 1 + size;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    (end <= input.len()).then_some(start..end)
}

/// Number of items that are preallocated for a list whatever the record's size.
const SHORT_LIST: usize = 64;

/// Decodes a list without spare capacity, of which there would be much in lists of one or two items, and without moving
/// the items of a long one as it grows. A damaged record may claim any length, so a long list gets at most as many
/// bytes as the record still has.
pub(crate) fn exact_list<'b, Ctx, T: Decode<'b, Ctx>>(
    from: &mut Decoder<'b>,
    context: &mut Ctx,
) -> Result<Vec<T>, Error> {
    let count = from.array()?.ok_or_else(|| Error::message("a stored list must have a definite length"))?;
    let remaining_bytes = from.input().len().saturating_sub(from.position());
    let most = remaining_bytes.checked_div(size_of::<T>()).unwrap_or_default().max(SHORT_LIST);
    let mut list = Vec::with_capacity(usize::try_from(count).unwrap_or(most).min(most));
    for _ in 0..count {
        list.push(T::decode(from, context)?);
    }
    Ok(list)
}

/// Returns true for a value that is not written, since its absence reads as the same.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Fields of a newer build, kept as they were read, so that writing the value again does not lose them. In order of
/// their numbers as the writer had them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownFields(Vec<(Int, Bytes)>);

impl UnknownFields {
    /// Returns the number of unknown fields.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Reads the value of a field that this build does not know.
    ///
    /// # Errors
    /// If the value is not CBOR.
    pub fn read(&mut self, number: Int, from: &mut Decoder<'_>) -> Result<(), Error> {
        let start = from.position();
        from.skip()?;
        let value = from.input().get(start..from.position()).unwrap_or(&[]);
        self.0.push((number, Bytes::copy_from_slice(value)));
        Ok(())
    }

    /// Writes all fields back.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write<W: Write>(&self, out: &mut Encoder<W>) -> Result<(), minicbor::encode::Error<W::Error>> {
        for (number, value) in &self.0 {
            out.int(*number)?;
            out.writer_mut().write_all(value).map_err(minicbor::encode::Error::write)?;
        }
        Ok(())
    }
}

/// Decodes an optional field. An unknown enum variant, from a newer build, decodes as `None`.
pub(crate) fn read_optional<'b, Ctx, T: Decode<'b, Ctx> + Default>(
    from: &mut Decoder<'b>,
    context: &mut Ctx,
) -> Result<T, Error> {
    match T::decode(from, context) {
        Err(error) if error.is_unknown_variant() && T::nil().is_some() => {
            from.skip()?;
            Ok(T::default())
        }
        decoded => decoded,
    }
}

/// Reads the header of a definite-length map.
pub(crate) fn map_length(from: &mut Decoder<'_>) -> Result<u64, Error> {
    from.map()?.ok_or_else(|| Error::message("a stored map must have a definite length"))
}

/// Encodes and decodes a struct as a map with numbered fields, in ascending order. A field that is `required` is always
/// written, and its absence is an error; any other is not written if it has its default value. A `list` is decoded by
/// [`exact_list`].
macro_rules! encode_fields {
    (struct $name:ident { $($number:literal => $field:ident $(: $mode:ident)?),* $(,)? }) => {
        impl<Ctx: $crate::encoding::TextSource> minicbor::Encode<Ctx> for $name {
            fn encode<W: minicbor::encode::Write>(
                &self,
                out: &mut minicbor::Encoder<W>,
                context: &mut Ctx,
            ) -> std::result::Result<(), minicbor::encode::Error<W::Error>> {
                out.map(0 $(+ u64::from(encode_fields!(@is_written &self.$field $(, $mode)?)))*)?;
                $(if encode_fields!(@is_written &self.$field $(, $mode)?) {
                    out.u32($number)?;
                    minicbor::Encode::encode(&self.$field, out, context)?;
                })*
                Ok(())
            }
        }

        impl<'b, Ctx: $crate::encoding::TextSource> minicbor::Decode<'b, Ctx> for $name {
            fn decode(
                from: &mut minicbor::Decoder<'b>,
                context: &mut Ctx,
            ) -> std::result::Result<Self, minicbor::decode::Error> {
                $(let mut $field = encode_fields!(@absent $($mode)?);)*
                for _ in 0..$crate::encoding::map_length(from)? {
                    match from.i64()? {
                        $($number => $field = encode_fields!(@read from, context $(, $mode)?),)*
                        _ => from.skip()?,
                    }
                }
                Ok(Self { $($field: encode_fields!(@value $field, $number $(, $mode)?),)* })
            }
        }
    };
    (@is_written $value:expr, required) => { true };
    (@is_written $value:expr $(, list)?) => { !$crate::encoding::is_default($value) };
    (@absent required) => { None };
    (@absent $(list)?) => { Default::default() };
    (@read $from:ident, $context:ident, required) => { Some(minicbor::Decode::decode($from, $context)?) };
    (@read $from:ident, $context:ident, list) => { $crate::encoding::exact_list($from, $context)? };
    (@read $from:ident, $context:ident) => { $crate::encoding::read_optional($from, $context)? };
    (@value $value:ident, $number:literal, required) => {
        $value.ok_or_else(|| minicbor::decode::Error::missing_value($number))?
    };
    (@value $value:ident, $number:literal $(, list)?) => { $value };
}
pub(crate) use encode_fields;

/// Encodes and decodes a struct that is read, changed and written again (a session's head). The fields of a newer build
/// stay in `unknown`. A field with its default value is not written.
macro_rules! encode_with_unknown_fields {
    (struct $name:ident { $($number:literal => $field:ident),* $(,)? }) => {
        impl<Ctx: $crate::encoding::TextSource> minicbor::Encode<Ctx> for $name {
            fn encode<W: minicbor::encode::Write>(
                &self,
                out: &mut minicbor::Encoder<W>,
                context: &mut Ctx,
            ) -> std::result::Result<(), minicbor::encode::Error<W::Error>> {
                let known = 0 $(+ u64::from(!$crate::encoding::is_default(&self.$field)))*;
                out.map(known + self.unknown.count())?;
                $(if !$crate::encoding::is_default(&self.$field) {
                    out.u32($number)?;
                    minicbor::Encode::encode(&self.$field, out, context)?;
                })*
                self.unknown.write(out)
            }
        }

        impl<'b, Ctx: $crate::encoding::TextSource> minicbor::Decode<'b, Ctx> for $name {
            fn decode(
                from: &mut minicbor::Decoder<'b>,
                context: &mut Ctx,
            ) -> std::result::Result<Self, minicbor::decode::Error> {
                let mut value = Self::default();
                for _ in 0..$crate::encoding::map_length(from)? {
                    let number = from.int()?;
                    match i128::from(number) {
                        $($number => value.$field = minicbor::Decode::decode(from, context)?,)*
                        _ => value.unknown.read(number, from)?,
                    }
                }
                Ok(value)
            }
        }
    };
}
pub(crate) use encode_with_unknown_fields;

#[cfg(test)]
mod tests;
