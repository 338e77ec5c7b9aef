//! What the platform holds for this instance of the wasm: locks, channels, connections.
//!
//! An instance that stops in a trap drops nothing. So each hold is known to the facade, too, which then releases it.

use super::convert::member;
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

/// Something that the platform holds, until this is dropped. Whoever holds it releases it; the facade does where that cannot be.
pub struct PlatformHold {
    release: Function,
}

impl PlatformHold {
    /// A hold that ends by calling `release`.
    pub fn new(release: Function) -> Self {
        if let Some(releases) = releases() {
            releases.add(&release);
        }
        Self { release }
    }

    /// A hold that ends by the object's method `close`.
    pub fn closing(object: &JsValue) -> Option<Self> {
        let close: Function = member(object, "close").dyn_into().ok()?;
        Some(Self::new(close.bind0(object)))
    }
}

impl Drop for PlatformHold {
    fn drop(&mut self) {
        if let Some(releases) = releases() {
            releases.delete(&self.release);
        }
    }
}
