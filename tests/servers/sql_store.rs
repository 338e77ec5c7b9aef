//! The SQL store over real SQLite.

#[path = "sql_store/model.rs"]
mod model;
#[path = "sql_store/sqlite.rs"]
pub mod sqlite;

use rethread::error::{Error, ErrorCode};
use rethread::session_head::SessionHead;
use rethread::store::conformance::{both, check_all, nothing_lost, nothing_returns_after_deletion, write_with_retry};
use rethread::store::sql::{SqlDialect, SqlLimits, SqlStore};
use rethread::store::{
    Appended, AuditIndex, AuditQuery, Batch, LogStore, Query, RecencyQuery, Record, RecordKind, StoreFuture,
    StoredHead, Table, recent_sessions, seal_record,
};
use sqlite::{SqliteDriver, TestFolder, block_on};
use std::path::{Path, PathBuf};
use std::rc::Rc;

fn store(driver: &Rc<SqliteDriver>) -> SqlStore {
    block_on(SqlStore::open(driver.clone())).unwrap()
}

fn refused(driver: &Rc<SqliteDriver>) -> Error {
    block_on(SqlStore::open(driver.clone())).err().unwrap()
}

#[test]
fn r46_sqlite_conforms_with_two_connections_on_one_file() {
    let folder = TestFolder::new();
    let file = folder.file("chat.sqlite");
    SqliteDriver::open(&file).execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
    block_on(check_all("sqlite", &|| {
        let driver = SqliteDriver::open(&file);
        driver.execute("PRAGMA synchronous = OFF");
        Box::pin(async move { Ok(Rc::new(SqlStore::open(driver).await?) as Rc<dyn LogStore>) })
    }))
    .unwrap();
}

fn record(key: u64, value: &[u8]) -> Record {
    Record { table: Table::Log, key, last_key: None, index: None, value: value.to_vec().into() }
}

fn audit_row(key: u64) -> Record {
    let index =
        AuditIndex { tool: format!("tool {}", key % 7), status: "done".into(), channel: Some("web".into()), at: key };
    Record { table: Table::ToolInvocations, index: Some(index), ..record(key, b"row") }
}

/// What the fixtures hold: every kind of row.
fn fill(store: &SqlStore) {
    let append = |session: &str, expected, batch, operation: &str| {
        let appended = block_on(store.append(session, expected, batch, operation)).unwrap();
        assert_eq!(appended, Appended::Revision(expected + 1));
    };
    let first = vec![
        record(0, b"first"),
        Record { last_key: Some(9), ..record(1, b"a segment") },
        audit_row(3),
        Record { table: Table::Runs, ..record(4, b"a run") },
    ];
    append("chat", 0, Batch { head: b"head 1".as_slice().into(), put: first, ..Batch::default() }, "one");
    let second = Batch {
        head: vec![7; 3000].into(),
        channel: Some("web".into()),
        put: vec![record(10, &[8; 2500])],
        remove: vec![(Table::Runs, 4)],
        ..Batch::default()
    };
    append("chat", 1, second, "two");
    append("deleted", 0, Batch { head: b"gone".as_slice().into(), ..Batch::default() }, "three");
    block_on(store.delete_session("deleted")).unwrap();
}

fn check_filled(store: &SqlStore) {
    let head = block_on(store.head("chat")).unwrap();
    assert_eq!(head, Some(StoredHead { revision: 2, value: vec![7; 3000].into() }));
    let log = block_on(store.read("chat", Query::all(Table::Log))).unwrap();
    let segment = Record { last_key: Some(9), ..record(1, b"a segment") };
    assert_eq!(log, [record(0, b"first"), segment, record(10, &[8; 2500])]);
    assert_eq!(block_on(store.read("chat", Query::all(Table::Runs))).unwrap(), []);
    let audited = block_on(store.invocations(&AuditQuery { tool: Some("tool 3".into()), ..AuditQuery::default() }));
    assert_eq!(audited.unwrap().items, [("chat".to_owned(), audit_row(3))]);
    let listed = block_on(store.sessions(None, 0, Some("web"))).unwrap();
    assert_eq!(listed.items.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["chat"]);
    let late = block_on(store.append("deleted", 1, Batch::default(), "late")).unwrap();
    assert_eq!(late, Appended::Conflict(2), "the tombstone is lost");
    let repeated = block_on(store.append("chat", 0, Batch::default(), "one")).unwrap();
    assert_eq!(repeated, Appended::Revision(1), "the operations are forgotten");
}

#[test]
fn stored_data_survives_the_connection() {
    let folder = TestFolder::new();
    let file = folder.file("chat.sqlite");
    let first = store(&SqliteDriver::open(&file));
    fill(&first);
    block_on(first.close()).unwrap();
    let second = store(&SqliteDriver::open(&file));
    check_filled(&second);
    let closed = block_on(first.head("chat")).unwrap_err();
    assert_eq!((closed.code, closed.message.contains("sqlite")), (ErrorCode::Closed, true));
}

/// The schema versions that databases have. Version 2 is one on the way to 3.
const VERSIONS: &[usize] = &[1, 3];

fn fixture(version: usize) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/servers/fixtures/schema-{version}.sqlite"))
}

/// A change of the schema adds a step to `src/store/sql/schema.rs`, and a file for the version that it leads to. The
/// files of older versions stay as they are.
#[test]
#[ignore = "writes the file of a new schema version"]
fn write_the_fixture() {
    let Some(version) = VERSIONS.last().copied() else { return };
    let driver = SqliteDriver::over(
        rusqlite::Connection::open(fixture(version)).unwrap(),
        SqlLimits { max_value_bytes: 1024, ..SqlLimits::default() },
    );
    driver.execute("PRAGMA page_size = 512");
    fill(&store(&driver));
}

#[test]
fn files_of_every_schema_version_are_opened() {
    let folder = TestFolder::new();
    for version in VERSIONS {
        let file = folder.file(&version.to_string());
        std::fs::copy(fixture(*version), &file).unwrap();
        let store = store(&SqliteDriver::open(&file));
        check_filled(&store);
        let next = Batch { head: b"head 3".as_slice().into(), replace: vec![record(10, b"short")], ..Batch::default() };
        assert_eq!(block_on(store.append("chat", 2, next, "three")).unwrap(), Appended::Revision(3));
        let log = block_on(store.read("chat", Query { from: 10, ..Query::all(Table::Log) })).unwrap();
        assert_eq!(log, [record(10, b"short")], "a chunk was left");
    }
}

/// A head whose history changed last at a time.
fn head_of(id: &str, updated_at: u64, is_archived: bool) -> Batch {
    let head = SessionHead { updated_at, is_archived, ..SessionHead::new(id, 1) };
    let mut batch = Batch { head: seal_record(RecordKind::Head, &head), ..Batch::default() };
    batch.describe(&head);
    batch
}

fn recent(store: &SqlStore, archived: Option<bool>, limit: usize) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let query = RecencyQuery { archived, cursor, limit, ..RecencyQuery::default() };
        let page = block_on(recent_sessions(store, &query)).unwrap();
        ids.extend(page.items.into_iter().map(|row| row.id));
        cursor = page.cursor;
        if cursor.is_none() {
            return ids;
        }
    }
}

/// Makes of a database what version 1 of the schema was.
const TO_VERSION_1: &str = "DROP INDEX rethread_heads_recent; ALTER TABLE rethread_heads DROP COLUMN updated_at; \
    ALTER TABLE rethread_heads DROP COLUMN archived; UPDATE rethread_schema SET version = 1";

/// A process that filled the columns was stopped after some of them.
const TO_VERSION_2: &str = "UPDATE rethread_heads SET updated_at = 0, archived = 0 WHERE updated_at % 3 > 0; \
    UPDATE rethread_schema SET version = 2";

#[test]
fn r79_sessions_of_an_older_schema_are_listed_by_recency() {
    let driver = SqliteDriver::in_memory(SqlLimits { max_value_bytes: 64, ..SqlLimits::default() });
    let first = store(&driver);
    // More than are filled at once; each head is longer than a value.
    let ids: Vec<String> = (100..350).map(|at| format!("session-{at}-{}", "x".repeat(60))).collect();
    for (at, id) in (0..).zip(&ids) {
        block_on(first.append(id, 0, head_of(id, 1_000 + (at * 7_919) % 1_000, at % 5 == 0), "one")).unwrap();
    }
    block_on(first.append("damaged", 0, Batch { head: b"head".as_slice().into(), ..Batch::default() }, "one")).unwrap();
    let [open, archived, all] = [Some(false), Some(true), None].map(|archived| recent(&first, archived, 1000));
    assert_eq!((open.len(), archived.len(), all.len()), (201, 50, 251));
    assert_eq!(all.last().unwrap(), "damaged");
    for older in [TO_VERSION_1, TO_VERSION_2] {
        driver.execute(older);
        let second = store(&driver);
        assert_eq!(recent(&second, Some(false), 7), open);
        assert_eq!(recent(&second, Some(true), 1), archived);
        assert_eq!(recent(&second, None, 1000), all);
    }
}

#[test]
fn r79_a_session_that_an_older_build_begins_again_is_listed_though_it_was_archived() {
    let driver = SqliteDriver::in_memory(SqlLimits::default());
    let store = store(&driver);
    block_on(store.append("s", 0, head_of("s", 5, true), "one")).unwrap();
    block_on(store.delete_session("s")).unwrap();
    // An older build writes none of the columns of the list.
    driver.execute("UPDATE rethread_heads SET deleted = 0, size = 1, value = X'00'");
    assert_eq!((recent(&store, Some(false), 10), recent(&store, Some(true), 10).len()), (vec!["s".to_owned()], 0));
}

#[test]
fn r48_a_schema_that_a_later_build_made_meanwhile_is_not_set_back() {
    let driver = SqliteDriver::in_memory(SqlLimits::default());
    block_on(store(&driver).append("s", 0, head_of("s", 5, false), "one")).unwrap();
    // The later build goes on while this one fills the columns.
    driver.execute(
        "UPDATE rethread_heads SET updated_at = 0; UPDATE rethread_schema SET version = 2; \
         CREATE TRIGGER later AFTER UPDATE ON rethread_heads BEGIN UPDATE rethread_schema SET version = 4; END",
    );
    assert_eq!(refused(&driver).code, ErrorCode::UnsupportedVersion);
}

#[test]
fn r79_a_page_by_recency_is_read_from_its_index() {
    let driver = SqliteDriver::in_memory(SqlLimits::default());
    let store = store(&driver);
    for (at, id) in (1..).zip(["a", "b", "c", "d"]) {
        block_on(store.append(id, 0, head_of(id, at, at > 2), "one")).unwrap();
    }
    for cursor in [None, Some("9:s".to_owned())] {
        for (archived, parts) in [(Some(false), 1), (Some(true), 1), (None, 2)] {
            let query = RecencyQuery { archived, limit: 1, cursor: cursor.clone(), ..RecencyQuery::default() };
            assert_eq!(block_on(recent_sessions(&store, &query)).unwrap().items.len(), 1);
            let plan = driver.plan();
            assert_eq!(
                plan.matches("SEARCH rethread_heads USING INDEX rethread_heads_recent").count(),
                parts,
                "{plan}"
            );
        }
    }
}

#[test]
fn r79_a_session_whose_head_is_lost_is_the_oldest() {
    let driver = SqliteDriver::in_memory(SqlLimits::default());
    let store = store(&driver);
    for (at, id) in (1..).zip(["a", "b", "c", "d", "e"]) {
        let batch = Batch { put: vec![record(0, b"r")], ..head_of(id, at * 10, false) };
        block_on(store.append(id, 0, batch, "one")).unwrap();
    }
    driver.execute("DELETE FROM rethread_heads WHERE session IN (CAST('b' AS BLOB), CAST('e' AS BLOB))");
    for limit in 1..7 {
        assert_eq!(recent(&store, Some(false), limit), ["d", "c", "a", "b", "e"], "in pages of {limit}");
        assert_eq!(recent(&store, None, limit), ["d", "c", "a", "b", "e"], "in pages of {limit}");
        assert!(recent(&store, Some(true), limit).is_empty());
    }
}

#[test]
fn r47_two_connections_lose_nothing() {
    let folder = TestFolder::new();
    let file = folder.file("chat.sqlite");
    let open = || {
        let driver = SqliteDriver::open(&file);
        driver.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
        store(&driver)
    };
    let (one, two) = (open(), open());
    let (first, second) = block_on(both(write_with_retry(&one, "s", 0, 100), write_with_retry(&two, "s", 1, 100)));
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    block_on(nothing_lost(&two, "s", 100)).unwrap();
}

#[test]
fn r47_writers_in_threads_lose_nothing() {
    let folder = TestFolder::new();
    let file = folder.file("chat.sqlite");
    SqliteDriver::open(&file).execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
    // They open the empty file at once, too.
    let write = |writer: u8| {
        let driver = SqliteDriver::open(&file);
        driver.execute("PRAGMA synchronous = OFF");
        block_on(write_with_retry(&store(&driver), "s", writer, 100)).unwrap()
    };
    std::thread::scope(|scope| {
        let threads = [0, 1].map(|writer| scope.spawn(move || write(writer)));
        for thread in threads {
            thread.join().unwrap();
        }
    });
    block_on(nothing_lost(&store(&SqliteDriver::open(&file)), "s", 100)).unwrap();
}

#[test]
fn a_failure_at_any_statement_changes_nothing() {
    let limits = SqlLimits { max_value_bytes: 64, max_params: 24 };
    let driver = SqliteDriver::in_memory(limits);
    let store = store(&driver);
    let before = Batch {
        head: vec![1; 100].into(),
        put: (0..40).map(|key| record(key * 2, &[1; 70])).chain((0..9).map(audit_row)).collect(),
        ..Batch::default()
    };
    block_on(store.append("s", 0, before, "first")).unwrap();
    let batch = Batch {
        head: vec![2; 300].into(),
        channel: Some("web".into()),
        put: (100..140).map(|key| record(key * 2, &[2; 90])).chain((20..40).map(audit_row)).collect(),
        replace: vec![record(2, b"replaced"), audit_row(4)],
        remove: (4..20).map(|key| (Table::Log, key * 2)).collect(),
        ..Batch::default()
    };
    let dump = driver.dump();
    for at in 0..1000 {
        driver.fail_at.set(Some(at));
        match block_on(store.append("s", 1, batch.clone(), "second")) {
            Err(error) => assert_eq!(error.code, ErrorCode::StoreError),
            Ok(appended) => {
                assert_eq!(appended, Appended::Revision(2));
                assert!(at > 20, "the append has only {at} statements");
                let log = block_on(store.read("s", Query::all(Table::Log))).unwrap();
                assert_eq!(log.len(), 40 - 16 + 40);
                return;
            }
        }
        assert_eq!(driver.dump(), dump, "a failure at statement {at} changed something");
    }
    panic!("the append never succeeded");
}

#[test]
fn a_failed_deletion_changes_nothing() {
    let driver = SqliteDriver::in_memory(SqlLimits::default());
    let store = store(&driver);
    fill(&store);
    let dump = driver.dump();
    for at in 0..6 {
        driver.fail_at.set(Some(at));
        assert!(block_on(store.delete_session("chat")).is_err());
        assert_eq!(driver.dump(), dump, "a failure at statement {at} changed something");
    }
    block_on(store.delete_session("chat")).unwrap();
    assert!(block_on(store.sessions(None, 0, None)).unwrap().items.is_empty());
}

#[test]
fn r48_a_lost_head_is_reported_and_listed() {
    let driver = SqliteDriver::in_memory(SqlLimits::default());
    let store = store(&driver);
    for session in ["a", "b", "c", "d", "e"] {
        let batch =
            Batch { head: session.into(), put: (0..50).map(|key| record(key, b"r")).collect(), ..Batch::default() };
        block_on(store.append(session, 0, batch, "one")).unwrap();
    }
    driver.execute("DELETE FROM rethread_heads WHERE session IN (CAST('b' AS BLOB), CAST('e' AS BLOB))");
    let damaged = StoredHead { revision: 0, value: Vec::new().into() };
    assert_eq!(block_on(store.head("b")).unwrap(), Some(damaged.clone()));
    assert_eq!(block_on(store.head("x")).unwrap(), None);
    for limit in 1..7 {
        let (mut ids, mut cursor) = (Vec::new(), None);
        loop {
            let page = block_on(store.sessions(cursor.as_deref(), limit, None)).unwrap();
            assert!(page.items.iter().all(|row| (row.head == damaged) == ["b", "e"].contains(&row.id.as_str())));
            ids.extend(page.items.into_iter().map(|row| row.id));
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(ids, ["a", "b", "c", "d", "e"], "in pages of {limit}");
    }
    // Its records are not overwritten, and a head can be written beyond them.
    let blind = Batch { put: vec![record(0, b"x")], ..Batch::default() };
    assert_eq!(block_on(store.append("b", 0, blind, "two")).unwrap(), Appended::Occupied);
    assert_eq!(block_on(store.head("b")).unwrap(), Some(damaged));
    let rebuilt = Batch { head: b"new".as_slice().into(), at_least: 90, ..Batch::default() };
    assert_eq!(block_on(store.append("b", 0, rebuilt, "three")).unwrap(), Appended::Revision(90));
    block_on(store.delete_session("e")).unwrap();
    assert_eq!(block_on(store.head("e")).unwrap(), None);
}

#[test]
fn r07_nothing_returns_after_the_deletion_of_a_session_with_a_damaged_head() {
    for damage in [
        "DELETE FROM rethread_heads WHERE session = CAST('{}' AS BLOB)",
        "UPDATE rethread_heads SET value = x'00' WHERE session = CAST('{}' AS BLOB)",
        "UPDATE rethread_heads SET value = NULL, size = 7 WHERE session = CAST('{}' AS BLOB)",
    ] {
        let driver = SqliteDriver::in_memory(SqlLimits::default());
        let store = store(&driver);
        let damaged = driver.clone();
        let damage = move |session: String| -> StoreFuture<'static, ()> {
            damaged.execute(&damage.replace("{}", &session));
            Box::pin(async { Ok(()) })
        };
        block_on(nothing_returns_after_deletion((&store, &store), "s", &damage)).unwrap();
    }
}

#[test]
fn a_batch_rejected_as_occupied_at_its_last_record_writes_no_head() {
    let driver = SqliteDriver::in_memory(SqlLimits { max_params: 24, ..SqlLimits::default() });
    let store = store(&driver);
    let all = |first: u64| Batch { put: (first..60).map(|key| record(key * 2, b"v")).collect(), ..Batch::default() };
    block_on(store.append("s", 0, all(59), "one")).unwrap();
    driver.execute("DELETE FROM rethread_heads; DELETE FROM rethread_operations");
    let dump = driver.dump();
    assert_eq!(block_on(store.append("s", 0, all(0), "two")).unwrap(), Appended::Occupied);
    assert_eq!(driver.dump(), dump);
}

#[test]
fn unusable_databases_are_rejected_and_unchanged() {
    let folder = TestFolder::new();
    let foreign = [
        "CREATE TABLE rethread_log (id INTEGER)",
        "CREATE TABLE rethread_schema (name TEXT)",
        "CREATE TABLE rethread_schema (application TEXT, version TEXT)",
        "CREATE TABLE rethread_schema (application TEXT, version TEXT); INSERT INTO rethread_schema VALUES ('rethread', 'x')",
        "CREATE TABLE rethread_schema (application TEXT, version INTEGER); INSERT INTO rethread_schema VALUES ('rethread', -1)",
        "CREATE TABLE rethread_schema (application TEXT, version INTEGER); INSERT INTO rethread_schema VALUES ('other', 1)",
    ];
    for (at, sql) in foreign.iter().enumerate() {
        let driver = SqliteDriver::open(&folder.file(&format!("foreign-{at}")));
        driver.execute(sql);
        let dump = driver.dump();
        let error = refused(&driver);
        assert_eq!((error.code, error.message.contains("sqlite")), (ErrorCode::ConfigInvalid, true), "{sql}: {error}");
        assert_eq!(driver.dump(), dump, "{sql}");
    }
    let newer = SqliteDriver::open(&folder.file("newer"));
    fill(&store(&newer));
    newer.execute("UPDATE rethread_schema SET version = 99");
    let dump = newer.dump();
    let error = refused(&newer);
    assert_eq!((error.code, error.message.contains("sqlite")), (ErrorCode::UnsupportedVersion, true), "{error}");
    assert_eq!(newer.dump(), dump);
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    std::fs::copy(text, folder.file("text")).unwrap();
    assert_eq!(refused(&SqliteDriver::open(&folder.file("text"))).code, ErrorCode::StoreError);
}

#[test]
fn a_read_only_file_can_be_read_but_not_written() {
    let folder = TestFolder::new();
    let file = folder.file("chat.sqlite");
    fill(&store(&SqliteDriver::open(&file)));
    let driver = SqliteDriver::read_only(&file);
    let read_only = store(&driver);
    assert_eq!(block_on(read_only.head("chat")).unwrap().map(|head| head.revision), Some(2));
    let dump = driver.dump();
    let refused_append = block_on(read_only.append("chat", 2, Batch::default(), "three")).unwrap_err();
    assert_eq!((refused_append.code, refused_append.message.contains("SQLite")), (ErrorCode::StoreError, true));
    assert_eq!(block_on(read_only.delete_session("chat")).unwrap_err().code, ErrorCode::StoreError);
    assert_eq!(driver.dump(), dump);
    SqliteDriver::open(&folder.file("empty"));
    assert_eq!(refused(&SqliteDriver::read_only(&folder.file("empty"))).code, ErrorCode::StoreError);
}

#[test]
fn unusable_drivers_are_rejected() {
    assert_eq!(SqlDialect::from_name("sqlite").unwrap(), SqlDialect::Sqlite);
    let error = SqlDialect::from_name("mysql").unwrap_err();
    assert_eq!((error.code, error.message.contains("mysql")), (ErrorCode::ConfigInvalid, true));
    for limits in
        [SqlLimits { max_params: 3, ..SqlLimits::default() }, SqlLimits { max_value_bytes: 0, ..SqlLimits::default() }]
    {
        assert_eq!(refused(&SqliteDriver::in_memory(limits)).code, ErrorCode::ConfigInvalid);
    }
    let closed = SqliteDriver::in_memory(SqlLimits::default());
    block_on(rethread::store::sql::SqlDriver::close(&*closed)).unwrap();
    assert_eq!(refused(&closed).code, ErrorCode::Closed);
}

#[test]
fn r13_audit_queries_use_an_index() {
    let folder = TestFolder::new();
    let driver = SqliteDriver::open(&folder.file("chat.sqlite"));
    let store = store(&driver);
    let batch = Batch { put: (0..500).map(audit_row).collect(), ..Batch::default() };
    block_on(store.append("s", 0, batch, "one")).unwrap();
    let any = AuditQuery::default;
    let cases = [
        (AuditQuery { tool: Some("tool 3".into()), ..any() }, "rethread_tool_invocations_tool"),
        (AuditQuery { status: Some("done".into()), ..any() }, "rethread_tool_invocations_status"),
        (AuditQuery { channel: Some("web".into()), ..any() }, "rethread_tool_invocations_channel"),
        (AuditQuery { since: Some(490), ..any() }, "rethread_tool_invocations_at"),
    ];
    for (query, index) in cases {
        block_on(store.invocations(&query)).unwrap();
        let plan = driver.plan();
        assert!(plan.contains(index), "{query:?} is answered by {plan}");
    }
}
