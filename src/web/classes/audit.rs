//! Pages of the audit table.

use crate::options::{InvocationQuery, audit_query};
use crate::session::{StoreContext, audit_page};
use crate::web::conversion::convert::page;
use crate::web::conversion::option_reader::read_optional;
use js_sys::Promise;
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// Returns a page of the audit table, the newest rows first: of `session`, or of all sessions that the query selects.
pub fn invocations(context: &Rc<StoreContext>, query: JsValue, session: Option<String>) -> Promise {
    let shared = context.clone();
    context.promise(async move {
        let mut query: InvocationQuery = read_optional("the query", &query)?;
        let (message, payload) = (query.message_id.take(), query.payload.unwrap_or(false));
        let found = audit_page(&shared, &audit_query(query, session), (message.as_deref(), payload)).await?;
        Ok(page(&found))
    })
}
