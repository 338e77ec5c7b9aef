//! Checks of pages through the audit table, the newest rows first (R13, R63).

use super::context::{StoreCheckContext, batch, ensure};
use super::observed_store::ObservedStore;
use crate::error::{Error, ErrorCode, Result};
use crate::store::{AuditPages, AuditQuery, AuditRow, Page, Record};

const SESSIONS: u64 = 6;
const ROWS: u64 = 20;

/// Writes sessions whose rows alternate in time, four calls a message. Returns the name of their tool and, the newest
/// first, their sessions, numbers and messages.
async fn write_rows(context: &StoreCheckContext) -> Result<(String, Vec<(String, u64, String)>)> {
    let tool = context.session("tool");
    let mut written = Vec::new();
    for session in 0..SESSIONS {
        let id = context.session(&session.to_string());
        let mut records = Vec::new();
        for number in 0..ROWS {
            let at = 1000_u64.saturating_add(number.saturating_mul(SESSIONS)).saturating_add(session);
            let message_id = format!("message {}", number / 4);
            let row = AuditRow {
                id: format!("{id} {number}"),
                name: tool.clone(),
                number,
                message_id: message_id.clone(),
                stored_at: at,
                ..AuditRow::default()
            };
            records.push(row.record());
            written.push((at, (id.clone(), number, message_id)));
        }
        context.written(&id, 0, batch(b"h", records)).await?;
    }
    written.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    Ok((tool, written.into_iter().map(|(_, row)| row).collect()))
}

fn places(page: &Page<(String, Record)>) -> impl Iterator<Item = (String, u64)> {
    page.items.iter().map(|(session, record)| (session.clone(), record.key))
}

pub(super) async fn pages_of_audit_rows_cost_what_their_rows_cost(context: &StoreCheckContext) -> Result<()> {
    let (tool, want) = write_rows(context).await?;
    let want: Vec<_> = want.into_iter().map(|(session, number, _)| (session, number)).collect();
    let store = ObservedStore::new(&context.store);
    let pages = AuditPages::default();
    let mut query = AuditQuery { tool: Some(tool), limit: 5, ..AuditQuery::default() };
    let (mut got, mut count) = (Vec::new(), 0_usize);
    loop {
        let page = pages.read(&store, &query, None).await?;
        got.extend(places(&page));
        count = count.saturating_add(1);
        ensure!(count <= want.len(), "the pages do not end");
        if page.cursor.is_none() {
            break;
        }
        query.cursor = page.cursor;
    }
    ensure!(got == want, "the pages gave {got:?}, and should give {want:?}");
    let (rows, calls) = (store.records.get(), store.reads.get());
    ensure!(rows <= want.len().saturating_mul(3), "{} rows in {count} pages were read as {rows}", want.len());
    ensure!(calls <= want.len().saturating_mul(2), "{} rows in {count} pages took {calls} calls", want.len());
    // A later page without the first, as another process reads it.
    query.cursor =
        AuditPages::default().read(&store, &AuditQuery { cursor: None, ..query.clone() }, None).await?.cursor;
    let second = AuditPages::default().read(&store, &query, None).await?;
    ensure!(places(&second).eq(want.iter().skip(5).take(5).cloned()), "a second page is another one elsewhere");
    Ok(())
}

pub(super) async fn pages_of_a_messages_calls_are_full(context: &StoreCheckContext) -> Result<()> {
    let (tool, rows) = write_rows(context).await?;
    let message = "message 1";
    let want: Vec<_> =
        rows.into_iter().filter(|(.., of)| of == message).map(|(session, number, _)| (session, number)).collect();
    for limit in [1, 5, 24, 1000] {
        let pages = AuditPages::default();
        let mut query = AuditQuery { tool: Some(tool.clone()), limit, ..AuditQuery::default() };
        let mut got = Vec::new();
        loop {
            let page = pages.read(&*context.store, &query, Some(message)).await?;
            let is_full = page.items.len() == limit;
            ensure!(is_full || page.cursor.is_none(), "a page of {limit} rows has {}", page.items.len());
            got.extend(places(&page));
            if page.cursor.is_none() {
                break;
            }
            query.cursor = page.cursor;
        }
        ensure!(got == want, "in pages of {limit} the calls of a message are {got:?}, and should be {want:?}");
    }
    let one = AuditQuery { session: Some(context.session("2")), limit: 2, ..AuditQuery::default() };
    let page = AuditPages::default().read(&*context.store, &one, Some(message)).await?;
    ensure!(places(&page).map(|(_, number)| number).eq([7, 6]), "of one session, the newest calls are others");
    Ok(())
}
