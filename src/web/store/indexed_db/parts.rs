//! Reads a long range in one transaction, and passes records on while others arrive.
//!
//! The keys are read first. Then each segment is a request of its own, and several are under way: a large value arrives
//! as fast alone as with others, and what has arrived is decoded meanwhile.

use super::failure::IdbFailure;
use super::rows::{self, RangeEnd, SessionKeys, range};
use super::transaction::{Script, ScriptStep};
use crate::store::{MAX_KEY, Query, Record};
use js_sys::Array;
use std::collections::VecDeque;
use std::task::Waker;
use wasm_bindgen::prelude::*;
use web_sys::{IdbRequest, IdbTransaction};

/// Number of requests that are under way at once.
const REQUESTS_AHEAD: usize = 8;

/// Maximum number of single records of a request.
const MAX_SINGLES: usize = 256;

/// What one request reads.
enum RecordGroup {
    /// A segment: its first and its last key.
    Segment(u64, u64),
    /// Records that are neighbours in the table: their keys.
    Singles(Vec<u64>),
}

pub(super) struct PartsScript {
    keys: SessionKeys,
    query: Query,
    /// None until the keys are read.
    waiting: Option<VecDeque<RecordGroup>>,
    /// Requests under way, in the order of their answers.
    requested: VecDeque<(RecordGroup, IdbRequest)>,
    /// Records that have arrived.
    arrived: Vec<Record>,
    /// Woken when records have arrived.
    waker: Option<Waker>,
}

impl PartsScript {
    pub(super) fn new(keys: SessionKeys, mut query: Query) -> Self {
        query.to = query.to.min(MAX_KEY);
        let (requested, arrived) = (VecDeque::new(), Vec::new());
        Self { keys, query, waiting: None, requested, arrived, waker: None }
    }

    /// Takes the records that have arrived. `waker` is woken when there are more.
    pub(super) fn take_arrived(&mut self, waker: &Waker) -> Vec<Record> {
        self.waker = Some(waker.clone());
        std::mem::take(&mut self.arrived)
    }

    /// Requests the keys of all records that begin before the end of the range: a segment may begin before the range
    /// and reach into it.
    fn request_keys(&self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        let range = range(&RangeEnd::at(self.keys.start()), &RangeEnd::at(self.keys.past(self.query.to)))?;
        let store = transaction.object_store(self.query.table.as_str())?;
        Ok(ScriptStep::Request(vec![store.get_all_keys_with_key(&range.into())?]))
    }

    /// Groups the keys of records that overlap the range. The singles of a group are all keys between its first and its
    /// last one, because the group is read as a range.
    fn group(&self, keys: &Array) -> VecDeque<RecordGroup> {
        let mut groups: VecDeque<RecordGroup> = VecDeque::new();
        let mut follows_foreign_key = false;
        for at in 0..keys.length() {
            // A foreign key: no call of this store can address it.
            let Some((key, last)) = rows::record_keys(&keys.get(at)) else {
                follows_foreign_key = true;
                continue;
            };
            let starts_group = std::mem::take(&mut follows_foreign_key);
            if last.unwrap_or(key) < self.query.from {
                continue;
            }
            match (last, groups.back_mut()) {
                (Some(last), _) => groups.push_back(RecordGroup::Segment(key, last)),
                (None, Some(RecordGroup::Singles(singles))) if !starts_group && singles.len() < MAX_SINGLES => {
                    singles.push(key);
                }
                (None, _) => groups.push_back(RecordGroup::Singles(vec![key])),
            }
        }
        groups
    }

    /// Requests more groups, and continues with the answer that comes next.
    fn request_groups(&mut self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        let store = transaction.object_store(self.query.table.as_str())?;
        while self.requested.len() < REQUESTS_AHEAD {
            let Some(group) = self.waiting.as_mut().and_then(VecDeque::pop_front) else { break };
            let request = match &group {
                RecordGroup::Segment(key, last) => store.get(&self.keys.record(*key, Some(*last)))?,
                RecordGroup::Singles(singles) => {
                    let end = |key: Option<&u64>| RangeEnd::at(self.keys.record(key.copied().unwrap_or(0), None));
                    store.get_all_with_key(&range(&end(singles.first()), &end(singles.last()))?.into())?
                }
            };
            self.requested.push_back((group, request));
        }
        Ok(match self.requested.front() {
            Some((_, next)) => ScriptStep::Request(vec![next.clone()]),
            None => ScriptStep::Done(0),
        })
    }

    /// Takes the answer of the oldest request.
    fn take_answer(&mut self, answer: &JsValue) {
        let table = self.query.table;
        match self.requested.pop_front() {
            Some((RecordGroup::Segment(key, last), _)) => {
                self.arrived.push(rows::read(table, key, Some(last), answer));
            }
            Some((RecordGroup::Singles(singles), _)) => {
                let values: &Array = answer.unchecked_ref();
                for (key, value) in singles.into_iter().zip(values.iter()) {
                    self.arrived.push(rows::read(table, key, None, &value));
                }
            }
            None => {}
        }
        // After a lost connection the rest is read.
        if let Some(record) = self.arrived.last() {
            self.query.from = self.query.from.max(record.last_key.unwrap_or(record.key).saturating_add(1));
        }
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}

impl Script for PartsScript {
    fn stores(&self) -> Vec<&'static str> {
        vec![self.query.table.as_str()]
    }

    fn restart(&mut self) {
        self.waiting = None;
        self.requested.clear();
    }

    fn step(&mut self, transaction: &IdbTransaction, answers: &[JsValue]) -> Result<ScriptStep, IdbFailure> {
        match answers.first() {
            None => return self.request_keys(transaction),
            Some(keys) if self.waiting.is_none() => self.waiting = Some(self.group(keys.unchecked_ref())),
            Some(answer) => self.take_answer(answer),
        }
        self.request_groups(transaction)
    }
}
