//! Pages of the audit table.

use super::context::StoreContext;
use super::payloads::AuditPayloads;
use crate::error::{ErrorCode, Result};
use crate::history::write_payload;
use crate::json::{ArrayWriter, ObjectWriter};
use crate::store::{AuditQuery, AuditRow, Record, RecordKind, open_record};
use crate::tool::ToolInvocation;

/// A page of a list.
pub struct JsonPage {
    /// Its items, a JSON array.
    pub items: String,
    /// Where the next page begins, if there is one.
    pub cursor: Option<String>,
}

/// Returns a page of the audit table, the newest rows first: with arguments and results if `payload` is set. `message`:
/// the id of the message whose rows are wanted.
///
/// # Errors
/// The store's own.
pub async fn audit_page(
    context: &StoreContext,
    query: &AuditQuery,
    (message, payload): (Option<&str>, bool),
) -> Result<JsonPage> {
    let found = context.audit_pages.read(&*context.store, query, message).await?;
    let rows = audit_rows(context, &found.items)?;
    // Taken, not borrowed: another query may come while this one reads.
    let mut payloads = if payload { context.payloads.take() } else { AuditPayloads::default() };
    if payload {
        payloads.read(&*context.store, context.settings.seed, &rows).await?;
    }
    let mut items = String::new();
    let mut array = ArrayWriter::new(&mut items);
    for (session, row) in &rows {
        array.object(|out| write_row(out, session, row, payloads.call(session, row).as_ref()));
    }
    array.end();
    if payload && found.cursor.is_some() {
        payloads.keep_for_next_page();
        context.payloads.replace(payloads);
    }
    Ok(JsonPage { items, cursor: found.cursor })
}

/// Decodes the rows. Reports rows that cannot be read.
///
/// # Errors
/// `wrong_key`: all rows of the session are encrypted then.
fn audit_rows<'r>(context: &StoreContext, found: &'r [(String, Record)]) -> Result<Vec<(&'r str, AuditRow)>> {
    let mut rows = Vec::new();
    for (session, record) in found {
        match open_record::<AuditRow>(RecordKind::Audit, &record.value) {
            Ok(row) => rows.push((session.as_str(), row)),
            Err(error) if error.code == ErrorCode::WrongKey => return Err(error),
            Err(error) => context.report_unreadable(format!(
                "audit row {} of session \"{session}\" cannot be read: {}",
                record.key, error.message
            )),
        }
    }
    Ok(rows)
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
