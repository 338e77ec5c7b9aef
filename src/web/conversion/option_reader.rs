//! Reads the options of public methods into structs, as a serde deserializer over JavaScript values (R62).
//!
//! An option may be a getter that throws, a revoked proxy or a cycle, so every read goes through an import with
//! `catch`, and only the members that a struct declares are read. Error messages name the path of an option and never
//! quote a value of the wrong type, which may be a credential.
//!
//! Why not the deserializer of serde-wasm-bindgen: it reads without `catch`, and it never visits members that a struct
//! does not declare, so `deny_unknown_fields` would find nothing.

use super::untrusted_value::{get, is_bytes, is_options_object, items, keys_of_options, members, string};
use crate::error::Error;
use crate::options::{OptionError, quoted};
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
