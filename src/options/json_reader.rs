//! Reads options that are JSON text, as a serde deserializer over it: for hosts whose options are no objects of
//! JavaScript.
//!
//! Why not a JSON crate: values that are not read with the options, such as a tool's parameters, are kept as text.

use super::function_name::{FlagOrName, FunctionName};
use super::option_error::{OptionError, quoted};
use super::option_types::OptionTypes;
use super::raw_json::{PASSED_THROUGH, RawJson, RawObject};
use crate::error::Error;
use crate::history::{Incoming, IncomingMessage, IncomingPart, read_part};
use crate::json::{Json, JsonKind, JsonRef};
use crate::message::{Dialect, Part, PartBody, Role};
use crate::provider::{check_input_body, decode_body};
use crate::replay::Callback;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use std::fmt::{self, Display, Formatter};
use std::vec::IntoIter;

/// The member that names the variant of an enum.
const TAG: &str = "type";
/// The most items of a list among options.
const MAX_ITEMS: usize = 1000;

/// Reads options. `what` names them in error messages, as in "a run's request"; an empty text has none.
///
/// # Errors
/// `config_invalid` with the path of a wrong or unknown option; `invalid_input` if the text is not a JSON object.
pub fn read_options<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Error> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    let json = JsonRef::parse(text)
        .map_err(|error| Error::invalid(format!("{what}: it is not valid JSON (at byte {})", error.at)))?;
    T::deserialize(OptionReader(json)).map_err(|error| error.into_error(what))
}

/// The options of a host that gives JSON.
#[derive(Default)]
pub struct JsonOptions;

/// A function that has no name in JSON.
pub enum NoFunction {}

impl OptionTypes for JsonOptions {
    type Value = RawJson;
    type Object = RawObject;
    type Function = FunctionName;
    type HostOnlyFunction = NoFunction;
    type FlagOrFunction = FlagOrName;

    fn value_to_json(value: &RawJson) -> Result<Json, Error> {
        Ok(value.0.clone())
    }

    fn object_to_json(object: &RawObject) -> Result<Json, Error> {
        Ok(object.0.clone())
    }

    fn input_items(input: Option<&RawJson>, dialect: Dialect) -> Result<Vec<Incoming>, Error> {
        input.map_or(Ok(Vec::new()), |input| input_items(input.0.view(), dialect))
    }
}

impl From<NoFunction> for Callback {
    fn from(function: NoFunction) -> Self {
        match function {}
    }
}

/// Reads an input: a text, a list of parts, or a body of the dialect.
///
/// # Errors
/// `invalid_input`.
pub fn input_items(input: JsonRef<'_>, dialect: Dialect) -> Result<Vec<Incoming>, Error> {
    let user_message =
        |parts| vec![Incoming::Message(IncomingMessage { role: Role::User, parts, dialect: None, template: None })];
    let empty = || Error::invalid("`input` is empty; leave it out to answer the stored messages");
    match input.kind() {
        JsonKind::String => {
            let text = input.as_json_str().filter(|text| !text.is_empty()).ok_or_else(empty)?;
            Ok(user_message(vec![IncomingPart::Part(PartBody::Text(text).into())]))
        }
        JsonKind::Array => {
            let parts: Vec<_> = input.items().map(input_part).collect::<Result<_, Error>>()?;
            if parts.is_empty() { Err(empty()) } else { Ok(user_message(parts)) }
        }
        JsonKind::Object => {
            check_input_body(dialect, input)?;
            decode_body(dialect, input)
        }
        _ => Err(Error::invalid("`input` must be a text, a list of parts, or a body of the dialect")),
    }
}

fn input_part(part: JsonRef<'_>) -> Result<IncomingPart, Error> {
    let part: Part = read_part(part)?;
    match part.body {
        PartBody::Text(_) | PartBody::Image(_) | PartBody::File(_) => Ok(IncomingPart::Part(part)),
        _ => Err(Error::invalid("a part of an input is \"text\", \"image\" or \"file\"")),
    }
}

/// Returns what a value is in a sentence. The value itself is not quoted: it may be a credential.
fn type_of(json: JsonRef<'_>) -> &'static str {
    match json.kind() {
        JsonKind::Null => "null",
        JsonKind::String => "a string",
        JsonKind::Bool => "true or false",
        JsonKind::Number => "this number",
        JsonKind::Array => "a list",
        JsonKind::Object => "an object",
    }
}

/// A value among options.
struct OptionReader<'a>(JsonRef<'a>);

impl OptionReader<'_> {
    fn expected(&self, expected: impl Display) -> OptionError {
        OptionError::new(format!("must be {expected}, not {}", type_of(self.0)))
    }

    fn check_object(&self) -> Result<(), OptionError> {
        if self.0.is_object() { Ok(()) } else { Err(self.expected("an object")) }
    }
}

impl<'de> Deserializer<'de> for OptionReader<'_> {
    type Error = OptionError;

    forward_to_deserialize_any! { i8 i16 i32 i64 i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        Err(self.expected(&visitor as &dyn de::Expected))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        visitor.visit_unit()
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        visitor.visit_bool(self.0.as_bool().ok_or_else(|| self.expected("true or false"))?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        // JSON has no number for it.
        if self.0.is_text("Infinity") {
            return visitor.visit_f64(f64::INFINITY);
        }
        let number = if self.0.kind() == JsonKind::Number { self.0.as_raw().parse().ok() } else { None };
        visitor.visit_f64(number.ok_or_else(|| self.expected("a number"))?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        let number = self.0.as_u64().filter(|number| *number < 1 << 53);
        visitor.visit_u64(number.ok_or_else(|| self.expected("a whole number, 0 or more"))?)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        visitor.visit_string(self.0.as_text().ok_or_else(|| self.expected("a string"))?.into_owned())
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, OptionError> {
        if name == PASSED_THROUGH { visitor.visit_str(self.0.as_raw()) } else { visitor.visit_newtype_struct(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        if self.0.kind() != JsonKind::Array {
            return Err(self.expected("a list"));
        }
        let items: Vec<_> = self.0.items().take(MAX_ITEMS + 1).collect();
        if items.len() > MAX_ITEMS {
            return Err(OptionError::new(format!("has more than {MAX_ITEMS} items")));
        }
        visitor.visit_seq(ListAccess(items.into_iter().enumerate()))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        self.check_object()?;
        visitor.visit_map(MemberAccess::new(self.0, |_| true))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, OptionError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, OptionError> {
        self.check_object()?;
        let tag = self.0.text(TAG).map(|tag| tag.into_owned());
        let tag = tag.ok_or_else(|| OptionError::new(format!("must be {}", quoted(variants))).within(TAG))?;
        visitor.visit_enum(TaggedObject { object: self.0, tag })
    }
}

struct ListAccess<'a>(std::iter::Enumerate<IntoIter<JsonRef<'a>>>);

impl<'de> SeqAccess<'de> for ListAccess<'_> {
    type Error = OptionError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, OptionError> {
        let Some((index, item)) = self.0.next() else { return Ok(None) };
        seed.deserialize(OptionReader(item)).map(Some).map_err(|error| error.within(&format!("[{index}]")))
    }
}

/// The members of an object.
struct MemberAccess<'a> {
    members: IntoIter<(String, JsonRef<'a>)>,
    next: Option<(String, JsonRef<'a>)>,
}

impl<'a> MemberAccess<'a> {
    fn new(object: JsonRef<'a>, reads: fn(&str) -> bool) -> Self {
        let members = object.entries().map(|(key, value)| (key.as_text().unwrap_or_default().into_owned(), value));
        let members: Vec<_> = members.filter(|(key, _)| reads(key)).collect();
        Self { members: members.into_iter(), next: None }
    }
}

impl<'de> MapAccess<'de> for MemberAccess<'_> {
    type Error = OptionError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, OptionError> {
        self.next = self.members.next();
        let key = |(key, _): &(String, _)| seed.deserialize(key.as_str().into_deserializer());
        self.next.as_ref().map(key).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, OptionError> {
        let Some((key, value)) = self.next.take() else { return Err(OptionError::new("has no value")) };
        seed.deserialize(OptionReader(value)).map_err(|error| error.within(&key))
    }
}

/// An object whose member `type` names the variant of an enum.
struct TaggedObject<'a> {
    object: JsonRef<'a>,
    tag: String,
}

impl<'de> EnumAccess<'de> for TaggedObject<'_> {
    type Error = OptionError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), OptionError> {
        let variant = seed.deserialize(self.tag.as_str().into_deserializer());
        Ok((variant.map_err(|error: OptionError| error.within(TAG))?, self))
    }
}

impl<'de> VariantAccess<'de> for TaggedObject<'_> {
    type Error = OptionError;

    fn unit_variant(self) -> Result<(), OptionError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, OptionError> {
        seed.deserialize(OptionReader(self.object))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, OptionError> {
        Err(de::Error::invalid_type(de::Unexpected::Other("an object"), &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, OptionError> {
        visitor.visit_map(MemberAccess::new(self.object, |key| key != TAG))
    }
}

impl<'de> Deserialize<'de> for NoFunction {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom("a component cannot call this function, not even by name; leave it out"))
    }
}
