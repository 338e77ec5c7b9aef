//! The WIT component: `wit/` says what it exports. Nothing outside of this module knows of the generated bindings.

mod bindings;
mod finding;
mod stream;
mod wire;

/// What the world's exports are defined on.
struct Component;
