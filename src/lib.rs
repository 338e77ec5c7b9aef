//! The history layer for chats that call tools.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

#[cfg(all(feature = "formats", feature = "component"))]
compile_error!("`web` (or `formats`) and `component` are two hosts: build for one of them");

pub mod clock;
#[cfg(feature = "component")]
pub mod component;
pub mod encoding;
pub mod error;
pub mod finding;
pub mod history;
pub mod id;
pub mod json;
pub mod message;
pub mod provider;
pub mod render;
pub mod replay;
pub mod run;
pub mod session_head;
pub mod sorted;
pub mod store;
pub mod text;
pub mod tool;
#[cfg(feature = "formats")]
pub mod web;

pub use error::{Code, Error, Result};
