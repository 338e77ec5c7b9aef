//! The SQL store and the memory store do the same, whatever they are asked.

use super::sqlite::{SqliteDriver, block_on};
use proptest::prelude::*;
use rethread::store::sql::{SqlLimits, SqlStore};
use rethread::store::{
    AuditIndex, AuditQuery, Batch, ListedBy, LogStore, MAX_KEY, MemoryStore, Query, RecencyQuery, Record, Table,
    recent_sessions,
};

const SESSIONS: [&str; 3] = ["a", "a\u{0}b", "b"];
const NAMES: [&str; 3] = ["pay", "pay\u{0}", "read"];
const TABLES: [Table; 3] = [Table::Log, Table::ToolInvocations, Table::Runs];

#[derive(Clone, Debug)]
enum Operation {
    /// An append; `stale` is what its expected revision is off by.
    Append {
        session: usize,
        name: u8,
        stale: u64,
        batch: Batch,
    },
    Delete {
        session: usize,
    },
    Read {
        session: usize,
        query: Query,
    },
    Audit(AuditQuery),
    Sessions {
        limit: usize,
        channel: Option<usize>,
    },
    Recent(RecencyQuery),
}

fn keys() -> impl Strategy<Value = u64> {
    prop_oneof![0..12_u64, Just(1 << 40)]
}

fn record() -> impl Strategy<Value = Record> {
    let index = (0..NAMES.len(), any::<bool>(), 0..3_u64);
    let parts = (
        0..TABLES.len(),
        keys(),
        prop::option::weighted(0.2, 0..6_u64),
        index,
        prop::collection::vec(any::<u8>(), 0..30),
    );
    parts.prop_map(|(table, key, width, (tool, has_channel, at), value)| {
        let table = TABLES[table];
        let index = (table == Table::ToolInvocations).then(|| AuditIndex {
            tool: NAMES[tool].into(),
            status: NAMES[(tool + 1) % 3].into(),
            channel: has_channel.then(|| "web".into()),
            at,
        });
        Record { table, key, last_key: width.map(|width| key + width), index, value: value.into() }
    })
}

fn batch() -> impl Strategy<Value = Batch> {
    let head = prop::collection::vec(any::<u8>(), 0..20);
    let removed = prop::collection::vec((0..TABLES.len(), keys()), 0..12);
    let records = || prop::collection::vec(record(), 0..12);
    let listed_by = (prop_oneof![0..3_u64, Just(MAX_KEY)], any::<bool>(), any::<bool>());
    (head, listed_by, prop_oneof![4 => Just(0), 1 => 0..40_u64], records(), records(), removed).prop_map(
        |(head, (updated_at, is_archived, has_channel), at_least, put, replace, removed)| Batch {
            head: head.into(),
            channel: has_channel.then(|| "web".into()),
            listed_by: ListedBy { updated_at, is_archived },
            erases: false,
            at_least,
            put,
            replace,
            remove: removed.into_iter().map(|(table, key)| (TABLES[table], key)).collect(),
            notice: None,
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    let session = || 0..SESSIONS.len();
    let append = (session(), 0..40_u8, prop_oneof![6 => Just(0), 1 => 1..3_u64], batch());
    let read = (session(), 0..TABLES.len(), keys(), keys(), any::<bool>(), prop_oneof![0..60_u64, Just(u64::MAX)]);
    let name = || prop::option::weighted(0.3, 0..NAMES.len());
    let audit =
        (prop::option::weighted(0.3, session()), name(), name(), prop::option::weighted(0.3, 0..3_u64), 0..4_usize);
    prop_oneof![
        6 => append.prop_map(|(session, name, stale, batch)| Operation::Append { session, name, stale, batch }),
        1 => session().prop_map(|session| Operation::Delete { session }),
        3 => read.prop_map(|(session, table, from, to, reverse, limit_bytes)| Operation::Read {
            session,
            query: Query { table: TABLES[table], from, to, reverse, limit_bytes, expected_records: 0 },
        }),
        2 => audit.prop_map(|(session, tool, status, since, limit)| Operation::Audit(AuditQuery {
            session: session.map(|at| SESSIONS[at].into()),
            tool: tool.map(|at| NAMES[at].into()),
            status: status.map(|at| NAMES[at].into()),
            since,
            until: since.map(|since| since + 1),
            limit,
            ..AuditQuery::default()
        })),
        1 => (0..4_usize, prop::option::of(0..2_usize)).prop_map(|(limit, channel)| Operation::Sessions { limit, channel }),
        2 => (1..4_usize, any::<bool>(), any::<Option<bool>>()).prop_map(|(limit, of_channel, archived)| {
            let channel = of_channel.then(|| "web".into());
            Operation::Recent(RecencyQuery { channel, archived, cursor: None, limit })
        }),
    ]
}

/// Does an operation, and returns what the store answered.
fn answer(store: &dyn LogStore, revision: u64, operation: &Operation) -> String {
    match operation {
        Operation::Append { session, name, stale, batch } => {
            let name = format!("operation {name}");
            let appended = store.append(SESSIONS[*session], revision.wrapping_sub(*stale), batch.clone(), &name);
            format!("{:?}", block_on(appended))
        }
        Operation::Delete { session } => format!("{:?}", block_on(store.delete_session(SESSIONS[*session]))),
        Operation::Read { session, query } => format!("{:?}", block_on(store.read(SESSIONS[*session], *query))),
        Operation::Audit(query) => {
            let mut query = query.clone();
            let mut pages = Vec::new();
            loop {
                let page = block_on(store.invocations(&query)).unwrap();
                query.cursor.clone_from(&page.cursor);
                pages.push(format!("{page:?}"));
                assert!(pages.len() < 100, "{pages:?}");
                if query.cursor.is_none() {
                    return pages.join("\n");
                }
            }
        }
        Operation::Sessions { limit, channel } => {
            let channel = channel.map(|at| ["web", "none"][at]);
            let first = block_on(store.sessions(None, *limit, channel)).unwrap();
            let second = first.cursor.as_deref().map(|cursor| block_on(store.sessions(Some(cursor), *limit, channel)));
            format!("{first:?} {second:?}")
        }
        Operation::Recent(query) => {
            let mut query = query.clone();
            let mut pages = Vec::new();
            loop {
                let page = block_on(recent_sessions(store, &query)).unwrap();
                query.cursor.clone_from(&page.cursor);
                pages.push(format!("{page:?}"));
                assert!(pages.len() < 100, "{pages:?}");
                if query.cursor.is_none() {
                    return pages.join("\n");
                }
            }
        }
    }
}

/// The revision to expect: what a conflict tells, which is a tombstone's, too.
fn revision_of(store: &dyn LogStore, session: &str) -> u64 {
    let asked = block_on(store.append(session, 1 << 50, Batch::default(), "asks for the revision"));
    match asked.unwrap() {
        rethread::store::Appended::Conflict(revision) => revision,
        other => panic!("a stale append gave {other:?}"),
    }
}

fn agree(limits: SqlLimits, operations: &[Operation]) {
    let model = MemoryStore::default();
    let store = block_on(SqlStore::open(SqliteDriver::in_memory(limits))).unwrap();
    for operation in operations {
        let revision = match operation {
            Operation::Append { session, .. } => revision_of(&model, SESSIONS[*session]),
            _ => 0,
        };
        assert_eq!(answer(&store, revision, operation), answer(&model, revision, operation), "{operation:?}");
    }
    for session in SESSIONS {
        assert_eq!(block_on(store.head(session)), block_on(model.head(session)));
        for table in TABLES {
            assert_eq!(
                block_on(store.read(session, Query::all(table))),
                block_on(model.read(session, Query::all(table)))
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r46_sqlite_behaves_as_the_memory_store(operations in prop::collection::vec(operation(), 1..40)) {
        // So narrow that values are split and batches take several statements.
        agree(SqlLimits { max_value_bytes: 8, max_params: 24 }, &operations);
        agree(SqlLimits::default(), &operations);
    }
}
