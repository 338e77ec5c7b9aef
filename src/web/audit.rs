//! Pages of the audit table.

use super::convert::page;
use super::option_reader::read_optional;
use super::options::InvocationQuery;
use crate::session::{StoreContext, audit_page};
use crate::store::AuditQuery;
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

/// Maximum number of items of a page.
pub const MAX_PAGE: u64 = 10_000;

fn audit_query(query: InvocationQuery, session: Option<String>) -> AuditQuery {
    let limit = query.limit.unwrap_or(100).clamp(1, MAX_PAGE);
    AuditQuery {
        session: session.or(query.session),
        status: query.status.map(|option| option.0.as_str().to_owned()),
        tool: query.tool,
        channel: query.channel,
        since: query.since,
        until: query.until,
        cursor: query.cursor,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    }
}
