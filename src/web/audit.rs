//! Pages of the audit table.

use super::convert::page;
use super::option_reader::read_optional;
use super::options::InvocationQuery;
use crate::history::write_payload;
use crate::json::{ArrayWriter, ObjectWriter};
use crate::session::{AuditPayloads, StoreContext};
use crate::store::{AuditQuery, AuditRow, Record, RecordKind, open_record};
use crate::tool::ToolInvocation;
use js_sys::Promise;
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// Returns a page of the audit table, the newest rows first: of `session`, or of all sessions that the query selects.
pub fn audit_page(context: &Rc<StoreContext>, query: JsValue, session: Option<String>) -> Promise {
    let shared = context.clone();
    context.promise(async move {
        let mut query: InvocationQuery = read_optional("the query", &query)?;
        let message = query.message_id.take();
        let payload = query.payload.unwrap_or(false);
        let wanted = audit_query(query, session);
        let found = shared.audit_pages.read(&*shared.store, &wanted, message.as_deref()).await?;
        let rows = audit_rows(&shared, &found.items);
        // Taken, not borrowed: another query may come while this one reads.
        let mut payloads = if payload { shared.payloads.take() } else { AuditPayloads::default() };
        if payload {
            payloads.read(&*shared.store, shared.settings.seed, &rows).await?;
        }
        let mut items = String::new();
        let mut array = ArrayWriter::new(&mut items);
        for (session, row) in &rows {
            array.object(|out| write_row(out, session, row, payloads.call(session, row).as_ref()));
        }
        array.end();
        if payload && found.cursor.is_some() {
            payloads.keep_for_next_page();
            shared.payloads.replace(payloads);
        }
        Ok(page(&items, found.cursor.as_deref()))
    })
}

/// Decodes the rows. Reports rows that cannot be read.
fn audit_rows<'r>(context: &StoreContext, found: &'r [(String, Record)]) -> Vec<(&'r str, AuditRow)> {
    let mut rows = Vec::new();
    for (session, record) in found {
        match open_record::<AuditRow>(RecordKind::Audit, &record.value) {
            Ok(row) => rows.push((session.as_str(), row)),
            Err(error) => context.report_unreadable(format!(
                "audit row {} of session \"{session}\" cannot be read: {}",
                record.key, error.message
            )),
        }
    }
    rows
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

fn write_row(out: &mut ObjectWriter<'_>, session: &str, row: &AuditRow, call: Option<&ToolInvocation>) {
    out.text("id", &row.id)
        .text("sessionId", session)
        .text("messageId", &row.message_id)
        .number("turn", u64::from(row.turn))
        .text("callId", &row.call_id)
        .text("name", &row.name)
        .number("roundIndex", u64::from(row.round))
        .number("sequenceIndex", u64::from(row.place))
        .text("status", row.status.as_str())
        .number_or_null("startedAt", row.started_at)
        .number_or_null("finishedAt", row.finished_at)
        .bool("redacted", row.redacted)
        .text_or_null("channel", row.channel.as_deref());
    if let Some(call) = call {
        write_payload(out, call);
    }
}
