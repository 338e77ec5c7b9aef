//! Reads the options of public methods into structs, as a serde deserializer over JavaScript values (R62).
//!
//! An option may be a getter that throws, a revoked proxy or a cycle, so every read goes through an import with
//! `catch`, and only the members that a struct declares are read. Error messages name the path of an option and never
//! quote a value of the wrong type, which may be a credential.
//!
//! Why not the deserializer of serde-wasm-bindgen: it reads without `catch`, and it never visits members that a struct
//! does not declare, so `deny_unknown_fields` would find nothing.

use super::untrusted_value::{get, is_bytes, is_options_object, items, keys_of_options, members, string};
use crate::error::{Error, ErrorCode};
use js_sys::Function;
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use std::cell::RefCell;
use std::fmt::{self, Display, Formatter};
use wasm_bindgen::{JsCast, JsValue};

/// The member that names the variant of an enum, as in `{ type: "sliding_turns", turns: 3 }`.
const TAG: &str = "type";
/// The most items of a list among options.
const MAX_ITEMS: u32 = 1000;

/// Reads required options. `what` names the argument in error messages, as in "a run's request".
///
/// # Errors `config_invalid` with the path of a wrong or unknown option, `invalid_input` when the argument is no object
/// or cannot be read, `too_large`.
pub fn read_options<T: DeserializeOwned>(what: &str, value: &JsValue) -> Result<T, Error> {
    T::deserialize(OptionReader { object: JsValue::UNDEFINED, value: value.clone() })
        .map_err(|error| error.into_error(what))
}

/// Reads options that may be absent.
///
/// # Errors
/// As [`read_options`].
pub fn read_optional<T: DeserializeOwned + Default>(what: &str, value: &JsValue) -> Result<T, Error> {
    if value.is_undefined() || value.is_null() { Ok(T::default()) } else { read_options(what, value) }
}

/// Why an option cannot be used.
#[derive(Debug)]
pub struct OptionError {
    code: ErrorCode,
    /// The path inside of the argument, as in `replay.reducers[0].turns`; empty for the argument itself.
    path: String,
    /// The rest of the sentence that begins with the path.
    message: String,
}

impl OptionError {
    fn new(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::ConfigInvalid, path: String::new(), message: message.into() }
    }

    /// Puts the name of a member, or `[index]`, before the path.
    fn within(mut self, step: &str) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{separator}{}", self.path);
        self
    }

    fn into_error(self, what: &str) -> Error {
        let Self { code, path, message } = self;
        match (path.is_empty(), code) {
            (true, ErrorCode::ConfigInvalid) => Error::invalid(format!("{what} {message}")),
            (true, _) => Error::new(code, format!("{what}: {message}")),
            (false, ErrorCode::ConfigInvalid) => Error::new(code, format!("`{path}` {message}")),
            (false, _) => Error::new(code, format!("`{path}`: {message}")),
        }
    }
}

impl From<Error> for OptionError {
    fn from(error: Error) -> Self {
        Self { code: error.code, path: String::new(), message: error.into_message() }
    }
}

impl Display for OptionError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` {}", self.path, self.message)
    }
}

impl std::error::Error for OptionError {}

impl de::Error for OptionError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(format!("is wrong: {message}"))
    }

    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format!("must be {expected}"))
    }

    fn invalid_value(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format!("must be {expected}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let variant: String = variant.chars().take(100).collect();
        Self::new(format!("must be {}, not \"{variant}\"", quoted(expected)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.join("`, `");
        let message = format!("is not an option of this version; known here: `{known}`");
        Self::new(message).within(field)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("is missing").within(field)
    }
}

/// Returns what a value is in a sentence.
fn type_of(value: &JsValue) -> &'static str {
    if value.is_undefined() {
        "undefined"
    } else if value.is_null() {
        "null"
    } else if value.is_string() {
        "a string"
    } else if value.as_bool().is_some() {
        "true or false"
    } else if value.as_f64().is_some() {
        "this number"
    } else if value.is_function() {
        "a function"
    } else if value.is_object() {
        match is_options_object(value) {
            Ok(false) if is_bytes(value) => "bytes",
            Ok(false) => "a list",
            _ => "an object",
        }
    } else {
        "a value of this type"
    }
}

fn quoted(words: &[&str]) -> String {
    format!("\"{}\"", words.join("\" or \""))
}

/// A value among options, with the object that it is a member of.
struct OptionReader {
    object: JsValue,
    value: JsValue,
}

impl OptionReader {
    fn is_nullish(&self) -> bool {
        self.value.is_undefined() || self.value.is_null()
    }

    fn check_object(&self) -> Result<(), OptionError> {
        if is_options_object(&self.value)? { Ok(()) } else { Err(self.expected("an object")) }
    }

    fn text(&self) -> Result<String, OptionError> {
        string("its text", &self.value)?.ok_or_else(|| self.expected("a string"))
    }

    /// Returns the error of a value of another type. The value itself is not quoted.
    fn expected(&self, expected: impl Display) -> OptionError {
        OptionError::new(format!("must be {expected}, not {}", type_of(&self.value)))
    }
}

impl<'de> Deserializer<'de> for OptionReader {
    type Error = OptionError;

    forward_to_deserialize_any! { i8 i16 i32 i64 i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        Err(self.expected(&visitor as &dyn de::Expected))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        visitor.visit_unit()
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        visitor.visit_bool(self.value.as_bool().ok_or_else(|| self.expected("true or false"))?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        visitor.visit_f64(self.value.as_f64().ok_or_else(|| self.expected("a number"))?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        let is_safe = |number: &f64| *number >= 0.0 && number.fract() == 0.0 && *number < 9_007_199_254_740_992.0;
        let number = self.value.as_f64().filter(is_safe);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        visitor.visit_u64(number.ok_or_else(|| self.expected("a whole number, 0 or more"))? as u64)
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
        visitor.visit_string(self.text()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        if self.is_nullish() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, OptionError> {
        if name != PASSED_THROUGH {
            return visitor.visit_newtype_struct(self);
        }
        PASSED.with(|passed| passed.replace(Some(self)));
        visitor.visit_unit()
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        let items = items("it", &self.value, MAX_ITEMS)?.ok_or_else(|| self.expected("a list"))?;
        visitor.visit_seq(ListAccess { items: items.into_iter().enumerate() })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, OptionError> {
        self.check_object()?;
        let members = members("it", &self.value)?;
        visitor.visit_map(EntryAccess { object: self.value, members: members.into_iter(), next: None })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, OptionError> {
        self.check_object()?;
        visitor.visit_map(FieldAccess::new(self.value, fields)?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, OptionError> {
        self.check_object()?;
        let tag = get(&self.value, TAG)?.as_string();
        let tag = tag.ok_or_else(|| OptionError::new(format!("must be {}", quoted(variants))).within(TAG))?;
        visitor.visit_enum(TaggedObject { object: self.value, tag })
    }
}

/// The items of a list.
struct ListAccess {
    items: std::iter::Enumerate<std::vec::IntoIter<JsValue>>,
}

impl<'de> SeqAccess<'de> for ListAccess {
    type Error = OptionError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, OptionError> {
        let Some((index, value)) = self.items.next() else { return Ok(None) };
        let reader = OptionReader { object: JsValue::UNDEFINED, value };
        seed.deserialize(reader).map(Some).map_err(|error| error.within(&format!("[{index}]")))
    }
}

/// The members of an object whose keys are an application's own, as in `channels`.
struct EntryAccess {
    object: JsValue,
    members: std::vec::IntoIter<(String, JsValue)>,
    next: Option<(String, JsValue)>,
}

impl<'de> MapAccess<'de> for EntryAccess {
    type Error = OptionError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, OptionError> {
        self.next = self.members.next();
        self.next.as_ref().map(|(key, _)| seed.deserialize(str_deserializer(key))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, OptionError> {
        let (key, value) = self.next.take().unwrap_or_default();
        seed.deserialize(OptionReader { object: self.object.clone(), value }).map_err(|error| error.within(&key))
    }
}

/// The members that a struct declares, inherited ones included, and then those that it does not: serde rejects these.
struct FieldAccess {
    object: JsValue,
    keys: std::vec::IntoIter<String>,
    next: Option<(String, JsValue)>,
}

impl FieldAccess {
    fn new(object: JsValue, fields: &'static [&'static str]) -> Result<Self, OptionError> {
        let mut keys: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        // A variant of an enum does not declare the member that names it.
        let is_undeclared = |key: &String| key != TAG && !fields.contains(&key.as_str());
        keys.extend(keys_of_options(&object)?.into_iter().filter(is_undeclared));
        Ok(Self { object, keys: keys.into_iter(), next: None })
    }

    /// Returns the next member that is present, with its value.
    fn next_member(&mut self) -> Result<Option<(String, JsValue)>, OptionError> {
        for key in self.keys.by_ref() {
            let value = get(&self.object, &key)?;
            if !value.is_undefined() {
                return Ok(Some((key, value)));
            }
        }
        Ok(None)
    }
}

impl<'de> MapAccess<'de> for FieldAccess {
    type Error = OptionError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, OptionError> {
        self.next = self.next_member()?;
        self.next.as_ref().map(|(key, _)| seed.deserialize(str_deserializer(key))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, OptionError> {
        let (key, value) = self.next.take().unwrap_or_default();
        seed.deserialize(OptionReader { object: self.object.clone(), value }).map_err(|error| error.within(&key))
    }
}

fn str_deserializer(text: &str) -> StrDeserializer<'_, OptionError> {
    text.into_deserializer()
}

/// An object whose member `type` names the variant of an enum.
struct TaggedObject {
    object: JsValue,
    tag: String,
}

impl<'de> EnumAccess<'de> for TaggedObject {
    type Error = OptionError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), OptionError> {
        let variant = seed.deserialize(str_deserializer(&self.tag)).map_err(|error| error.within(TAG))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for TaggedObject {
    type Error = OptionError;

    fn unit_variant(self) -> Result<(), OptionError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, OptionError> {
        seed.deserialize(OptionReader { object: JsValue::UNDEFINED, value: self.object })
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, OptionError> {
        Err(de::Error::invalid_type(de::Unexpected::Other("an object"), &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, OptionError> {
        visitor.visit_map(FieldAccess::new(self.object, fields)?)
    }
}

/// The name by which [`OptionReader`] recognizes a type that takes the JavaScript value itself.
const PASSED_THROUGH: &str = "$rethread::passed_through";

thread_local! {
    /// The value on its way to such a type: serde's data model has no place for it.
    static PASSED: RefCell<Option<OptionReader>> = const { RefCell::new(None) };
}

struct PassedVisitor;

impl Visitor<'_> for PassedVisitor {
    type Value = OptionReader;

    fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("a JavaScript value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<OptionReader, E> {
        PASSED.with(RefCell::take).ok_or_else(|| E::custom("it was read outside of options"))
    }
}

/// A value that is not read with the options: data, such as a message's input.
pub struct UnreadValue(pub JsValue);

impl<'de> Deserialize<'de> for UnreadValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(PASSED_THROUGH, PassedVisitor).map(|passed| Self(passed.value))
    }
}

/// An object that is not read with the options, such as a JSON Schema.
pub struct UnreadObject(pub JsValue);

impl<'de> Deserialize<'de> for UnreadObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let UnreadValue(value) = UnreadValue::deserialize(deserializer)?;
        // An object that cannot be asked whether it is an array is reported where its members are read.
        if is_options_object(&value).unwrap_or(true) {
            Ok(Self(value))
        } else {
            Err(de::Error::invalid_type(de::Unexpected::Other("a value"), &"an object"))
        }
    }
}

/// A function among options, with the object that it is a member of.
pub struct BoundFunction {
    pub this: JsValue,
    pub function: Function,
}

impl<'de> Deserialize<'de> for BoundFunction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let OptionReader { object, value } = deserializer.deserialize_newtype_struct(PASSED_THROUGH, PassedVisitor)?;
        if !value.is_function() {
            return Err(de::Error::invalid_type(de::Unexpected::Other("a value"), &"a function"));
        }
        Ok(Self { this: object, function: value.unchecked_into() })
    }
}

/// A flag, or a function that returns one.
pub enum FlagOrFunction {
    Flag(bool),
    Function(BoundFunction),
}

impl<'de> Deserialize<'de> for FlagOrFunction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let OptionReader { object, value } = deserializer.deserialize_newtype_struct(PASSED_THROUGH, PassedVisitor)?;
        if value.is_function() {
            return Ok(Self::Function(BoundFunction { this: object, function: value.unchecked_into() }));
        }
        let not_boolean = || de::Error::invalid_type(de::Unexpected::Other("a value"), &"true, false or a function");
        value.as_bool().map(Self::Flag).ok_or_else(not_boolean)
    }
}

/// An object whose keys are an application's own, in its order.
pub struct OptionEntries<T>(pub Vec<(String, T)>);

impl<T> Default for OptionEntries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OptionEntries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OptionEntriesVisitor(std::marker::PhantomData)).map(Self)
    }
}

struct OptionEntriesVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OptionEntriesVisitor<T> {
    type Value = Vec<(String, T)>;

    fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// A whole number, at least 1.
#[derive(Clone, Copy)]
pub struct AtLeastOne(pub u64);

impl<'de> Deserialize<'de> for AtLeastOne {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            0 => Err(de::Error::invalid_value(de::Unexpected::Unsigned(0), &"a whole number, 1 or more")),
            number => Ok(Self(number)),
        }
    }
}

/// Declares an option that is one of several words, with the value that each stands for.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $value:ty { $($word:literal => $meaning:expr),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name(pub $value);

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                match String::deserialize(deserializer)?.as_str() {
                    $($word => Ok(Self($meaning)),)+
                    other => Err(serde::de::Error::unknown_variant(other, &[$($word),+])),
                }
            }
        }
    };
}
pub(super) use words;
