//! Records and ranges as JavaScript objects: `LogRecord` in the types.

use crate::error::{Error, Result};
use crate::store::{AuditIndex, MAX_KEY, Query, Record, Table};
use crate::web::conversion::convert::set;
use crate::web::conversion::untrusted_value::{bytes, get, string};
use js_sys::{Object, Uint8Array};
use wasm_bindgen::JsValue;

/// Returns a whole number from 0 to 2^53 - 1, and none for any other value.
pub(super) fn whole_number(value: &JsValue) -> Option<u64> {
    #[allow(clippy::cast_precision_loss)]
    let is_exact = |number: &f64| *number >= 0.0 && number.fract() == 0.0 && *number <= MAX_KEY as f64;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    value.as_f64().filter(is_exact).map(|number| number as u64)
}

/// Returns a number; `Infinity` for one that is not exact in JavaScript.
pub(super) fn number_to_js(number: u64) -> JsValue {
    #[allow(clippy::cast_precision_loss)]
    JsValue::from_f64(if number > MAX_KEY { f64::INFINITY } else { number as f64 })
}

pub(super) fn query_to_js(query: &Query) -> JsValue {
    let object = Object::new();
    set(&object, "table", &JsValue::from_str(query.table.as_str()));
    set(&object, "from", &number_to_js(query.from));
    set(&object, "to", &number_to_js(query.to.min(MAX_KEY)));
    set(&object, "reverse", &JsValue::from_bool(query.reverse));
    set(&object, "limitBytes", &number_to_js(query.limit_bytes));
    object.into()
}

pub(super) fn record_to_js(record: &Record, replace: bool) -> JsValue {
    let object = Object::new();
    set(&object, "table", &JsValue::from_str(record.table.as_str()));
    set(&object, "key", &number_to_js(record.key));
    if let Some(last_key) = record.last_key {
        set(&object, "lastKey", &number_to_js(last_key));
    }
    if let Some(index) = &record.index {
        let fields = Object::new();
        set(&fields, "tool", &JsValue::from_str(&index.tool));
        set(&fields, "status", &JsValue::from_str(&index.status));
        set(&fields, "channel", &index.channel.as_deref().map_or(JsValue::NULL, JsValue::from_str));
        set(&fields, "at", &number_to_js(index.at.min(MAX_KEY)));
        set(&object, "index", &fields);
    }
    set(&object, "value", &Uint8Array::from(&*record.value));
    if replace {
        set(&object, "replace", &JsValue::TRUE);
    }
    object.into()
}

/// Reads a record.
///
/// # Errors
/// `invalid_input` for a member of a wrong type, `too_large`.
pub(super) fn record_from_js(value: &JsValue) -> Result<Record> {
    if !value.is_object() {
        return Err(Error::invalid("it is no object"));
    }
    let wrong = |what: &str| Error::invalid(format!("its {what}"));
    let table = get(value, "table")?.as_string().and_then(|name| Table::from_name(&name));
    let table = table.ok_or_else(|| wrong("`table` is none of \"log\", \"tool_invocations\" and \"runs\""))?;
    let key = whole_number(&get(value, "key")?).ok_or_else(|| wrong("`key` is no whole number"))?;
    let last_key = get(value, "lastKey")?;
    let last_key = if last_key.is_undefined() || last_key.is_null() {
        None
    } else {
        let last_key = whole_number(&last_key).filter(|last| *last >= key);
        Some(last_key.ok_or_else(|| wrong("`lastKey` is no whole number from its `key` on"))?)
    };
    let payload = bytes("`value`", &get(value, "value")?)?.ok_or_else(|| wrong("`value` is no Uint8Array"))?;
    Ok(Record { table, key, last_key, index: index_from_js(&get(value, "index")?)?, value: payload.into() })
}

fn index_from_js(value: &JsValue) -> Result<Option<AuditIndex>> {
    if value.is_undefined() || value.is_null() {
        return Ok(None);
    }
    let text = |name: &str| string(name, &get(value, name)?);
    let wrong = |name: &str| Error::invalid(format!("its `index.{name}` is missing or of a wrong type"));
    let channel = get(value, "channel")?;
    let has_channel = !channel.is_undefined() && !channel.is_null();
    Ok(Some(AuditIndex {
        tool: text("tool")?.ok_or_else(|| wrong("tool"))?,
        status: text("status")?.ok_or_else(|| wrong("status"))?,
        channel: if has_channel { Some(text("channel")?.ok_or_else(|| wrong("channel"))?) } else { None },
        at: whole_number(&get(value, "at")?).ok_or_else(|| wrong("at"))?,
    }))
}
