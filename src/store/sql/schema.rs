//! The tables, and how they are made and changed.

use super::driver::{SqlColumns, SqlDialect, SqlDriver, SqlStatement};
use super::statement::SqlWriter;
use crate::error::{Error, ErrorCode, Result};
use crate::store::Table;

/// The statements that lead from one schema version to the next.
type SchemaStep = fn(SqlDialect) -> Vec<SqlStatement>;

/// The steps, from an empty database on. The version of a schema is the number of steps that made it.
const STEPS: &[SchemaStep] = &[create_tables];

/// How often opening looks again, after another process made or changed the schema at the same time.
const ATTEMPTS: usize = 5;

/// The schema of a database.
enum SchemaState {
    /// This many steps have made it; none in an empty database.
    Version(usize),
    /// It has tables of our names that are not ours.
    Foreign,
}

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

/// Makes the tables, or brings those of an older version up to date.
///
/// # Errors `unsupported_version` if a newer version made them, `config_invalid` if they are not ours, and the driver's
/// own. Nothing is written then.
pub(super) async fn prepare(driver: &dyn SqlDriver) -> Result<()> {
    let mut attempts = 0_usize;
    loop {
        let version = match read_state(driver).await? {
            SchemaState::Foreign => return Err(foreign(driver.dialect())),
            SchemaState::Version(version) => version,
        };
        if version > STEPS.len() {
            return Err(too_new(driver.dialect(), version));
        }
        let Some(step) = STEPS.get(version) else { return Ok(()) };
        let mut statements = step(driver.dialect());
        statements.push(set_version(driver.dialect(), version.saturating_add(1)));
        attempts = attempts.saturating_add(1);
        match driver.transaction(statements).await {
            // Another process may have taken the same step in the meantime.
            Err(error) if attempts >= ATTEMPTS || !is_transient(&error) => return Err(error),
            _ => {}
        }
        if attempts > ATTEMPTS.saturating_add(STEPS.len()) {
            return Err(Error::new(ErrorCode::Busy, "the schema of the database keeps changing; open it again"));
        }
    }
}

/// Whether the step may have failed because another process took it.
fn is_transient(error: &Error) -> bool {
    matches!(error.code, ErrorCode::StoreError | ErrorCode::Busy)
}

async fn read_state(driver: &dyn SqlDriver) -> Result<SchemaState> {
    let dialect = driver.dialect();
    let found = driver.transaction(vec![find_tables(dialect)]).await?;
    let row = found.first().and_then(|rows| rows.first()).map_or(&[][..], Vec::as_slice);
    let columns = SqlColumns::new(dialect, row);
    match (columns.integer(0)?.unwrap_or(0), columns.integer(1)?.unwrap_or(0)) {
        (0, 0) => return Ok(SchemaState::Version(0)),
        (2, _) => {}
        _ => return Ok(SchemaState::Foreign),
    }
    let mut version = SqlWriter::new(dialect);
    version.sql("SELECT version FROM rethread_schema WHERE application = 'rethread'");
    let rows = driver.transaction(vec![version.query(&["version"])]).await?;
    let version = match rows.first().and_then(|rows| rows.first()) {
        Some(row) => SqlColumns::new(dialect, row).integer(0).unwrap_or_default(),
        None => None,
    };
    let version = version.and_then(|version| usize::try_from(version).ok()).filter(|version| *version > 0);
    Ok(version.map_or(SchemaState::Foreign, SchemaState::Version))
}

/// Looks for our tables. `schema` is 2 for the one with the version, 1 for another one of its name; `others` counts the
/// rest.
fn find_tables(dialect: SqlDialect) -> SqlStatement {
    let mut find = SqlWriter::new(dialect);
    match dialect {
        SqlDialect::Sqlite => find.sql(
            "SELECT COALESCE(SUM(CASE WHEN name <> 'rethread_schema' THEN 0 \
             WHEN sql LIKE '%application%' AND sql LIKE '%version%' THEN 2 ELSE 1 END), 0) AS schema, \
             COALESCE(SUM(name <> 'rethread_schema'), 0) AS others \
             FROM sqlite_master WHERE name IN ('rethread_schema', 'rethread_heads', 'rethread_operations', 'rethread_log', \
             'rethread_tool_invocations', 'rethread_runs', 'rethread_chunks')",
        ),
        // Looks through the search path, as every other statement does.
        SqlDialect::Postgres => find.sql(
            "SELECT CASE WHEN to_regclass('rethread_schema') IS NULL THEN 0 \
             WHEN (SELECT COUNT(*) FROM pg_attribute WHERE attrelid = to_regclass('rethread_schema') \
             AND attname IN ('application', 'version')) = 2 THEN 2 ELSE 1 END AS schema, \
             CASE WHEN COALESCE(to_regclass('rethread_heads'), to_regclass('rethread_operations'), \
             to_regclass('rethread_log'), to_regclass('rethread_tool_invocations'), to_regclass('rethread_runs'), \
             to_regclass('rethread_chunks')) IS NULL THEN 0 ELSE 1 END AS others",
        ),
    };
    find.query(&["schema", "others"])
}

fn set_version(dialect: SqlDialect, version: usize) -> SqlStatement {
    let mut set = SqlWriter::new(dialect);
    set.sql("UPDATE rethread_schema SET version = ").integer(version as u64).sql(" WHERE application = 'rethread'");
    set.end()
}

/// Version 1. Text is stored as bytes: ids, names of tools and channels are any Unicode text.
///
/// `pending` is 1 only inside the transaction that writes the session. `last_key` is there of segments alone. A value
/// that is larger than the database takes is empty in its row and stands in `rethread_chunks`, where table 0 is the
/// head.
fn create_tables(dialect: SqlDialect) -> Vec<SqlStatement> {
    let (blob, integer) = match dialect {
        SqlDialect::Sqlite => ("BLOB", "INTEGER"),
        SqlDialect::Postgres => ("BYTEA", "BIGINT"),
    };
    let record = format!(
        "session {blob} NOT NULL, key {integer} NOT NULL, last_key {integer}, size {integer} NOT NULL, value {blob} NOT NULL"
    );
    let tables = [
        "rethread_schema (application VARCHAR(16) PRIMARY KEY, version INTEGER NOT NULL)".to_owned(),
        format!(
            "rethread_heads (session {blob} PRIMARY KEY, id {blob}, revision {integer} NOT NULL, deleted {integer} NOT NULL, \
             pending {integer} NOT NULL, channel {blob}, size {integer} NOT NULL, value {blob})"
        ),
        format!(
            "rethread_operations (session {blob} NOT NULL, revision {integer} NOT NULL, operation {blob} NOT NULL, \
             PRIMARY KEY (session, revision))"
        ),
        format!("rethread_log ({record}, PRIMARY KEY (session, key))"),
        format!(
            "rethread_tool_invocations ({record}, tool {blob}, status {blob}, channel {blob}, at {integer}, \
             PRIMARY KEY (session, key))"
        ),
        format!("rethread_runs ({record}, PRIMARY KEY (session, key))"),
        format!(
            "rethread_chunks (session {blob} NOT NULL, record_table {integer} NOT NULL, key {integer} NOT NULL, \
             part {integer} NOT NULL, value {blob} NOT NULL, PRIMARY KEY (session, record_table, key, part))"
        ),
    ];
    // PostgreSQL indexes no value above 2,704 bytes, and a model may name a tool as it likes: names are indexed by
    // their beginning.
    let indexes = [
        "rethread_heads_channel ON rethread_heads (substr(channel, 1, 200), session) WHERE channel IS NOT NULL",
        "rethread_log_last_key ON rethread_log (session, last_key) WHERE last_key IS NOT NULL",
        "rethread_tool_invocations_last_key ON rethread_tool_invocations (session, last_key) WHERE last_key IS NOT NULL",
        "rethread_runs_last_key ON rethread_runs (session, last_key) WHERE last_key IS NOT NULL",
        "rethread_tool_invocations_tool ON rethread_tool_invocations (substr(tool, 1, 200), session, key)",
        "rethread_tool_invocations_status ON rethread_tool_invocations (substr(status, 1, 200), session, key)",
        "rethread_tool_invocations_channel ON rethread_tool_invocations (substr(channel, 1, 200), session, key)",
        "rethread_tool_invocations_at ON rethread_tool_invocations (at, session, key)",
    ];
    let tables = tables.iter().map(|table| format!("CREATE TABLE {table}"));
    let indexes = indexes.iter().map(|index| format!("CREATE INDEX {index}"));
    let version = "INSERT INTO rethread_schema (application, version) VALUES ('rethread', 0)".to_owned();
    let texts = tables.chain(indexes).chain([version]);
    texts.map(|sql| SqlStatement { sql, params: Vec::new(), columns: &[] }).collect()
}

fn foreign(dialect: SqlDialect) -> Error {
    Error::config(format!(
        "the {} store: the database has tables named `rethread_…` that rethread did not make; give it another database or schema",
        dialect.as_str()
    ))
}

fn too_new(dialect: SqlDialect, version: usize) -> Error {
    Error::new(
        ErrorCode::UnsupportedVersion,
        format!(
            "the {} store: its schema has version {version}, and this version of rethread knows {} at most; update rethread",
            dialect.as_str(),
            STEPS.len()
        ),
    )
}
