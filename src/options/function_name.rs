//! Functions of a host that cannot pass any: it names them, and is asked to call them.

use super::callback_numbers::CallbackNumbers;
use super::option_types::FlagOrCallback;
use super::raw_json::RawJson;
use crate::json::JsonKind;
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

impl<'de> Deserialize<'de> for FunctionName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawJson(json) = RawJson::deserialize(deserializer)?;
        let name = json.view().as_text().filter(|name| (1..=MAX_NAME_BYTES).contains(&name.len()));
        let name = name.ok_or_else(|| {
            D::Error::custom(
                "must be the name of a function of the host, which an effect `ask` then has, of 200 bytes at most",
            )
        })?;
        Ok(Self(name.into_owned()))
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
        match (json.view().as_bool(), json.view().kind()) {
            (Some(flag), _) => Ok(Self::Flag(flag)),
            (None, JsonKind::String) => {
                let name = json.view().as_text().unwrap_or_default();
                Ok(Self::Name(FunctionName(name.into_owned())))
            }
            _ => Err(D::Error::custom("must be true, false or the name of a function of the host")),
        }
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
