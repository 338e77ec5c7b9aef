//! Functions of a host that cannot pass any: it names them, and is asked to call them.

use super::callback_numbers::CallbackNumbers;
use super::option_types::FlagOrCallback;
use super::raw_json::RawJson;
use crate::json::Json;
use crate::replay::Callback;
use serde::{Deserialize, Deserializer, de::Error as _};
use std::cell::RefCell;
use std::rc::Rc;

/// Maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The name of a function of the host.
pub struct FunctionName(pub String);

/// A flag, or the name of a function that returns one.
pub enum FlagOrName {
    Flag(bool),
    Name(FunctionName),
}

thread_local! {
    static NUMBERS: RefCell<CallbackNumbers<String>> = const { RefCell::new(CallbackNumbers::new()) };
}

impl FunctionName {
    fn read(json: &Json) -> Option<Self> {
        let name = json.view().as_text().filter(|name| (1..=MAX_NAME_BYTES).contains(&name.len()))?;
        Some(Self(name.into_owned()))
    }
}

impl<'de> Deserialize<'de> for FunctionName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawJson(json) = RawJson::deserialize(deserializer)?;
        Self::read(&json).ok_or_else(|| {
            D::Error::custom(
                "must be the name of a function of the host, which an effect `ask` then has, of 200 bytes at most",
            )
        })
    }
}

impl From<FunctionName> for Callback {
    fn from(name: FunctionName) -> Self {
        let id = NUMBERS.with(|numbers| numbers.borrow_mut().number_of(name.0.clone()));
        Self { id, hook: Rc::new(name) }
    }
}

impl<'de> Deserialize<'de> for FlagOrName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawJson(json) = RawJson::deserialize(deserializer)?;
        // A flag that was written as a text is a mistake, and no name.
        let name = FunctionName::read(&json).filter(|name| !matches!(name.0.as_str(), "true" | "false"));
        let flag_or_name = json.view().as_bool().map(Self::Flag).or(name.map(Self::Name));
        flag_or_name.ok_or_else(|| D::Error::custom("must be true, false or the name of a function of the host"))
    }
}

impl From<FlagOrName> for FlagOrCallback {
    fn from(given: FlagOrName) -> Self {
        match given {
            FlagOrName::Flag(flag) => Self::Flag(flag),
            FlagOrName::Name(name) => Self::Callback(name.into()),
        }
    }
}
