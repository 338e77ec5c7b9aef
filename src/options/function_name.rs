//! Functions of a host that cannot pass any: it names them, and is asked to call them.

use super::json_reader::RawJson;
use super::option_types::FlagOrCallback;
use crate::json::JsonKind;
use crate::replay::Callback;
use serde::{Deserialize, Deserializer, de::Error as _};
use std::cell::RefCell;
use std::rc::Rc;

/// Maximum number of names that have one number each. What a reducer with a known name has counted is kept.
const MAX_NUMBERED_NAMES: usize = 32;

/// Maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The name of a function of the host.
pub struct FunctionName(pub String);

/// A flag, or the name of a function that returns one.
pub enum FlagOrName {
    Flag(bool),
    Name(FunctionName),
}

/// The numbers of the newest names.
#[derive(Default)]
struct NameNumbers {
    last: u32,
    names: Vec<(u32, String)>,
}

thread_local! {
    static NAME_NUMBERS: RefCell<NameNumbers> = RefCell::default();
}

impl NameNumbers {
    fn of(&mut self, name: &str) -> u32 {
        if let Some((number, _)) = self.names.iter().find(|(_, numbered)| numbered == name) {
            return *number;
        }
        if self.names.len() >= MAX_NUMBERED_NAMES {
            self.names.remove(0);
        }
        self.last += 1;
        self.names.push((self.last, name.to_owned()));
        self.last
    }
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
        let id = NAME_NUMBERS.with(|numbers| numbers.borrow_mut().of(&name.0));
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
