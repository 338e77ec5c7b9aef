//! JSON among options that is kept as text.

use crate::json::Json;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::fmt::{self, Formatter};

/// The name by which the reader of options recognizes a type that takes the text itself.
pub(super) const PASSED_THROUGH: &str = "$rethread::passed_through";

/// JSON that is not read with the options.
pub struct RawJson(pub Json);

/// A JSON object that is not read with the options.
pub struct RawObject(pub Json);

/// Takes the text of a value.
struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Json;

    fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Json, E> {
        // Part of a text that was checked.
        Ok(Json::trusted(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(PASSED_THROUGH, TextVisitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawJson(json) = RawJson::deserialize(deserializer)?;
        if json.view().is_object() {
            Ok(Self(json))
        } else {
            Err(de::Error::invalid_type(de::Unexpected::Other("a value"), &"an object"))
        }
    }
}
