//! The tables, and how they are made and changed.

use super::driver::{SqlColumns, SqlDialect, SqlDriver, SqlStatement};
use super::list::SessionList;
use super::statement::SqlWriter;
use crate::error::{Error, ErrorCode, Result};
use crate::store::{ListedBy, SessionRow};

/// The version of the schema that this build makes.
///
/// | version | what it has |
/// |---|---|
/// | 1 | the tables without the columns by which sessions are listed by recency |
/// | 2 | the columns, not all of them filled: a process that fills them may have been stopped |
/// | 3 | the columns filled from the heads |
const VERSION: usize = 3;

/// How often opening looks again, after another process made or changed the schema at the same time.
const ATTEMPTS: usize = 5;

/// The schema of a database.
enum SchemaState {
    /// 0 in an empty database.
    Version(usize),
    /// It has tables of our names that are not ours.
    Foreign,
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
        let dialect = driver.dialect();
        let (mut statements, next) = match version {
            0 => (create_tables(dialect), VERSION),
            1 => (add_list_columns(dialect), 2),
            2 => {
                fill_list_columns(driver).await?;
                (Vec::new(), 3)
            }
            VERSION => return Ok(()),
            _ => return Err(too_new(dialect, version)),
        };
        statements.push(set_version(dialect, next));
        attempts = attempts.saturating_add(1);
        match driver.transaction(statements).await {
            // Another process may have taken the same step in the meantime.
            Err(error) if attempts >= ATTEMPTS || !is_transient(&error) => return Err(error),
            _ => {}
        }
        if attempts > ATTEMPTS.saturating_add(VERSION) {
            return Err(Error::new(ErrorCode::Busy, "the schema of the database keeps changing; open it again"));
        }
    }
}

/// Whether the step may have failed because another process took it.
fn is_transient(error: &Error) -> bool {
    matches!(error.code, ErrorCode::StoreError | ErrorCode::Busy)
}

/// Reads what the database has. Before tables count as another application's, they are read twice: PostgreSQL finds the
/// name of a table that another process has just created, and its columns only with a later snapshot.
async fn read_state(driver: &dyn SqlDriver) -> Result<SchemaState> {
    match read_tables(driver).await? {
        SchemaState::Foreign => read_tables(driver).await,
        known => Ok(known),
    }
}

async fn read_tables(driver: &dyn SqlDriver) -> Result<SchemaState> {
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
    set.sql("UPDATE rethread_schema SET version = ").integer(version as u64);
    // A process of a later build may have gone on meanwhile.
    set.sql(" WHERE application = 'rethread' AND version < ").integer(version as u64);
    set.end()
}

/// Adds the columns by which sessions are listed by recency. Until they are filled, their sessions are the oldest of
/// the list.
fn add_list_columns(dialect: SqlDialect) -> Vec<SqlStatement> {
    let integer = integer_type(dialect);
    let column = |name: &str| format!("ALTER TABLE rethread_heads ADD COLUMN {name} {integer} NOT NULL DEFAULT 0");
    let texts = [column("updated_at"), column("archived"), format!("CREATE INDEX {RECENT_INDEX}")];
    texts.map(|sql| SqlStatement { sql, params: Vec::new(), columns: &[] }).into()
}

/// Fills the columns from the heads. What another process writes meanwhile stays. An encrypted head tells nothing here:
/// its session is among the oldest until its next write.
async fn fill_list_columns(driver: &dyn SqlDriver) -> Result<()> {
    let dialect = driver.dialect();
    let mut cursor: Option<String> = None;
    loop {
        let list = SessionList { cursor: cursor.as_deref(), ..SessionList::all(dialect) };
        let rows = driver.transaction(vec![list.heads()]).await?.pop().unwrap_or_default();
        let heads = list.read_heads(&rows)?;
        let mut updates = Vec::new();
        for SessionRow { id, head } in heads.iter().map(|listed| &listed.row) {
            let ListedBy { updated_at, is_archived } = ListedBy::of_encoded(&head.value);
            let mut update = SqlWriter::new(dialect);
            update.sql("UPDATE rethread_heads SET updated_at = ").integer(updated_at);
            update.sql(", archived = ").integer(u64::from(is_archived)).sql(" WHERE updated_at = 0 AND session = ");
            update.session(id).sql(" AND revision = ").integer(head.revision);
            updates.push(update.end());
        }
        let Some(last) = heads.last() else { return Ok(()) };
        cursor = Some(last.row.id.clone());
        driver.transaction(updates).await?;
    }
}

fn integer_type(dialect: SqlDialect) -> &'static str {
    match dialect {
        SqlDialect::Sqlite => "INTEGER",
        SqlDialect::Postgres => "BIGINT",
    }
}

/// Of the list of sessions by recency.
const RECENT_INDEX: &str =
    "rethread_heads_recent ON rethread_heads (archived, updated_at DESC, session) WHERE deleted = 0";

/// Text is stored as bytes: ids, names of tools and channels are any Unicode text.
///
/// `pending` is 1 only inside the transaction that writes the session. `last_key` is there of segments alone. A value
/// that is larger than the database takes is empty in its row and stands in `rethread_chunks`, where table 0 is the
/// head.
fn create_tables(dialect: SqlDialect) -> Vec<SqlStatement> {
    let integer = integer_type(dialect);
    let blob = match dialect {
        SqlDialect::Sqlite => "BLOB",
        SqlDialect::Postgres => "BYTEA",
    };
    let record = format!(
        "session {blob} NOT NULL, key {integer} NOT NULL, last_key {integer}, size {integer} NOT NULL, value {blob} NOT NULL"
    );
    let tables = [
        "rethread_schema (application VARCHAR(16) PRIMARY KEY, version INTEGER NOT NULL)".to_owned(),
        format!(
            "rethread_heads (session {blob} PRIMARY KEY, id {blob}, revision {integer} NOT NULL, deleted {integer} NOT NULL, \
             pending {integer} NOT NULL, channel {blob}, size {integer} NOT NULL, value {blob}, \
             updated_at {integer} NOT NULL DEFAULT 0, archived {integer} NOT NULL DEFAULT 0)"
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
        RECENT_INDEX,
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
            VERSION
        ),
    )
}
