//! What the tables of records are named, and numbered in `rethread_chunks`.

use crate::store::Table;

/// The name of a table in the database.
pub(super) fn table_name(table: Table) -> &'static str {
    match table {
        Table::Log => "rethread_log",
        Table::ToolInvocations => "rethread_tool_invocations",
        Table::Runs => "rethread_runs",
    }
}

/// The number of a table in `rethread_chunks`. 0 is the head.
pub(super) fn table_number(table: Table) -> u64 {
    match table {
        Table::Log => 1,
        Table::ToolInvocations => 2,
        Table::Runs => 3,
    }
}
