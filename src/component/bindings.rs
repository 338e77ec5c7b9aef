//! What wit-bindgen makes of `wit/`: the canonical ABI. Generated at each build, so it is never behind the WIT.
// The ABI is raw pointers; all of it is the generator's, none of it is ours.
#![allow(unsafe_code, missing_docs, clippy::all, clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]

use super::Component;

wit_bindgen::generate!({ path: "wit", world: "formats" });

export!(Component);
