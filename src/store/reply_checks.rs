//! What every binding checks of the replies of a store that somebody else wrote.

use super::{MAX_KEY, Query, Record};

/// The least that [`Capabilities::max_value_bytes`](super::Capabilities) may be: a value of fewer bytes holds no message
/// worth storing.
pub const MIN_VALUE_BYTES: u64 = 4096;

/// Returns what is wrong with the records that a store returned for a query.
///
/// # Errors
/// A part of a sentence: "returned a record that was not asked for".
pub fn check_records(records: &[Record], query: &Query) -> Result<(), &'static str> {
    let is_asked_for = |record: &Record| {
        let last = record.last_key.unwrap_or(record.key);
        record.table == query.table
            && record.key <= query.to
            && last >= query.from
            && (record.key..=MAX_KEY).contains(&last)
    };
    if !records.iter().all(is_asked_for) {
        return Err("a record that was not asked for");
    }
    let is_ordered =
        |(one, next): (&Record, &Record)| if query.reverse { next.key < one.key } else { next.key > one.key };
    if !records.iter().zip(records.iter().skip(1)).all(is_ordered) {
        return Err("records that are not in the order of their keys");
    }
    Ok(())
}

/// Returns what is wrong with a page of so many items. `given` and `next` are the cursors of the question and the reply.
///
/// # Errors
/// As [`check_records`].
pub fn check_page(items: usize, limit: usize, given: Option<&str>, next: Option<&str>) -> Result<(), String> {
    if items > limit {
        return Err(format!("a page of {items} items, and {limit} were asked for"));
    }
    if next.is_some() && next == given {
        return Err("the cursor that it was given, so that the pages never end".into());
    }
    Ok(())
}
