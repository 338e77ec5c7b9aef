//! How keys and values lie in IndexedDB.
//!
//! ```text
//! heads                    session             {r: revision, v: bytes, c: channel, o: [operation, revision, ..], d: deleted, w: widest}
//! log, runs                [session, key]      bytes
//! tool_invocations         [session, key]      {t: tool, s: status, c: channel, a: at, v: bytes}
//! a segment in any table   [session, key, last key]
//! ```
//!
//! A key is an array and the session one whole member of it, so no session's name can reach into another's records. Arrays
//! sort by member, a shorter one before a longer, and an array after every number.

use super::failure::Failure;
use crate::error::{Code, Error};
use crate::store::{AuditIndex, Head, MAX_KEY, Operations, Record, Table};
use js_sys::{Array, Object, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::IdbKeyRange;

pub(super) const HEADS: &str = "heads";

/// The tables beside the heads.
pub(super) const TABLES: [Table; 3] = [Table::Log, Table::ToolInvocations, Table::Runs];

/// All object stores.
pub(super) const STORES: [&str; 4] = [HEADS, "log", "tool_invocations", "runs"];

pub(super) fn table_name(table: Table) -> &'static str {
    match table {
        Table::Log => "log",
        Table::ToolInvocations => "tool_invocations",
        Table::Runs => "runs",
    }
}

/// One end of a range, and whether it lies outside of it.
#[derive(Clone)]
pub(super) struct End {
    pub(super) key: JsValue,
    pub(super) open: bool,
}

impl End {
    pub(super) fn at(key: JsValue) -> Self {
        Self { key, open: false }
    }

    pub(super) fn beyond(key: JsValue) -> Self {
        Self { key, open: true }
    }

    /// Before all keys: a number sorts before every text and every array.
    pub(super) fn first() -> Self {
        Self::at(JsValue::from_f64(f64::NEG_INFINITY))
    }

    /// After all keys of ours: an array sorts behind every text, and so does one that begins with an array.
    pub(super) fn last() -> Self {
        Self::at(Array::of1(&Array::new()).into())
    }
}

pub(super) fn range(lower: &End, upper: &End) -> Result<IdbKeyRange, JsValue> {
    IdbKeyRange::bound_with_lower_open_and_upper_open(&lower.key, &upper.key, lower.open, upper.open)
}

/// A session's records, as keys.
#[derive(Clone)]
pub(super) struct Keys(JsValue);

impl Keys {
    pub(super) fn of(session: &str) -> Self {
        Self(JsValue::from_str(session))
    }

    pub(super) fn session(&self) -> &JsValue {
        &self.0
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
        range(&End::at(self.record(from, None)), &End::at(self.past(to)))
    }

    /// All records.
    pub(super) fn all(&self) -> Result<IdbKeyRange, JsValue> {
        range(&End::at(self.start()), &End::at(self.end()))
    }
}

/// Exact, since keys stay at or below 2^53 - 1.
fn number(key: u64) -> JsValue {
    JsValue::from_f64(key.min(MAX_KEY) as f64)
}

fn whole(value: &JsValue) -> Option<u64> {
    let value = value.as_f64()?;
    (value >= 0.0 && value <= MAX_KEY as f64 && value.fract() == 0.0).then_some(value as u64)
}

/// A record's place: session, key, last key. None for a key that is not of our making.
pub(super) fn place(key: &JsValue) -> Option<(String, u64, Option<u64>)> {
    let key: &Array = key.dyn_ref()?;
    let last = match key.length() {
        2 => None,
        3 => Some(whole(&key.get(2))?),
        _ => return None,
    };
    Some((key.get(0).as_string()?, whole(&key.get(1))?, last))
}

#[wasm_bindgen]
extern "C" {
    /// A row that is an object.
    #[wasm_bindgen(js_name = Object)]
    pub(super) type Row;
    #[wasm_bindgen(method, getter)]
    fn r(this: &Row) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn v(this: &Row) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn c(this: &Row) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn o(this: &Row) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn d(this: &Row) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn w(this: &Row) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn t(this: &Row) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn s(this: &Row) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn a(this: &Row) -> JsValue;
    #[wasm_bindgen(method, setter)]
    fn set_r(this: &Row, value: &JsValue);
    #[wasm_bindgen(method, setter)]
    fn set_v(this: &Row, value: &JsValue);
    #[wasm_bindgen(method, setter)]
    fn set_c(this: &Row, value: &JsValue);
    #[wasm_bindgen(method, setter)]
    fn set_o(this: &Row, value: &JsValue);
    #[wasm_bindgen(method, setter)]
    fn set_d(this: &Row, value: &JsValue);
    #[wasm_bindgen(method, setter)]
    fn set_w(this: &Row, value: &JsValue);
    #[wasm_bindgen(method, setter)]
    fn set_t(this: &Row, value: &JsValue);
    #[wasm_bindgen(method, setter)]
    fn set_s(this: &Row, value: &JsValue);
    #[wasm_bindgen(method, setter)]
    fn set_a(this: &Row, value: &JsValue);
}

/// A copy in JavaScript's memory: of a view, IndexedDB would store all of wasm's.
fn bytes(value: &[u8]) -> JsValue {
    Uint8Array::from(value).into()
}

fn optional(text: Option<&str>) -> JsValue {
    text.map_or(JsValue::NULL, JsValue::from_str)
}

/// What a record's value is in the table.
pub(super) fn write(record: &Record) -> JsValue {
    let Some(index) = &record.index else { return bytes(&record.value) };
    let row: Row = Object::new().unchecked_into();
    row.set_t(&index.tool.as_str().into());
    row.set_s(&index.status.as_str().into());
    row.set_c(&optional(index.channel.as_deref()));
    row.set_a(&JsValue::from_f64(index.at as f64));
    row.set_v(&bytes(&record.value));
    row.into()
}

/// Reads a record back. A value that is not of our making comes without bytes: the record codec then reports this one
/// record as corrupt, and its neighbours stay readable.
pub(super) fn read(table: Table, key: u64, last_key: Option<u64>, value: &JsValue) -> Record {
    let of = |value: &JsValue| value.dyn_ref::<Uint8Array>().map(Uint8Array::to_vec);
    if let Some(value) = of(value) {
        return Record { table, key, last_key, index: None, value };
    }
    if !value.is_object() {
        return Record { table, key, last_key, index: None, value: Vec::new() };
    }
    let row: &Row = value.unchecked_ref();
    let value = of(&row.v()).unwrap_or_default();
    Record { table, key, last_key, index: index(row), value }
}

/// What an audit row is found by, without its bytes.
pub(super) fn index_of(value: &JsValue) -> Option<AuditIndex> {
    let is_row = value.is_object() && !value.is_instance_of::<Uint8Array>();
    is_row.then(|| index(value.unchecked_ref())).flatten()
}

fn index(row: &Row) -> Option<AuditIndex> {
    Some(AuditIndex {
        tool: row.t().as_string()?,
        status: row.s().as_string()?,
        channel: row.c().as_string(),
        at: row.a().as_f64()? as u64,
    })
}

/// A row of heads.
#[derive(Default)]
pub(super) struct HeadRow {
    pub(super) revision: u64,
    pub(super) value: Vec<u8>,
    pub(super) channel: Option<String>,
    pub(super) operations: Operations,
    pub(super) deleted: bool,
    /// How far a segment's last key was ever from its first: so far before a range one that reaches in may begin.
    pub(super) widest: u64,
}

impl HeadRow {
    /// Reads a row; none if there is none.
    pub(super) fn read(value: &JsValue) -> Result<Option<Self>, Failure> {
        if value.is_undefined() {
            return Ok(None);
        }
        let damaged = || {
            Error::new(
                Code::CorruptRecord,
                "a session's head in IndexedDB is not of this store's making; it is left as it is",
            )
        };
        let row: &Row = value.is_object().then(|| value.unchecked_ref()).ok_or_else(damaged)?;
        let revision = whole(&row.r()).ok_or_else(damaged)?;
        let bytes = row.v();
        let value = bytes.dyn_ref::<Uint8Array>().map(Uint8Array::to_vec).ok_or_else(damaged)?;
        let kept = row.o().dyn_into::<Array>().unwrap_or_default();
        let pairs = (0..kept.length())
            .step_by(2)
            .filter_map(|at| Some((kept.get(at).as_string()?, whole(&kept.get(at.saturating_add(1)))?)));
        let operations = Operations(pairs.collect());
        let channel = row.c().as_string();
        Ok(Some(Self {
            revision,
            value,
            channel,
            operations,
            deleted: row.d().is_truthy(),
            widest: whole(&row.w()).unwrap_or(0),
        }))
    }

    pub(super) fn write(&self) -> JsValue {
        let operations = Array::new();
        for (name, made) in &self.operations.0 {
            operations.push(&name.as_str().into());
            operations.push(&number(*made));
        }
        let row: Row = Object::new().unchecked_into();
        row.set_r(&number(self.revision));
        row.set_v(&bytes(&self.value));
        row.set_c(&optional(self.channel.as_deref()));
        row.set_o(&operations);
        row.set_d(&self.deleted.into());
        row.set_w(&number(self.widest));
        row.into()
    }

    /// What the contract shows of it.
    pub(super) fn head(self) -> Option<Head> {
        (!self.deleted).then_some(Head { revision: self.revision, value: self.value })
    }
}
