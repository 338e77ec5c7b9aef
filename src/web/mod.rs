//! The JavaScript classes, for browsers, Node and Workers. Nothing outside of this module knows of `JsValue`.
//!
//! With the feature `formats` alone: the functions of bodies and the stream assembler. With `stores`: SQL and key-value
//! stores, a program of its own. With `testing`: the conformance suite for stores.
//!
//! No method holds a borrow across an await or while JavaScript runs: a callback may call back.

#[cfg(feature = "formats")]
mod assembler;
#[cfg(feature = "testing")]
mod conformance;
// Sessions use the rest of it.
#[cfg_attr(not(feature = "web"), allow(dead_code))]
mod convert;
#[cfg(feature = "stores")]
mod driver_store;
mod error;
#[cfg(feature = "formats")]
#[cfg_attr(not(feature = "web"), allow(dead_code))]
mod option_reader;
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
#[cfg_attr(not(feature = "web"), allow(dead_code))]
mod untrusted_value;
#[cfg(feature = "formats")]
mod wire;

/// Sessions, runs and the classes for them.
///
/// `path = ""`: the files are in `src/web/` itself. The module exists so that one `cfg` covers them all.
#[cfg(feature = "web")]
#[path = ""]
mod sessions {
    use super::{assembler, convert, option_reader, promise, store, time_limit, trap_cleanup, untrusted_value, wire};

    mod annotations;
    mod answer;
    mod answer_channel;
    mod append;
    mod audit;
    mod backup;
    mod branches;
    mod callbacks;
    mod change_feed;
    mod cipher;
    mod compact_options;
    mod external;
    mod host;
    mod listeners;
    mod message_page;
    mod offered_effects;
    mod open_store;
    mod options;
    mod owned_runs;
    mod platform;
    mod provider_hooks;
    mod render;
    mod restore;
    mod results;
    mod rethread;
    mod run;
    mod run_input;
    mod session;
    mod state_bag;
    mod surface;
    mod tab_channel;
    mod view;
    mod view_message;
    mod view_state;
}
