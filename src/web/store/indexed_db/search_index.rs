//! The index of a search, beside the log.

use super::IndexedDbStore;
use super::failure::IdbFailure;
use super::rows::{
    HEADS, bytes_of, delete_search_index, newest_change, put_search_index, request_newest_change, request_search_index,
};
use super::transaction::{Script, ScriptStep, SharedScript};
use crate::store::{SearchIndexStore, StoreFuture, Table};
use bytes::Bytes;
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::JsValue;
use web_sys::IdbTransaction;

/// What is done with the record.
enum IndexOperation {
    Read,
    /// Written if this is the newest change.
    Write(u64, Bytes),
    Delete,
}

/// Reads, writes or deletes the record of the index.
struct SearchIndexScript {
    operation: IndexOperation,
    /// The record that was read.
    record: Option<Bytes>,
    is_written: bool,
}

impl SearchIndexScript {
    fn new(operation: IndexOperation) -> Self {
        Self { operation, record: None, is_written: false }
    }
}

impl Script for SearchIndexScript {
    fn stores(&self) -> Vec<&'static str> {
        match &self.operation {
            IndexOperation::Write(..) => vec![HEADS, Table::Log.as_str()],
            IndexOperation::Read | IndexOperation::Delete => vec![Table::Log.as_str()],
        }
    }

    fn restart(&mut self) {
        self.is_written = false;
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure> {
        let mut written = 0;
        match (&self.operation, answers.first()) {
            (IndexOperation::Read, None) => {
                return Ok(ScriptStep::Request(vec![request_search_index(transaction)?]));
            }
            (IndexOperation::Read, Some(answer)) => self.record = bytes_of(answer),
            (IndexOperation::Write(..), None) => {
                return Ok(ScriptStep::Request(vec![request_newest_change(transaction)?]));
            }
            (IndexOperation::Write(mark, record), Some(newest)) => {
                self.is_written = newest_change(newest) == *mark;
                if self.is_written {
                    put_search_index(transaction, record)?;
                    written = record.len() as u64;
                }
            }
            (IndexOperation::Delete, _) => delete_search_index(transaction)?,
        }
        Ok(ScriptStep::Done(written))
    }
}

impl IndexedDbStore {
    fn run_on_index(&self, operation: IndexOperation) -> StoreFuture<'_, Rc<RefCell<SearchIndexScript>>> {
        let write = !matches!(operation, IndexOperation::Read);
        Box::pin(async move {
            let script = Rc::new(RefCell::new(SearchIndexScript::new(operation)));
            self.transact(script.clone(), write).await?;
            Ok(script)
        })
    }

    /// Deletes the record for good, and writes none any more. Returns true if this freed space: on a full disk a
    /// transaction that only deletes succeeds.
    pub(super) async fn give_up_index(&self) -> bool {
        if !self.stores_index.replace(false) {
            return false;
        }
        let read = self.run_on_index(IndexOperation::Read).await;
        read.is_ok_and(|script| script.borrow().record.is_some()) && self.remove_index().await.is_ok()
    }
}

impl SearchIndexStore for IndexedDbStore {
    fn read_index(&self) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move {
            let record = self.run_on_index(IndexOperation::Read).await?.borrow_mut().record.take();
            // The changes since its mark are those of the database that is open now.
            self.marked_connection.set(self.connections.get());
            Ok(record)
        })
    }

    fn write_index(&self, mark: u64, record: Bytes) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            // A new connection may be one to another database, and nobody would learn that the first was evicted.
            let is_open = self.connection.borrow().as_ref().is_some_and(|open| !open.is_closed());
            if !is_open || self.marked_connection.get() != self.connections.get() {
                return Ok(false);
            }
            let script = Rc::new(RefCell::new(SearchIndexScript::new(IndexOperation::Write(mark, record))));
            let shared: SharedScript = script.clone();
            self.attempt(&shared, true).await.map_err(|failure| failure.error)?;
            let is_written = script.borrow().is_written;
            Ok(is_written)
        })
    }

    fn remove_index(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.run_on_index(IndexOperation::Delete).await.map(drop) })
    }
}
