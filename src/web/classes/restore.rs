//! Archives, as `restore` and `importSession` store them, and copies of sessions.

use super::open_store::WebStore;
use crate::error::Result;
use crate::session::{OpenSession, copy_session, restore_archive};
use crate::store::SessionArchive;
use crate::web::conversion::option_reader::read_optional;
use crate::web::conversion::options::{CopyOptions, RestoreOptions};
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

/// Copies a session and opens the copy.
///
/// # Errors
/// `not_found` for a session or message that is not stored; `conflict` if a session of the copy's id exists; the store's
/// own.
pub async fn copy(store: &WebStore, session: &str, options: &JsValue) -> Result<Rc<OpenSession>> {
    let CopyOptions { until, id } = read_optional("the options", options)?;
    let open = store.open.session(session);
    let id = copy_session(&store.open.context, (open.as_deref(), session), until, id).await?;
    store.open_session(&id, &JsValue::UNDEFINED).await
}
