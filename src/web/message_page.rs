//! `Session.messages`: pages of stored messages.

use super::convert::page;
use super::option_reader::read_optional;
use super::options::MessagePageOptions;
use crate::error::{Error, Result};
use crate::history::{History, MessageFormat, MessageWriter};
use crate::json::ArrayWriter;
use crate::session::{MAIN_BRANCH, OpenSession, branch_log};
use wasm_bindgen::JsValue;

/// Returns a page of messages, the newest page first, in order within the page. The cursor is the number of the page's first message.
pub async fn messages(inner: &OpenSession, options: &JsValue) -> Result<JsValue> {
    let options: MessagePageOptions = read_optional("the options", options)?;
    let limit = usize::try_from(options.limit.unwrap_or(100).max(1)).unwrap_or(usize::MAX);
    let before = match options.cursor.map(|cursor| cursor.parse::<u64>()) {
        Some(Err(_)) => return Err(Error::invalid("`cursor` is not one that an earlier page returned")),
        Some(Ok(before)) => before,
        None => u64::MAX,
    };
    if let Some(branch) = options.branch.filter(|branch| branch != MAIN_BRANCH) {
        let log = branch_log(inner, &branch).await?;
        return Ok(message_page(&inner.id, &log.history, limit, before));
    }
    // The newest page is there before older records are, with the message before it.
    if before != u64::MAX || inner.log.borrow().history.messages().len() <= limit {
        inner.read_readable().await?;
    }
    Ok(message_page(&inner.id, &inner.log.borrow().history, limit, before))
}

/// Returns the last messages before a number.
fn message_page(session: &str, history: &History, limit: usize, before: u64) -> JsValue {
    let all = history.messages();
    let end = all.partition_point(|message| message.seq < before);
    let start = end.saturating_sub(limit);
    let writer = MessageWriter { history, session, format: MessageFormat::WithCalls };
    let mut items = String::new();
    let mut array = ArrayWriter::new(&mut items);
    let mut before = start.checked_sub(1).and_then(|at| all.get(at)).map(|message| message.id.as_str());
    for message in all.get(start..end).unwrap_or(&[]) {
        array.object(|out| writer.write(out, message, before));
        before = Some(&message.id);
    }
    array.end();
    let first = all.get(start).filter(|_| start > 0);
    let cursor = first.map(|message| message.seq.to_string());
    page(&items, cursor.as_deref())
}
