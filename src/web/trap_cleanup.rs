//! Registers the platform resources of this wasm instance (locks, channels, connections) with the facade.
//!
//! An instance that traps runs no destructors, so the facade releases the registered resources then.

use crate::web::conversion::untrusted_value::member;
use js_sys::{Function, Set};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use wasm_bindgen::prelude::*;

thread_local! {
    // Not dropped: the thread lives as long as the instance.
    static RELEASES: ManuallyDrop<RefCell<Option<Set>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

/// Names the set of functions that the facade calls when this instance stops. Called once, as the instance starts.
#[wasm_bindgen(js_name = setReleases, skip_typescript)]
pub fn set_releases(releases: Set) {
    RELEASES.with(|own| *own.borrow_mut() = Some(releases));
}

fn releases() -> Option<Set> {
    RELEASES.with(|own| own.borrow().clone())
}

/// The registration of a resource, removed on drop. The owner releases the resource itself; the facade does so after a
/// trap.
pub struct TrapCleanup {
    release: Function,
}

impl TrapCleanup {
    /// A hold that ends by calling `release`.
    pub fn new(release: Function) -> Self {
        if let Some(releases) = releases() {
            releases.add(&release);
        }
        Self { release }
    }

    /// A hold that ends by the object's method `close`.
    pub fn closing(object: &JsValue) -> Option<Self> {
        Self::calling(object, "close")
    }

    /// A hold that ends by a method of the object.
    pub fn calling(object: &JsValue, method: &str) -> Option<Self> {
        let method: Function = member(object, method).dyn_into().ok()?;
        Some(Self::new(method.bind0(object)))
    }
}

impl Drop for TrapCleanup {
    fn drop(&mut self) {
        if let Some(releases) = releases() {
            releases.delete(&self.release);
        }
    }
}
