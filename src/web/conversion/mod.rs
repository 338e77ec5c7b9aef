//! Values of JavaScript: options and messages in, results and views out.

// Sessions use the rest of it.
#[cfg_attr(not(feature = "web"), allow(dead_code))]
pub mod convert;
#[cfg(feature = "formats")]
#[cfg_attr(not(feature = "web"), allow(dead_code))]
pub mod option_reader;
#[cfg(feature = "web")]
pub mod options;
#[cfg(feature = "web")]
pub mod results;
#[cfg(feature = "web")]
pub mod run_input;
#[cfg_attr(not(feature = "web"), allow(dead_code))]
pub mod untrusted_value;
#[cfg(feature = "web")]
pub mod view_message;
