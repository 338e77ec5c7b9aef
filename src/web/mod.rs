//! What only a JavaScript host can do: nothing outside of this module knows of `JsValue`.

pub mod store;
