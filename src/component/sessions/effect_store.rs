//! A store whose operations are effects: the host performs them, in its database. What it replies is checked.

use super::effects::Effects;
use super::store_data::{append_operation, audit_operation, read_operation};
use super::wit::{StoreOperation, StoreReply};
use crate::error::{Error, ErrorCode, Result};
use crate::store::{
    Appended, AuditQuery, Batch, Capabilities, LogStore, MAX_KEY, MIN_VALUE_BYTES, PAGE, Page, Query, Record,
    SessionRow, StoreFuture, StoredHead, Table, check_page, check_records,
};
use std::rc::Rc;

/// A store of the host.
pub struct EffectStore {
    pub effects: Rc<Effects>,
    pub capabilities: Capabilities,
}

/// Returns what a store of the host can do. The contract asks for the rest.
///
/// # Errors
/// `config_invalid` for a limit that is too narrow.
pub fn capabilities(max_value_bytes: u64, durable: bool) -> Result<Capabilities> {
    if max_value_bytes < MIN_VALUE_BYTES {
        return Err(Error::config(format!("`store.max-value-bytes` must be {MIN_VALUE_BYTES} or more")));
    }
    Ok(Capabilities {
        compare_and_append: true,
        atomic_batch: true,
        read_your_writes: true,
        max_value_bytes: max_value_bytes.min(MAX_KEY),
        durable,
    })
}

fn wrong(what: &str) -> Error {
    Error::new(ErrorCode::StoreError, format!("the host's store replied {what}"))
}

/// Returns the error of a reply that is none to the operation.
fn other_reply(reply: StoreReply) -> Error {
    match reply {
        StoreReply::Failed(failure) => failure.into(),
        _ => wrong("to another operation"),
    }
}

fn page_limit(limit: usize) -> u32 {
    u32::try_from(if limit == 0 { PAGE } else { limit }).unwrap_or(u32::MAX)
}

impl EffectStore {
    async fn append_once(&self, operation: StoreOperation, expected: u64) -> Result<Appended> {
        match self.effects.store(operation).await? {
            StoreReply::Appended(0) => Err(wrong("the revision 0, which is an absent session's")),
            StoreReply::Appended(revision) => Ok(Appended::Revision(revision)),
            StoreReply::Conflict(actual) if actual == expected => {
                Err(wrong("a conflict with the revision that was expected"))
            }
            StoreReply::Conflict(actual) => Ok(Appended::Conflict(actual)),
            StoreReply::Occupied => Ok(Appended::Occupied),
            other => Err(other_reply(other)),
        }
    }
}

impl LogStore for EffectStore {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        Box::pin(async move {
            match self.effects.store(StoreOperation::Head(session.to_owned())).await? {
                StoreReply::Head(head) => Ok(head.map(Into::into)),
                other => Err(other_reply(other)),
            }
        })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            batch.check(operation, self.capabilities.max_value_bytes)?;
            let asked = || append_operation(session, expected, &batch, operation);
            match self.append_once(asked(), expected).await {
                // The operation is remembered: a second attempt writes nothing if the first one did.
                Err(error) if error.may_have_written() => self.append_once(asked(), expected).await.map_err(|_| error),
                ended => ended,
            }
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            if query.from > query.to || query.from > MAX_KEY {
                return Ok(Vec::new());
            }
            match self.effects.store(read_operation(session, &query)).await? {
                StoreReply::Rows(rows) => {
                    let records: Vec<Record> = rows.into_iter().map(Into::into).collect();
                    check_records(&records, &query).map_err(wrong)?;
                    Ok(records)
                }
                other => Err(other_reply(other)),
            }
        })
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        Box::pin(async move {
            let limit = page_limit(limit);
            let query =
                super::wit::HeadQuery { cursor: cursor.map(str::to_owned), limit, channel: channel.map(str::to_owned) };
            match self.effects.store(StoreOperation::Sessions(query)).await? {
                StoreReply::Sessions(page) => {
                    check_page(page.items.len(), limit as usize, cursor, page.cursor.as_deref())
                        .map_err(|what| wrong(&what))?;
                    let row = |row: super::wit::HeadRow| SessionRow { id: row.session, head: row.head.into() };
                    Ok(Page { items: page.items.into_iter().map(row).collect(), cursor: page.cursor })
                }
                other => Err(other_reply(other)),
            }
        })
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        Box::pin(async move {
            let limit = page_limit(query.limit);
            match self.effects.store(audit_operation(query, limit)).await? {
                StoreReply::Invocations(page) => {
                    check_page(page.items.len(), limit as usize, query.cursor.as_deref(), page.cursor.as_deref())
                        .map_err(|what| wrong(&what))?;
                    let row = |row: super::wit::AuditRow| {
                        let record = Record::from(row.row);
                        let is_selected = record.table == Table::ToolInvocations
                            && record.index.as_ref().is_some_and(|index| query.matches(&row.session, index));
                        if is_selected { Ok((row.session, record)) } else { Err(wrong("a row that was not asked for")) }
                    };
                    Ok(Page { items: page.items.into_iter().map(row).collect::<Result<_>>()?, cursor: page.cursor })
                }
                other => Err(other_reply(other)),
            }
        })
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            match self.effects.store(StoreOperation::DeleteSession(session.to_owned())).await? {
                StoreReply::Deleted => Ok(()),
                other => Err(other_reply(other)),
            }
        })
    }
}
