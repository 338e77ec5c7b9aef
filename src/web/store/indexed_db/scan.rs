//! Reads rows in key order, a page at a time, in one transaction.

use super::failure::IdbFailure;
use super::rows::{RangeEnd, range};
use super::transaction::ScriptStep;
use crate::web::conversion::convert::set;
use js_sys::{Array, Object, Reflect};
use wasm_bindgen::prelude::*;
use web_sys::{IdbCursorDirection, IdbCursorWithValue, IdbObjectStore, IdbRequest, IdbTransaction};

#[wasm_bindgen]
extern "C" {
    type ObjectStoreExt;
    #[wasm_bindgen(method, catch, js_name = getAllRecords)]
    fn get_all_records(this: &ObjectStoreExt, options: &JsValue) -> Result<IdbRequest, JsValue>;
    type KeyedRecord;
    #[wasm_bindgen(method, getter)]
    fn key(this: &KeyedRecord) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn value(this: &KeyedRecord) -> JsValue;
}

/// How a page is read.
#[derive(Clone, Copy, PartialEq)]
enum ScanMethod {
    /// Keys and values in one request, in the uses_newest_api browsers.
    Records,
    /// Keys and values in two requests.
    TwoRequests,
    /// Row by row: the only way to read backwards in older browsers.
    Cursor,
}

/// A scan over a range of one object store.
#[derive(Clone)]
pub(super) struct Scan {
    store: &'static str,
    pub(super) lower: RangeEnd,
    pub(super) upper: RangeEnd,
    pub(super) reverse: bool,
    /// Uses `getAllRecords` if the browser has it.
    pub(super) uses_newest_api: bool,
    /// Maximum number of rows of the next page.
    pub(super) count: u32,
    method: ScanMethod,
    cursor: Option<IdbRequest>,
    ended: bool,
}

impl Scan {
    pub(super) fn new(store: &'static str, lower: RangeEnd, upper: RangeEnd, uses_newest_api: bool) -> Self {
        Self {
            store,
            lower,
            upper,
            reverse: false,
            uses_newest_api,
            count: 64,
            method: ScanMethod::TwoRequests,
            cursor: None,
            ended: false,
        }
    }

    /// Returns true if there are no more pages.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Requests the next page.
    pub(super) fn request(&mut self, transaction: &IdbTransaction) -> Result<ScriptStep, IdbFailure> {
        let store = transaction.object_store(self.store)?;
        self.method = match self.uses_newest_api && Reflect::has(&store, &"getAllRecords".into())? {
            true => ScanMethod::Records,
            false if self.reverse => ScanMethod::Cursor,
            false => ScanMethod::TwoRequests,
        };
        if let Some(step) = self.advance_cursor()? {
            return Ok(step);
        }
        let range = range(&self.lower, &self.upper)?.into();
        Ok(ScriptStep::Request(match self.method {
            ScanMethod::Records => vec![self.request_records(&store, &range)?],
            ScanMethod::TwoRequests => {
                vec![
                    store.get_all_keys_with_key_and_limit(&range, self.count)?,
                    store.get_all_with_key_and_limit(&range, self.count)?,
                ]
            }
            ScanMethod::Cursor => vec![self.request_cursor(&store, &range)?],
        }))
    }

    /// Returns the keys and values of the page that was requested.
    pub(super) fn rows(&mut self, answers: &[JsValue]) -> Result<Vec<(JsValue, JsValue)>, IdbFailure> {
        let mut rows = Vec::new();
        match (self.method, answers) {
            (ScanMethod::Records, [records]) => {
                let records: &Array = records.unchecked_ref();
                for at in 0..records.length() {
                    let record: KeyedRecord = records.get(at).unchecked_into();
                    rows.push((record.key(), record.value()));
                }
            }
            (ScanMethod::TwoRequests, [keys, values]) => {
                let (keys, values): (&Array, &Array) = (keys.unchecked_ref(), values.unchecked_ref());
                for at in 0..keys.length().min(values.length()) {
                    rows.push((keys.get(at), values.get(at)));
                }
            }
            (ScanMethod::Cursor, [cursor]) if cursor.is_object() => {
                let cursor: &KeyedRecord = cursor.unchecked_ref();
                rows.push((cursor.key(), cursor.value()));
            }
            _ => {}
        }
        let page_size = if self.method == ScanMethod::Cursor { 1 } else { self.count as usize };
        self.ended = rows.len() < page_size;
        if let Some((key, _)) = rows.last() {
            let next = RangeEnd::beyond(key.clone());
            if self.reverse {
                self.upper = next;
            } else {
                self.lower = next;
            }
            // IndexedDB rejects an empty range; then no row is left.
            self.ended |= range(&self.lower, &self.upper).is_err();
        }
        Ok(rows)
    }

    fn request_records(&self, store: &IdbObjectStore, range: &JsValue) -> Result<IdbRequest, JsValue> {
        let options = Object::new();
        set(&options, "query", range);
        set(&options, "count", &self.count.into());
        set(&options, "direction", &if self.reverse { "prev" } else { "next" }.into());
        store.unchecked_ref::<ObjectStoreExt>().get_all_records(&options)
    }

    fn request_cursor(&mut self, store: &IdbObjectStore, range: &JsValue) -> Result<IdbRequest, JsValue> {
        let request = store.open_cursor_with_range_and_direction(range, IdbCursorDirection::Prev)?;
        self.cursor = Some(request.clone());
        Ok(request)
    }

    /// Moves an open cursor.
    fn advance_cursor(&self) -> Result<Option<ScriptStep>, JsValue> {
        let Some(request) = &self.cursor else { return Ok(None) };
        request.result()?.unchecked_into::<IdbCursorWithValue>().continue_()?;
        Ok(Some(ScriptStep::Request(vec![request.clone()])))
    }
}
