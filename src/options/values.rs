//! Values of options that several of them have.

use crate::tool::Window;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt::{self, Formatter};

/// A freshness window in milliseconds: 0 for never, `Infinity` for always.
pub struct WindowOption(pub Window);

impl<'de> Deserialize<'de> for WindowOption {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let millis = f64::deserialize(deserializer)?;
        Window::from_millis(millis).map(Self).map_err(|error| de::Error::custom(error.into_message()))
    }
}

/// A whole number of milliseconds within bounds.
pub struct MillisOption<const MIN: u64, const MAX: u64>(pub u64);

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for MillisOption<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let millis = u64::deserialize(deserializer)?;
        if (MIN..=MAX).contains(&millis) {
            return Ok(Self(millis));
        }
        let expected = format!("a whole number of milliseconds, from {MIN} to {MAX}");
        Err(de::Error::invalid_value(serde::de::Unexpected::Unsigned(millis), &expected.as_str()))
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

/// Reads an option that differs when it is absent and when it is null.
pub fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
