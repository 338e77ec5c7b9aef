//! The result of `Session.branches`.

use crate::session::Branch;
use crate::web::conversion::results::{BranchResult, result_to_js};
use wasm_bindgen::JsValue;

/// Converts the branches of a session.
pub fn branches_to_js(branches: Vec<Branch>) -> JsValue {
    let results: Vec<_> = branches
        .into_iter()
        .map(|Branch { id, kind, parent, forked_after, created_at, message_count, adopted, is_damaged }| BranchResult {
            branch: id,
            kind: kind.as_str(),
            parent,
            forked_after,
            created_at,
            message_count,
            adopted,
            damaged: is_damaged,
        })
        .collect();
    result_to_js(&results)
}
