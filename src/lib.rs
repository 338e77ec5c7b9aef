//! The history layer of chats that call tools.
//!
//! rethread stores chat sessions, builds from them a request body that the model provider accepts, and steps a *run*
//! from one model call to the next. It performs no I/O except through the stores: a host sends the requests and
//! executes the tools.
//!
//! A provider rejects a chat whose tool calls and results do not match. [`provider::repair`] fixes such a body; here, a
//! call that never got a result:
//!
//! ```
//! use rethread::finding::FindingCode;
//! use rethread::message::Dialect;
//! use rethread::provider::{RepairOptions, repair, validate};
//!
//! let body = br#"{"model":"gpt-5","messages":[
//!     {"role":"user","content":"What time is it?"},
//!     {"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"now","arguments":"{}"}}]},
//!     {"role":"user","content":"Hello?"}]}"#;
//!
//! let (repaired, report) = repair(body, Dialect::OpenAiChat, &RepairOptions::default())?;
//! assert!(report.iter().any(|finding| finding.code == FindingCode::DanglingCall));
//! assert!(validate(&repaired, Dialect::OpenAiChat).is_empty());
//! # Ok::<(), rethread::Error>(())
//! ```
//!
//! The modules, from the bottom up:
//!
//! | module | task |
//! |---|---|
//! | [`json`] | JSON that keeps digits, duplicate keys and escapes |
//! | [`message`], [`tool`], [`session_head`], [`branch_path`] | data types: messages, tool calls with their results, a session's head, its branches |
//! | [`synthetic_result`] | the texts that stand for results that are missing or left out |
//! | [`error`], [`finding`] | errors and findings with stable codes |
//! | [`encoding`] | the CBOR encoding of stored values |
//! | [`clock`], [`id`] | time and ids, injected by the host |
//! | [`history`] | folds log entries into messages and calls; joins results to their calls |
//! | [`replay`] | selects and rewrites the history that the model sees: freshness, citations, reducers, pairing |
//! | [`owner`] | who owns the conversation's state, and what a service that does has not acknowledged |
//! | [`provider`] | the wire formats: rules, decoders, encoders, streams |
//! | [`store`] | stored sessions: the `LogStore` contract, the session log, the record encoding |
//! | [`render`] | composes request bodies from replayed messages; caches their encodings |
//! | [`run`] | the run state machine, its journal and its effects |
//! | [`session`] | open sessions, as every binding has them |
//! | `options` | the options of sessions and runs, as every binding reads them |
//! | `web`, `component` | the JavaScript and the WIT binding, each behind a feature |
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

#[cfg(all(any(feature = "formats", feature = "stores"), feature = "component"))]
compile_error!("the features `web` (or `formats`) and `component` are bindings for two hosts; enable one of them");

pub mod branch_path;
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
#[cfg(any(feature = "formats", feature = "engine"))]
// Of two bindings each uses a part of it.
#[cfg_attr(not(feature = "web"), allow(dead_code, unused_imports))]
mod options;
pub mod owner;
pub mod provider;
pub mod render;
pub mod replay;
pub mod run;
pub mod session;
pub mod session_head;
pub mod store;
pub mod synthetic_result;
pub mod term_filter;
pub mod tool;
#[cfg(any(feature = "formats", feature = "stores", feature = "testing"))]
pub mod web;

pub use error::{Error, ErrorCode, Result};
