//! Pages of the audit table over any store, the newest rows first. A store without an index of times is read once for
//! all pages of a query, not once for each (R13, R63).

use super::audit::AuditRow;
use super::newest::{AuditPosition, NewestRows, SCANNED_ROWS};
use super::record::{RecordKind, open_record};
use super::{AuditQuery, LogStore, PAGE, Page, Query, Record, Table};
use crate::clock::Ms;
use crate::error::Result;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The most queries whose order of rows is kept.
const KEPT_ORDERS: usize = 64;

/// The most rows in the orders that are kept together; the newest order may have more.
const KEPT_ROWS: usize = 1_000_000;

/// Rows that are read with others although nobody asked for them, if they are between two that somebody did.
const MAX_GAP: u64 = 4;

/// Reads pages of the audit table. Where the store has no index of times, the order of a query's rows is kept in memory
/// (24 bytes a row) from its first page on, for the queries that were used last.
#[derive(Default)]
pub struct AuditPages {
    /// The one that was used last is the last one.
    kept: RefCell<Vec<Rc<RowOrder>>>,
}

/// The order of the rows that a query selects.
struct RowOrder {
    /// Without cursor and limit.
    query: AuditQuery,
    /// The message whose calls are selected, if only one's are.
    message: Option<String>,
    sessions: Vec<String>,
    /// The newest first.
    rows: Vec<RowPlace>,
    /// The number of readers that have begun and not reached the last page.
    readers: Cell<usize>,
}

struct RowPlace {
    at: Ms,
    /// An index into the sessions.
    session: usize,
    key: u64,
}

impl AuditPages {
    /// Returns a page of the rows that the query selects; of the calls of `message` alone, if it is given.
    ///
    /// # Errors
    /// If the store cannot be read; `invalid_input` for a cursor that no page gave.
    pub async fn read(
        &self,
        store: &dyn LogStore,
        query: &AuditQuery,
        message: Option<&str>,
    ) -> Result<Page<(String, Record)>> {
        match (store.newest_invocations(query), message) {
            (Some(page), None) => page.await,
            (Some(_), Some(message)) => page_of_message(store, query, message).await,
            (None, _) => {
                let Some(order) = self.order_of(query, message) else { return self.scan(store, query, message).await };
                let page = order.page(store, query).await?;
                if page.cursor.is_none() {
                    self.end_reading(&order);
                }
                Ok(page)
            }
        }
    }

    /// Returns the order that an earlier page of the query has found.
    fn order_of(&self, query: &AuditQuery, message: Option<&str>) -> Option<Rc<RowOrder>> {
        // The first page reads the rows anew.
        query.cursor.as_ref()?;
        let mut kept = self.kept.borrow_mut();
        let at = kept.iter().position(|order| order.is_of(query, message))?;
        let order = kept.remove(at);
        kept.push(order.clone());
        Some(order)
    }

    /// Notes that a reader has the last page. An order that nobody reads any more is dropped.
    fn end_reading(&self, order: &Rc<RowOrder>) {
        order.readers.set(order.readers.get().saturating_sub(1));
        self.kept.borrow_mut().retain(|kept| !Rc::ptr_eq(kept, order) || kept.readers.get() > 0);
    }

    /// Reads all rows, returns a page of them and keeps the order of the others.
    async fn scan(
        &self,
        store: &dyn LogStore,
        query: &AuditQuery,
        message: Option<&str>,
    ) -> Result<Page<(String, Record)>> {
        let mut newest = NewestRows::new(query)?;
        let mut scan = newest.scan(query);
        let mut rows: BTreeMap<String, Vec<(Ms, u64)>> = BTreeMap::new();
        loop {
            let Page { mut items, cursor } = store.invocations(&scan).await?;
            items.retain(|(session, record)| newest.has_place(session, record) && is_of_message(record, message));
            for (session, record) in &items {
                let time = (record.index.as_ref().map_or(0, |index| index.at), record.key);
                match rows.get_mut(session) {
                    Some(times) => times.push(time),
                    None => _ = rows.insert(session.clone(), vec![time]),
                }
            }
            newest.add(items);
            if cursor.is_none() {
                break;
            }
            scan.cursor = cursor;
        }
        let page = newest.page();
        if page.cursor.is_some() {
            self.keep(RowOrder::new(query, message, rows));
        }
        Ok(page)
    }

    fn keep(&self, order: RowOrder) {
        let mut kept = self.kept.borrow_mut();
        // Those who read the earlier one go on with this one.
        let earlier = kept.iter().position(|other| other.is_of(&order.query, order.message.as_deref()));
        let readers = earlier.map_or(0, |at| kept.remove(at).readers.get());
        order.readers.set(readers.saturating_add(1));
        kept.push(Rc::new(order));
        let mut rows: usize = kept.iter().map(|order| order.rows.len()).sum();
        while kept.len() > 1 && (kept.len() > KEPT_ORDERS || rows > KEPT_ROWS) {
            rows = rows.saturating_sub(kept.remove(0).rows.len());
        }
    }
}

impl RowOrder {
    fn new(query: &AuditQuery, message: Option<&str>, rows: BTreeMap<String, Vec<(Ms, u64)>>) -> Self {
        let mut order = Self {
            query: AuditQuery { cursor: None, limit: 0, ..query.clone() },
            message: message.map(str::to_owned),
            sessions: Vec::with_capacity(rows.len()),
            rows: Vec::new(),
            readers: Cell::new(0),
        };
        for (session, times) in rows {
            let index = order.sessions.len();
            order.rows.extend(times.into_iter().map(|(at, key)| RowPlace { at, session: index, key }));
            order.sessions.push(session);
        }
        // The sessions are in order, so their indexes are, too.
        order.rows.sort_unstable_by_key(|row| std::cmp::Reverse((row.at, row.session, row.key)));
        order
    }

    fn is_of(&self, query: &AuditQuery, message: Option<&str>) -> bool {
        let AuditQuery { session, tool, status, channel, since, until, .. } = query;
        self.message.as_deref() == message
            && (&self.query.session, &self.query.tool, &self.query.status, &self.query.channel)
                == (session, tool, status, channel)
            && (self.query.since, self.query.until) == (*since, *until)
    }

    fn session_of(&self, row: &RowPlace) -> &str {
        self.sessions.get(row.session).map_or("", String::as_str)
    }

    fn compare(&self, row: &RowPlace, position: &AuditPosition) -> Ordering {
        let by_session = || self.session_of(row).cmp(&position.session);
        row.at.cmp(&position.at).then_with(by_session).then_with(|| row.key.cmp(&position.key))
    }

    /// Returns the page after the query's cursor. Rows that are gone, or have moved to the front, are not on it.
    async fn page(&self, store: &dyn LogStore, query: &AuditQuery) -> Result<Page<(String, Record)>> {
        let after = query.cursor.as_deref().map(AuditPosition::from_cursor).transpose()?;
        let is_before = |row: &RowPlace| after.as_ref().is_some_and(|after| self.compare(row, after) != Ordering::Less);
        let mut rest = self.rows.get(self.rows.partition_point(is_before)..).unwrap_or_default();
        let limit = if query.limit == 0 { PAGE } else { query.limit };
        let mut items = Vec::new();
        let mut last = None;
        while items.len() < limit && !rest.is_empty() {
            let (next, others) = rest.split_at(rest.len().min(limit.saturating_sub(items.len())));
            self.read_rows(store, next, &mut items).await?;
            last = next.last();
            rest = others;
        }
        let cursor = last.filter(|_| !rest.is_empty()).map(|row| {
            let session = self.session_of(row).to_owned();
            AuditPosition { at: row.at, session, key: row.key }.cursor()
        });
        Ok(Page { items, cursor })
    }

    /// Reads these rows, and adds those that are still in their places.
    async fn read_rows(
        &self,
        store: &dyn LogStore,
        rows: &[RowPlace],
        items: &mut Vec<(String, Record)>,
    ) -> Result<()> {
        let mut keys: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for row in rows {
            keys.entry(row.session).or_default().push(row.key);
        }
        let mut found = BTreeMap::new();
        for (index, mut keys) in keys {
            keys.sort_unstable();
            let session = self.sessions.get(index).map_or("", String::as_str);
            for run in keys.chunk_by(|one, next| next.saturating_sub(*one) <= MAX_GAP) {
                let (Some(from), Some(to)) = (run.first(), run.last()) else { continue };
                let query = Query { from: *from, to: *to, ..Query::all(Table::ToolInvocations) };
                let records = store.read(session, query).await?;
                found.extend(records.into_iter().map(|record| ((index, record.key), record)));
            }
        }
        for row in rows {
            let Some(record) = found.remove(&(row.session, row.key)) else { continue };
            let session = self.session_of(row);
            let is_selected =
                record.index.as_ref().is_some_and(|index| index.at == row.at && self.query.matches(session, index));
            if is_selected && is_of_message(&record, self.message.as_deref()) {
                items.push((session.to_owned(), record));
            }
        }
        Ok(())
    }
}

/// Returns true if a row is a call of the message. A row that cannot be read is not.
fn is_of_message(record: &Record, message: Option<&str>) -> bool {
    message.is_none_or(|message| {
        open_record::<AuditRow>(RecordKind::Audit, &record.value).is_ok_and(|row| row.message_id == message)
    })
}

/// Returns a page of a message's calls from a store that has an index of times, but none of messages.
async fn page_of_message(store: &dyn LogStore, query: &AuditQuery, message: &str) -> Result<Page<(String, Record)>> {
    let limit = if query.limit == 0 { PAGE } else { query.limit };
    let mut items: Vec<(String, Record)> = Vec::new();
    let mut rows = AuditQuery { limit: SCANNED_ROWS, ..query.clone() };
    loop {
        let Some(reading) = store.newest_invocations(&rows) else { break };
        let page = reading.await?;
        for (session, record) in page.items.into_iter().filter(|(_, record)| is_of_message(record, Some(message))) {
            if items.len() == limit {
                let cursor = items.last().map(|(session, record)| AuditPosition::of(session, record).cursor());
                return Ok(Page { items, cursor });
            }
            items.push((session, record));
        }
        if page.cursor.is_none() {
            break;
        }
        rows.cursor = page.cursor;
    }
    Ok(Page { items, cursor: None })
}
