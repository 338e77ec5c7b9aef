//! The result of `Session.branches`.

use super::results::{BranchResult, result_to_js};
use crate::session::{Branch, MAIN_BRANCH};
use wasm_bindgen::JsValue;

/// Converts the branches of a session.
pub fn branches_to_js(branches: Vec<Branch>) -> JsValue {
    let results: Vec<_> = branches
        .into_iter()
        .map(|Branch { id, is_conflict, forked_after, created_at, message_count }| BranchResult {
            branch: id,
            kind: if is_conflict { "conflict" } else { "main" },
            parent: is_conflict.then_some(MAIN_BRANCH),
            forked_after,
            created_at,
            message_count,
        })
        .collect();
    result_to_js(&results)
}
