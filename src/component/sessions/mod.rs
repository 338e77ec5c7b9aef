//! The interface `sessions`: sessions and runs without I/O.
//!
//! [`EngineResource`] is what the host holds. Each call of `step` runs the tasks of its [`Executor`](executor::Executor)
//! until none can go on: commands, operations of the store, the driver's background work.

mod commands;
#[cfg(all(feature = "stored", feature = "conformance"))]
mod conformance;
#[cfg(not(feature = "stored"))]
mod effect_store;
// With `stored` no operation of the store is one.
#[cfg_attr(feature = "stored", allow(dead_code))]
mod effects;
mod engine;
mod executor;
mod host;
mod json_bytes;
#[cfg(feature = "stored")]
mod keyvalue;
mod questions;
mod random;
mod render;
mod results;
mod runs;
#[cfg(not(feature = "stored"))]
mod store_data;

pub use engine::EngineResource;

/// The generated types of the interface.
use super::bindings::exports::rethread::history::sessions as wit;

impl wit::Guest for super::Component {
    type Engine = EngineResource;
}
