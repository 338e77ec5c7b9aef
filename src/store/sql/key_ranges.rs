//! Sets of keys as conditions: neighbouring keys are one range, and a statement holds as many ranges as it has
//! parameters for.

use super::statement::SqlWriter;
use super::tables::table_number;
use crate::store::Table;

/// Neighbouring keys of one table, from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyRange {
    pub(super) table: Table,
    pub(super) first: u64,
    pub(super) last: u64,
}

/// Parameters of [`write_condition`], at most.
pub(super) const CONDITION_PARAMS: usize = 3;

/// Joins keys into ranges, which are sorted by table and key.
pub(super) fn key_ranges(mut keys: Vec<(Table, u64)>) -> Vec<KeyRange> {
    keys.sort_unstable();
    keys.dedup();
    let mut ranges: Vec<KeyRange> = Vec::new();
    for (table, key) in keys {
        match ranges.last_mut() {
            Some(range) if range.table == table && range.last.checked_add(1) == Some(key) => range.last = key,
            _ => ranges.push(KeyRange { table, first: key, last: key }),
        }
    }
    ranges
}

/// Writes the conditions of several ranges, joined by OR. `with_table` compares the table too, as `rethread_chunks`
/// needs it.
pub(super) fn write_conditions(out: &mut SqlWriter, ranges: &[KeyRange], with_table: bool) {
    for (at, range) in ranges.iter().enumerate() {
        out.sql(if at == 0 { "(" } else { " OR (" });
        if with_table {
            out.sql("record_table = ").integer(table_number(range.table)).sql(" AND ");
        }
        write_condition(out, range);
        out.sql(")");
    }
}

/// Writes the condition that `key` is in the range.
pub(super) fn write_condition(out: &mut SqlWriter, range: &KeyRange) {
    if range.first == range.last {
        out.sql("key = ").integer(range.first);
    } else {
        out.sql("key BETWEEN ").integer(range.first).sql(" AND ").integer(range.last);
    }
}
