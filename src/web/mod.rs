//! The JavaScript classes, for browsers, Node and Workers. Nothing outside of this module knows of `JsValue`.
//!
//! No method holds a borrow across an await or while JavaScript runs: a callback may call back.

mod append;
mod assembler;
mod convert;
mod engine;
mod error;
mod options;
mod pending;
mod platform;
mod promise;
mod reducers;
mod render;
mod rethread;
mod run;
mod run_request;
mod session;
mod state_bag;
pub mod store;
mod view;
mod wire;
mod write_queue;
