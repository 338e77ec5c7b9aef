//! `Session.messages`: pages of stored messages.

use crate::error::{Error, Result};
use crate::session::OpenSession;
use crate::web::conversion::convert::page;
use crate::web::conversion::option_reader::read_optional;
use crate::web::conversion::options::MessagePageOptions;
use wasm_bindgen::JsValue;

/// Returns a page of messages, the newest page first, in order within the page. The cursor is the number of the page's
/// first message.
pub async fn messages(inner: &OpenSession, options: &JsValue) -> Result<JsValue> {
    let options: MessagePageOptions = read_optional("the options", options)?;
    let limit = usize::try_from(options.limit.unwrap_or(100).max(1)).unwrap_or(usize::MAX);
    let before = match options.cursor.map(|cursor| cursor.parse::<u64>()) {
        Some(Err(_)) => return Err(Error::invalid("`cursor` is not one that an earlier page returned")),
        Some(Ok(before)) => before,
        None => u64::MAX,
    };
    Ok(page(&inner.message_page(options.branch.as_deref(), limit, before).await?))
}
