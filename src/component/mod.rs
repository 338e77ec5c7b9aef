//! The WIT component. `wit/` defines its interface. Only this module uses the generated bindings.
//!
//! With the feature `engine` alone its world is `engine`, with `stored` it keeps sessions through `wasi:keyvalue`, and
//! with neither it has the wire formats only.

mod bindings;
mod finding;
mod stream;
mod wire;

#[cfg(feature = "engine")]
mod sessions;

/// The type that implements the exports of the world.
struct Component;
