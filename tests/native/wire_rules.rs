//! Validate and repair of request bodies: what other libraries do with broken histories, recorded exchanges with real
//! providers, and properties over generated bodies. The numbered cases are in `wire_cases`.

#![allow(missing_docs)]

mod anthropic;
use crate::any_bodies;
use crate::wire_bodies as bodies;
mod cases;
mod exchanges;
mod foreign;
mod gemini;
mod prefill;
mod properties;
mod responses;
mod shapes;

pub use bodies::*;
