//! The layout of keys and values in IndexedDB.
//!
//! ```text
//! heads                    session             {r: revision, v: bytes, c: channel, o: [operation, revision, ..], d: deleted, w: widest,
//!                                               l: [1 if archived else 0, minus the time of the last change, session],
//!                                               n: number of the change}
//! log, runs                [session, key]      bytes
//! tool_invocations         [session, key]      {t: tool, s: status, c: channel, a: at, v: bytes}
//! a segment in any table   [session, key, last key]
//! the index of a search    0, in the log       bytes
//! ```
//!
//! A key is an array, and the session is a member of it, so the records of two sessions never mix. Arrays are sorted by
//! member, a shorter one before a longer one, and an array after every number.
//!
//! `l` of a head is the key of the index of sessions by recency: the time is negative so that the newest comes first. A
//! tombstone has none.
//!
//! `n` numbers the changes of heads in the database, deletions among them: each is larger than all before, and at least
//! the time in milliseconds, usually above those of an earlier database of this name. It is the key of the index of
//! changes. Rows of version 2 have none until their next change.

use super::failure::IdbFailure;
use super::transaction::ScriptStep;
use crate::store::{AuditIndex, ListedBy, MAX_KEY, Operations, REMEMBERED_OPERATIONS, Record, StoredHead, Table};
use crate::web::conversion::untrusted_value::member;
use bytes::Bytes;
use js_sys::{Array, Object, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{IdbCursorDirection, IdbKeyRange, IdbRequest, IdbTransaction};

#[wasm_bindgen]
extern "C" {
    /// A row with members. A setter costs less than `Reflect.set`, which gets each name as a new string.
    type RowObject;
    #[wasm_bindgen(method, setter)]
    fn set_r(this: &RowObject, revision: f64);
    #[wasm_bindgen(method, setter)]
    fn set_v(this: &RowObject, value: &Uint8Array);
    #[wasm_bindgen(method, setter)]
    fn set_c(this: &RowObject, channel: &JsValue);
    #[wasm_bindgen(method, setter)]
    fn set_o(this: &RowObject, operations: &Array);
    #[wasm_bindgen(method, setter)]
    fn set_d(this: &RowObject, deleted: bool);
    #[wasm_bindgen(method, setter)]
    fn set_w(this: &RowObject, widest: f64);
    #[wasm_bindgen(method, setter)]
    fn set_l(this: &RowObject, recent_key: &Array);
    #[wasm_bindgen(method, setter)]
    fn set_n(this: &RowObject, change: f64);
    #[wasm_bindgen(method, setter)]
    fn set_t(this: &RowObject, tool: &str);
    #[wasm_bindgen(method, setter)]
    fn set_s(this: &RowObject, status: &str);
    #[wasm_bindgen(method, setter)]
    fn set_a(this: &RowObject, at: f64);
    #[wasm_bindgen(method, getter)]
    fn r(this: &RowObject) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn o(this: &RowObject) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn v(this: &RowObject) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn c(this: &RowObject) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn d(this: &RowObject) -> JsValue;
}

pub(super) const HEADS: &str = "heads";

/// The index of the heads by recency.
pub(super) const RECENT_INDEX: &str = "recent";

/// The member of a head that the index has.
pub(super) const RECENT_MEMBER: &str = "l";

/// The index of the heads by their changes.
pub(super) const CHANGE_INDEX: &str = "changed";

/// The member of a head that this index has.
pub(super) const CHANGE_MEMBER: &str = "n";

/// The key of a session in the index of the heads.
pub(super) fn recent_key(is_archived: bool, updated_at: u64, session: &JsValue) -> JsValue {
    Array::of3(&archived_number(is_archived), &(0.0 - to_f64(updated_at)).into(), session).into()
}

/// Before all keys of the index that are archived, or are not.
pub(super) fn recent_keys_start(is_archived: bool) -> JsValue {
    Array::of1(&archived_number(is_archived)).into()
}

/// After all of them.
pub(super) fn recent_keys_end(is_archived: bool) -> JsValue {
    Array::of2(&archived_number(is_archived), &Array::new()).into()
}

fn archived_number(is_archived: bool) -> JsValue {
    u32::from(is_archived).into()
}

/// The tables beside the heads.
pub(super) const TABLES: [Table; 3] = [Table::Log, Table::ToolInvocations, Table::Runs];

/// All object stores.
pub(super) const STORES: [&str; 4] = [HEADS, "log", "tool_invocations", "runs"];

/// One end of a range. An open end is not part of the range.
#[derive(Clone)]
pub(super) struct RangeEnd {
    pub(super) key: JsValue,
    pub(super) open: bool,
}

impl RangeEnd {
    pub(super) fn at(key: JsValue) -> Self {
        Self { key, open: false }
    }

    pub(super) fn beyond(key: JsValue) -> Self {
        Self { key, open: true }
    }

    /// Before all keys: a number is sorted before every text and every array.
    pub(super) fn first() -> Self {
        Self::at(JsValue::from_f64(f64::NEG_INFINITY))
    }

    /// After all keys: an array is sorted after every text, and one that begins with an array after every other.
    pub(super) fn last() -> Self {
        Self::at(Array::of1(&Array::new()).into())
    }
}

pub(super) fn range(lower: &RangeEnd, upper: &RangeEnd) -> Result<IdbKeyRange, JsValue> {
    IdbKeyRange::bound_with_lower_open_and_upper_open(&lower.key, &upper.key, lower.open, upper.open)
}

/// Makes the keys of a session's records.
#[derive(Clone)]
pub(super) struct SessionKeys(JsValue);

impl SessionKeys {
    pub(super) fn of(session: &str) -> Self {
        Self(JsValue::from_str(session))
    }

    pub(super) fn record(&self, key: u64, last: Option<u64>) -> JsValue {
        let place = Array::of2(&self.0, &number(key));
        if let Some(last) = last {
            place.push(&number(last));
        }
        place.into()
    }

    /// After all that begins at this key, before all that begins at the next.
    pub(super) fn past(&self, key: u64) -> JsValue {
        Array::of3(&self.0, &number(key), &Array::new()).into()
    }

    /// Before all records.
    pub(super) fn start(&self) -> JsValue {
        Array::of1(&self.0).into()
    }

    /// After all records.
    pub(super) fn end(&self) -> JsValue {
        Array::of2(&self.0, &Array::new()).into()
    }

    /// All records whose first key is within.
    pub(super) fn range(&self, from: u64, to: u64) -> Result<IdbKeyRange, JsValue> {
        range(&RangeEnd::at(self.record(from, None)), &RangeEnd::at(self.past(to)))
    }

    /// All records.
    pub(super) fn all(&self) -> Result<IdbKeyRange, JsValue> {
        range(&RangeEnd::at(self.start()), &RangeEnd::at(self.end()))
    }
}

/// Exact, since keys stay at or below 2^53 - 1.
fn number(key: u64) -> JsValue {
    JsValue::from_f64(to_f64(key))
}

fn to_f64(key: u64) -> f64 {
    key.min(MAX_KEY) as f64
}

fn whole(value: &JsValue) -> Option<u64> {
    let value = value.as_f64()?;
    (value >= 0.0 && value <= MAX_KEY as f64 && value.fract() == 0.0).then_some(value as u64)
}

/// Parses a key: session, key, last key. Returns none for a foreign key.
pub(super) fn place(key: &JsValue) -> Option<(String, u64, Option<u64>)> {
    let (first, last) = record_keys(key)?;
    Some((key.dyn_ref::<Array>()?.get(0).as_string()?, first, last))
}

/// Parses the record keys of a key: key, last key. Returns none for a foreign key.
pub(super) fn record_keys(key: &JsValue) -> Option<(u64, Option<u64>)> {
    let key: &Array = key.dyn_ref()?;
    let last = match key.length() {
        2 => None,
        3 => Some(whole(&key.get(2))?),
        _ => return None,
    };
    Some((whole(&key.get(1))?, last))
}

/// Copies bytes to JavaScript memory: IndexedDB would store the whole wasm memory with a view of it.
fn bytes(value: &[u8]) -> Uint8Array {
    Uint8Array::from(value)
}

fn optional(text: Option<&str>) -> JsValue {
    text.map_or(JsValue::NULL, JsValue::from_str)
}

/// Returns the value of a record in its table.
fn write(record: &Record) -> JsValue {
    let Some(index) = &record.index else { return bytes(&record.value).into() };
    let row: RowObject = Object::new().unchecked_into();
    row.set_t(&index.tool);
    row.set_s(&index.status);
    row.set_c(&optional(index.channel.as_deref()));
    row.set_a(index.at as f64);
    row.set_v(&bytes(&record.value));
    row.into()
}

/// Returns the bytes of a value, if it has any.
pub(super) fn bytes_of(value: &JsValue) -> Option<Bytes> {
    value.dyn_ref::<Uint8Array>().map(|array| array.to_vec().into())
}

/// Reads a record. A foreign value becomes a record without bytes, which the record codec reports as corrupt; its
/// neighbours stay readable.
pub(super) fn read(table: Table, key: u64, last_key: Option<u64>, value: &JsValue) -> Record {
    let mut record = Record { table, key, last_key, index: None, value: Bytes::new() };
    if let Some(value) = bytes_of(value) {
        record.value = value;
    } else if value.is_object() {
        record.value = bytes_of(&member(value, "v")).unwrap_or_default();
        record.index = index(value);
    }
    record
}

/// Returns the index of an audit row, without its bytes.
pub(super) fn index_of(value: &JsValue) -> Option<AuditIndex> {
    let is_row = value.is_object() && !value.is_instance_of::<Uint8Array>();
    if is_row { index(value) } else { None }
}

fn index(row: &JsValue) -> Option<AuditIndex> {
    Some(AuditIndex {
        tool: member(row, "t").as_string()?,
        status: member(row, "s").as_string()?,
        channel: member(row, "c").as_string(),
        at: member(row, "a").as_f64()? as u64,
    })
}

/// Requests the first record in each of these ranges.
pub(super) fn request_first_records(
    transaction: &IdbTransaction,
    ranges: Vec<(Table, Result<IdbKeyRange, JsValue>)>,
) -> Result<ScriptStep, IdbFailure> {
    let mut requests = Vec::new();
    for (table, range) in ranges {
        requests.push(transaction.object_store(table.as_str())?.get_key(&range?.into())?);
    }
    Ok(ScriptStep::Request(requests))
}

/// Requests the first records of a session that has no head.
pub(super) fn request_records(transaction: &IdbTransaction, keys: &SessionKeys) -> Result<ScriptStep, IdbFailure> {
    request_first_records(transaction, vec![(Table::Log, keys.all()), (Table::Runs, keys.all())])
}

/// Requests the number of the newest change: the answer is a cursor, or null.
pub(super) fn request_newest_change(transaction: &IdbTransaction) -> Result<IdbRequest, IdbFailure> {
    let index = transaction.object_store(HEADS)?.index(CHANGE_INDEX)?;
    Ok(index.open_key_cursor_with_range_and_direction(&JsValue::NULL, IdbCursorDirection::Prev)?)
}

/// Reads the answer; 0 if there was no change.
pub(super) fn newest_change(answer: &JsValue) -> u64 {
    whole(&member(answer, "key")).unwrap_or(0)
}

/// Requests a session that has a change above a number: none, mostly, which costs less than to read the newest.
pub(super) fn request_change_above(transaction: &IdbTransaction, change: u64) -> Result<IdbRequest, IdbFailure> {
    let index = transaction.object_store(HEADS)?.index(CHANGE_INDEX)?;
    Ok(index.get_key(&changes_since(change)?.into())?)
}

/// Returns the rows that have changed since the change of a number.
pub(super) fn changes_since(change: u64) -> Result<IdbKeyRange, JsValue> {
    IdbKeyRange::lower_bound_with_open(&number(change), true)
}

/// The key of the index of a search, in the log. Builds that do not know it find no session by a number.
const SEARCH_INDEX_KEY: f64 = 0.0;

/// Requests the record of the index.
pub(super) fn request_search_index(transaction: &IdbTransaction) -> Result<IdbRequest, IdbFailure> {
    Ok(transaction.object_store(Table::Log.as_str())?.get(&SEARCH_INDEX_KEY.into())?)
}

/// Writes the record of the index.
pub(super) fn put_search_index(transaction: &IdbTransaction, record: &[u8]) -> Result<(), IdbFailure> {
    put(transaction, Table::Log.as_str(), &SEARCH_INDEX_KEY.into(), &bytes(record))
}

/// Deletes the record of the index.
pub(super) fn delete_search_index(transaction: &IdbTransaction) -> Result<(), IdbFailure> {
    transaction.object_store(Table::Log.as_str())?.delete(&SEARCH_INDEX_KEY.into())?;
    Ok(())
}

/// Requests a session's head.
pub(super) fn request_head(transaction: &IdbTransaction, keys: &SessionKeys) -> Result<IdbRequest, IdbFailure> {
    Ok(transaction.object_store(HEADS)?.get(&keys.0)?)
}

fn put(transaction: &IdbTransaction, store: &str, place: &JsValue, value: &JsValue) -> Result<(), IdbFailure> {
    transaction.object_store(store)?.put_with_key(value, place)?;
    Ok(())
}

/// Writes a session's head.
pub(super) fn put_head(transaction: &IdbTransaction, keys: &SessionKeys, head: &HeadRow) -> Result<(), IdbFailure> {
    put(transaction, HEADS, &keys.0, &head.write(&keys.0))
}

/// Deletes a session's head.
pub(super) fn delete_head(transaction: &IdbTransaction, keys: &SessionKeys) -> Result<(), IdbFailure> {
    transaction.object_store(HEADS)?.delete(&keys.0)?;
    Ok(())
}

/// Writes a record, and replaces an existing one.
pub(super) fn put_record(transaction: &IdbTransaction, keys: &SessionKeys, record: &Record) -> Result<(), IdbFailure> {
    put(transaction, record.table.as_str(), &keys.record(record.key, record.last_key), &write(record))
}

/// Adds a record. If its key exists, the transaction is aborted and nothing is written.
pub(super) fn add_record(transaction: &IdbTransaction, keys: &SessionKeys, record: &Record) -> Result<(), IdbFailure> {
    let store = transaction.object_store(record.table.as_str())?;
    store.add_with_key(&write(record), &keys.record(record.key, record.last_key))?;
    Ok(())
}

/// Deletes all records of a range.
pub(super) fn delete(
    transaction: &IdbTransaction,
    table: Table,
    range: Result<IdbKeyRange, JsValue>,
) -> Result<(), IdbFailure> {
    transaction.object_store(table.as_str())?.delete(&range?.into())?;
    Ok(())
}

/// A row of the table `heads`.
#[derive(Clone, Default)]
pub(super) struct HeadRow {
    pub(super) revision: u64,
    pub(super) value: Bytes,
    pub(super) channel: Option<String>,
    pub(super) operations: Operations,
    /// The operations as they are stored, of a row that this store wrote: the next append adds its own. A clone shares
    /// the array, so a row is used up when a clone of it is written: the script that did so drops it, and no failed
    /// append is remembered.
    pub(super) stored_operations: Option<Array>,
    pub(super) deleted: bool,
    pub(super) listed_by: ListedBy,
    /// The number of its last change; 0 if it has none.
    pub(super) change: u64,
    /// The largest distance between the first and the last key of any segment so far: a segment that reaches into a
    /// range begins at most so far before it.
    pub(super) widest: u64,
}

impl HeadRow {
    /// Reads a row; returns false if there is none. Fields that cannot be read keep their default: a head without bytes
    /// is damaged, and is rebuilt when it is decoded.
    pub(super) fn read(&mut self, value: &JsValue) -> bool {
        if value.is_undefined() {
            return false;
        }
        let revision = whole(&member(value, "r"));
        self.revision = revision.unwrap_or(0);
        self.value = bytes_of(&member(value, "v")).unwrap_or_default();
        self.channel = member(value, "c").as_string();
        if let Some(kept) = member(value, "o").dyn_ref::<Array>() {
            for at in (0..kept.length()).step_by(2) {
                if let (Some(name), Some(made)) = (kept.get(at).as_string(), whole(&kept.get(at + 1))) {
                    self.operations.0.push((name, made));
                }
            }
        }
        self.deleted = revision.is_some() && member(value, "d").is_truthy();
        self.widest = whole(&member(value, "w")).unwrap_or(0);
        self.change = whole(&member(value, CHANGE_MEMBER)).unwrap_or(0);
        if let Some(key) = Self::recent_key_of(value) {
            let updated_at = key.get(1).as_f64().and_then(|minus| whole(&(0.0 - minus).into()));
            self.listed_by =
                ListedBy { is_archived: key.get(0).as_f64() == Some(1.0), updated_at: updated_at.unwrap_or(0) };
        }
        true
    }

    /// Reads of a row what a list of heads needs, as [`read`](Self::read) does. With 5,000 rows the rest, and names of
    /// members that are made anew for each row, cost a third of the time.
    pub(super) fn read_listed(&mut self, value: &JsValue) -> bool {
        if !value.is_object() {
            return self.read(value);
        }
        let row: &RowObject = value.unchecked_ref();
        let revision = whole(&row.r());
        self.revision = revision.unwrap_or(0);
        self.value = bytes_of(&row.v()).unwrap_or_default();
        self.channel = row.c().as_string();
        self.deleted = revision.is_some() && row.d().is_truthy();
        true
    }

    /// Returns the key of a row in the index of the heads, if it has one.
    pub(super) fn recent_key_of(value: &JsValue) -> Option<Array> {
        member(value, RECENT_MEMBER).dyn_into().ok()
    }

    /// Returns true if a value is a row that this store wrote.
    pub(super) fn is_ours(value: &JsValue) -> bool {
        value.is_object() && whole(&member(value, "r")).is_some()
    }

    /// Sets what the session is listed by from the head in the row.
    pub(super) fn describe(&mut self) {
        self.listed_by = ListedBy::of_encoded(&self.value);
    }

    /// Returns true if a stored row is the one that this append wrote: no other append has its revision and its name.
    pub(super) fn is_stored_as(&self, value: &JsValue) -> bool {
        let Some((newest, _)) = self.operations.0.last().filter(|_| value.is_object()) else { return false };
        let stored: &RowObject = value.unchecked_ref();
        if whole(&stored.r()) != Some(self.revision) {
            return false;
        }
        let operations = stored.o();
        let name = operations.dyn_ref::<Array>().map(|kept| kept.get(kept.length().saturating_sub(2)));
        name.is_some_and(|name| name.as_string().as_ref() == Some(newest))
    }

    /// Adds the operation that makes the present revision.
    pub(super) fn note(&mut self, operation: &str) {
        self.operations.note(operation, self.revision);
        let Some(stored) = &self.stored_operations else {
            self.stored_operations = Some(self.operations_to_js());
            return;
        };
        stored.push(&operation.into());
        stored.push(&number(self.revision));
        while stored.length() as usize > 2 * REMEMBERED_OPERATIONS {
            stored.shift();
        }
    }

    fn operations_to_js(&self) -> Array {
        let operations = Array::new();
        for (name, made) in &self.operations.0 {
            operations.push(&name.as_str().into());
            operations.push(&number(*made));
        }
        operations
    }

    fn write(&self, session: &JsValue) -> JsValue {
        let row: RowObject = Object::new().unchecked_into();
        row.set_r(to_f64(self.revision));
        row.set_v(&bytes(&self.value));
        row.set_c(&optional(self.channel.as_deref()));
        match &self.stored_operations {
            Some(operations) => row.set_o(operations),
            None => row.set_o(&self.operations_to_js()),
        }
        row.set_d(self.deleted);
        row.set_w(to_f64(self.widest));
        if !self.deleted {
            let ListedBy { updated_at, is_archived } = self.listed_by;
            row.set_l(recent_key(is_archived, updated_at, session).unchecked_ref());
        }
        if self.change > 0 {
            row.set_n(to_f64(self.change));
        }
        row.into()
    }

    /// Returns the head of a session that is not deleted.
    pub(super) fn head(self) -> StoredHead {
        StoredHead { revision: self.revision, value: self.value }
    }
}
