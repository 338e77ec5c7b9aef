//! The IndexedDB store in a worker, under the suite that every store passes.
#![cfg(target_arch = "wasm32")]

mod support;

use rethread::web::store::Durability;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_dedicated_worker);

#[wasm_bindgen_test]
async fn r46_indexed_db_conforms_in_a_worker() {
    support::conforms("r46-worker", Durability::Relaxed, false).await;
}
