//! The JavaScript classes, for browsers, Node and Workers. Nothing outside of this module knows of `JsValue`.
//!
//! With the feature `formats` alone: the functions of bodies and the stream assembler. With `testing`: the conformance suite for stores.
//!
//! No method holds a borrow across an await or while JavaScript runs: a callback may call back.

#[cfg(feature = "web")]
mod answer_broadcast;
#[cfg(feature = "web")]
mod append;
#[cfg(feature = "formats")]
mod assembler;
#[cfg(feature = "web")]
mod audit;
#[cfg(feature = "web")]
mod branches;
#[cfg(feature = "web")]
mod change_feed;
#[cfg(feature = "testing")]
mod conformance;
// Sessions use the rest of it.
#[cfg_attr(not(feature = "web"), allow(dead_code))]
mod convert;
#[cfg(feature = "web")]
mod deferred_saves;
mod error;
#[cfg_attr(not(feature = "web"), allow(dead_code))]
mod foreign;
#[cfg(feature = "web")]
mod idle_merge;
#[cfg(feature = "web")]
mod journals;
#[cfg(feature = "web")]
mod lease;
#[cfg(feature = "web")]
mod listeners;
#[cfg(feature = "web")]
mod live_run;
#[cfg(feature = "web")]
mod message_page;
#[cfg(feature = "web")]
mod offered_effects;
#[cfg(feature = "web")]
mod older_records;
#[cfg(feature = "formats")]
#[cfg_attr(not(feature = "web"), allow(dead_code))]
mod option_reader;
#[cfg(feature = "web")]
mod options;
#[cfg(feature = "web")]
mod owned_runs;
#[cfg(feature = "web")]
mod payloads;
#[cfg(feature = "web")]
mod platform;
#[cfg(any(feature = "web", feature = "testing"))]
#[cfg_attr(not(feature = "web"), allow(dead_code))]
mod promise;
#[cfg(feature = "web")]
mod reducers;
#[cfg(feature = "web")]
mod render;
#[cfg(feature = "web")]
mod results;
#[cfg(feature = "web")]
mod resume;
#[cfg(feature = "web")]
mod rethread;
#[cfg(feature = "web")]
mod rethread_inner;
#[cfg(feature = "web")]
mod run;
#[cfg(feature = "web")]
mod run_context;
#[cfg(feature = "web")]
mod run_inner;
#[cfg(feature = "web")]
mod run_lock;
#[cfg(feature = "web")]
mod run_request;
#[cfg(feature = "web")]
mod run_saves;
#[cfg(feature = "web")]
mod session;
#[cfg(feature = "web")]
mod session_inner;
#[cfg(feature = "web")]
mod shared_task;
#[cfg(feature = "web")]
mod state_bag;
#[cfg(any(feature = "web", feature = "testing"))]
pub mod store;
#[cfg(feature = "web")]
mod store_context;
#[cfg(feature = "web")]
mod tab_channel;
#[cfg(any(feature = "web", feature = "testing"))]
mod trap_cleanup;
#[cfg(feature = "web")]
mod unfinished_run;
#[cfg(feature = "web")]
mod unfinished_runs;
#[cfg(feature = "web")]
mod view;
#[cfg(feature = "web")]
mod view_state;
#[cfg(feature = "formats")]
mod wire;
#[cfg(feature = "web")]
mod write_queue;
