//! The JavaScript classes, for browsers, Node and Workers. Nothing outside of this module knows of `JsValue`.
//!
//! With the feature `formats` alone: the functions of bodies and the stream assembler. With `stores`: SQL and key-value
//! stores, a program of its own. With `testing`: the conformance suite for stores.
//!
//! No method holds a borrow across an await or while JavaScript runs: a callback may call back.

#[cfg(feature = "formats")]
mod assembler;
#[cfg(feature = "web")]
mod classes;
#[cfg(feature = "testing")]
mod conformance;
mod conversion;
#[cfg(feature = "stores")]
mod driver_store;
mod error;
#[cfg(feature = "web")]
mod host;
#[cfg(any(feature = "web", feature = "stores", feature = "testing"))]
#[cfg_attr(not(feature = "web"), allow(dead_code))]
mod promise;
#[cfg(any(feature = "web", feature = "stores", feature = "testing"))]
pub mod store;
#[cfg(any(feature = "web", feature = "stores", feature = "testing"))]
#[cfg_attr(not(feature = "web"), allow(dead_code))]
mod time_limit;
#[cfg(any(feature = "web", feature = "stores", feature = "testing"))]
mod trap_cleanup;
#[cfg(feature = "formats")]
mod wire;
