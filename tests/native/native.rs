//! The native tests, as one program. Those of wasm_bindgen_test run in wasm, too.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod background_service;
mod binding_provider;
mod conversation_service;
mod damaged_heads;
mod interaction_service;
mod owners;
mod replay_cases;
mod runs;
mod scripted_host;
mod scripted_interactions;
mod scripted_model;
mod scripted_responses;
mod session_log;
mod sessions;
mod spy_store;
mod stateful_service;
mod thread_service;
mod virtual_host;

#[cfg(not(target_arch = "wasm32"))]
mod any_bodies;
#[cfg(not(target_arch = "wasm32"))]
mod bodies;
#[cfg(not(target_arch = "wasm32"))]
mod codes;
#[cfg(not(target_arch = "wasm32"))]
mod conversations;
#[cfg(not(target_arch = "wasm32"))]
mod convert;
#[cfg(not(target_arch = "wasm32"))]
mod convert_members;
#[cfg(not(target_arch = "wasm32"))]
mod event_frames;
#[cfg(not(target_arch = "wasm32"))]
mod exchanges;
#[cfg(not(target_arch = "wasm32"))]
mod external_loops;
#[cfg(not(target_arch = "wasm32"))]
mod fuzz_replay;
#[cfg(not(target_arch = "wasm32"))]
mod gemini;
#[cfg(not(target_arch = "wasm32"))]
mod interactions;
#[cfg(not(target_arch = "wasm32"))]
mod interactions_answers;
#[cfg(not(target_arch = "wasm32"))]
mod interactions_rules;
#[cfg(not(target_arch = "wasm32"))]
mod memory_store;
#[cfg(not(target_arch = "wasm32"))]
mod pairing;
#[cfg(not(target_arch = "wasm32"))]
mod persistence_cases;
#[cfg(not(target_arch = "wasm32"))]
mod remote_store;
#[cfg(not(target_arch = "wasm32"))]
mod responses;
#[cfg(not(target_arch = "wasm32"))]
mod rule_pages;
#[cfg(not(target_arch = "wasm32"))]
mod simulation;
#[cfg(not(target_arch = "wasm32"))]
mod stored_histories;
#[cfg(not(target_arch = "wasm32"))]
mod stored_types;
#[cfg(not(target_arch = "wasm32"))]
mod streams;
#[cfg(not(target_arch = "wasm32"))]
mod trajectories;
#[cfg(not(target_arch = "wasm32"))]
mod wire_bodies;
#[cfg(not(target_arch = "wasm32"))]
mod wire_cases;
#[cfg(not(target_arch = "wasm32"))]
mod wire_rules;
#[cfg(not(target_arch = "wasm32"))]
mod wire_talk;

#[cfg(not(target_arch = "wasm32"))]
#[path = "../servers/encrypted_store.rs"]
mod encrypted_store;
#[cfg(not(target_arch = "wasm32"))]
#[path = "../servers/kv_store.rs"]
mod kv_store;
#[cfg(not(target_arch = "wasm32"))]
#[path = "../servers/sql_store.rs"]
mod sql_store;
