//! The transactions that list: a page of what a scan finds.

use super::failure::Failure;
use super::rows::{self, HEADS, HeadRow, table_name};
use super::scan::Scan;
use super::transaction::{Script, Step};
use crate::store::{AuditQuery, Page, Record, SessionRow, Table};
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

/// What is listed.
pub(super) enum Listed {
    /// Sessions of this channel, or of any.
    Sessions(Option<String>),
    /// Rows of the audit table.
    Audit(AuditQuery),
}

pub(super) struct Pages {
    listed: Listed,
    limit: usize,
    /// Where it begins, for a new connection.
    start: Scan,
    scan: Scan,
    pub(super) sessions: Vec<SessionRow>,
    pub(super) rows: Vec<(String, Record)>,
}

impl Pages {
    pub(super) fn new(listed: Listed, limit: usize, mut scan: Scan) -> Self {
        // One more than the page shows whether there is a next.
        scan.count = u32::try_from(limit.saturating_add(1)).unwrap_or(u32::MAX).clamp(32, 256);
        Self { listed, limit, start: scan.clone(), scan, sessions: Vec::new(), rows: Vec::new() }
    }

    /// Takes a row if it is wanted.
    fn take(&mut self, key: &JsValue, value: &JsValue) -> Result<(), Failure> {
        match &self.listed {
            Listed::Sessions(channel) => {
                let (Some(id), Some(row)) = (key.as_string(), HeadRow::read(value)?) else { return Ok(()) };
                if channel.is_none() || row.channel == *channel {
                    self.sessions.extend(row.head().map(|head| SessionRow { id, head }));
                }
            }
            Listed::Audit(query) => {
                let (Some((session, key, last)), Some(index)) = (rows::place(key), rows::index_of(value)) else {
                    return Ok(());
                };
                if query.matches(&session, &index) {
                    self.rows.push((session, rows::read(Table::ToolInvocations, key, last, value)));
                }
            }
        }
        Ok(())
    }
}

impl Script for Pages {
    fn stores(&self) -> Vec<&'static str> {
        match self.listed {
            Listed::Sessions(_) => vec![HEADS],
            Listed::Audit(_) => vec![table_name(Table::ToolInvocations)],
        }
    }

    fn restart(&mut self) {
        self.scan = self.start.clone();
        self.sessions.clear();
        self.rows.clear();
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<Step, Failure> {
        if !answers.is_empty() {
            for (key, value) in self.scan.rows(answers)? {
                self.take(&key, &value)?;
            }
            if self.sessions.len() + self.rows.len() > self.limit || self.scan.ended() {
                return Ok(Step::Done(0));
            }
        }
        self.scan.ask(transaction)
    }
}

/// A page of what was found, with the place to go on from if there is more.
pub(super) fn page<T>(mut items: Vec<T>, limit: usize, cursor: fn(&T) -> String) -> Page<T> {
    let more = items.len() > limit;
    items.truncate(limit);
    let cursor = items.last().filter(|_| more).map(cursor);
    Page { items, cursor }
}
