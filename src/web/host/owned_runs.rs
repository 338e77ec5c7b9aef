//! The runs under way in this process, as the driver of a database that nobody else can have open keeps them.
//!
//! A Durable Object is the only user of its storage. So a run that is not under way in it was cut off, whatever its
//! lease says, and a new instance of the object resumes it at once. The set is the driver's: several open stores of one
//! object share it.

use crate::error::{Error, ErrorCode, Result};
use crate::web::conversion::untrusted_value::get;
use crate::web::trap_cleanup::TrapCleanup;
use js_sys::Function;
use wasm_bindgen::prelude::*;

/// A driver's `ownedRuns`.
#[derive(Clone)]
pub struct OwnedRuns {
    names: JsValue,
    has: Function,
    add: Function,
    delete: Function,
}

impl OwnedRuns {
    /// Reads a driver's `ownedRuns`, if it has one.
    ///
    /// # Errors
    /// `config_invalid` if it is no set.
    pub fn of_driver(driver: &JsValue) -> Result<Option<Self>> {
        let config = |error: Error| Error::config(error.into_message());
        let names = get(driver, "ownedRuns").map_err(config)?;
        if names.is_undefined() || names.is_null() {
            return Ok(None);
        }
        let method = |name: &str| {
            let found = if names.is_object() { get(&names, name).map_err(config)? } else { JsValue::UNDEFINED };
            found
                .dyn_into::<Function>()
                .map_err(|_| Error::config("`store`: a driver's `ownedRuns` must be a Set of strings"))
        };
        let (has, add, delete) = (method("has")?, method("add")?, method("delete")?);
        Ok(Some(Self { names, has, add, delete }))
    }

    /// Returns true if a run of this name is under way.
    pub fn has(&self, name: &str) -> bool {
        // A set that throws is not this library's: then the head's epoch alone excludes a second holder.
        self.has.call1(&self.names, &JsValue::from_str(name)).is_ok_and(|has| has.is_truthy())
    }

    /// Registers a run; none if it is under way already.
    ///
    /// # Errors
    /// `store_error` if the set throws.
    pub fn register(&self, name: &str) -> Result<Option<RegisteredRun>> {
        if self.has(name) {
            return Ok(None);
        }
        let name = JsValue::from_str(name);
        if self.add.call1(&self.names, &name).is_err() {
            return Err(Error::new(ErrorCode::StoreError, "the driver's `ownedRuns` threw; it is a Set of strings"));
        }
        let remove: Function = self.delete.bind1(&self.names, &name).unchecked_into();
        Ok(Some(RegisteredRun { _cleanup: TrapCleanup::new(remove.clone()), remove }))
    }
}

/// A run that is registered until this is dropped, or until the instance stops.
pub struct RegisteredRun {
    remove: Function,
    _cleanup: TrapCleanup,
}

impl Drop for RegisteredRun {
    fn drop(&mut self) {
        // A set that throws is not this library's.
        let _ = self.remove.call0(&JsValue::NULL);
    }
}
