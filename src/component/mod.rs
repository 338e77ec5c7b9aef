//! The WIT component. `wit/` defines its interface. Only this module uses the generated bindings.

mod bindings;
mod finding;
mod stream;
mod wire;

/// The type that implements the exports of the world.
struct Component;
