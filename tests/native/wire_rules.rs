//! Validate and repair of request bodies: what other libraries do with broken histories, recorded exchanges with real
//! providers, and properties over generated bodies. The numbered cases are in `wire_cases`.
#![allow(missing_docs, clippy::disallowed_methods, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "wire_rules/anthropic.rs"]
mod anthropic;
#[path = "any_bodies.rs"]
mod any_bodies;
#[path = "wire_bodies.rs"]
mod bodies;
#[path = "wire_rules/cases.rs"]
mod cases;
#[path = "wire_rules/exchanges.rs"]
mod exchanges;
#[path = "wire_rules/foreign.rs"]
mod foreign;
#[path = "wire_rules/gemini.rs"]
mod gemini;
#[path = "wire_rules/properties.rs"]
mod properties;
#[path = "wire_rules/responses.rs"]
mod responses;
#[path = "wire_rules/shapes.rs"]
mod shapes;

pub use bodies::*;
