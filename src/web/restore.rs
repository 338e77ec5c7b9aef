//! Archives, as `restore` and `importSession` store them.

use super::open_store::WebStore;
use super::option_reader::read_optional;
use super::options::RestoreOptions;
use crate::error::Result;
use crate::session::{OpenSession, restore_archive};
use crate::store::SessionArchive;
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// Stores an archive under its id, or the one in the options, and opens the session.
///
/// # Errors
/// `conflict` if a session of this id exists; the store's own.
pub async fn restore(store: &WebStore, archive: SessionArchive, options: &JsValue) -> Result<Rc<OpenSession>> {
    let RestoreOptions { id } = read_optional("the options", options)?;
    let id = restore_archive(&store.open.context, archive, id).await?;
    store.open_session(&id, &JsValue::UNDEFINED).await
}
