//! What an audit query reads.

use super::service::{MemoryKv, block_on};
use super::{batch, plain, record, store, write_once};
use rethread::store::{AuditPages, AuditQuery, LogStore, Table};

/// Sessions with a log record and two audit rows each.
fn fill(store: &dyn LogStore, sessions: u64) {
    for number in 0..sessions {
        let rows = (0..2).map(|key| record(Table::ToolInvocations, key, b"row"));
        let put = rows.chain([record(Table::Log, 0, &[0; 1_000])]).collect();
        block_on(store.append(&format!("s{number:02}"), 0, batch(b"h", put), "first")).unwrap();
    }
}

/// The requests of a query, with one for each value, and the rows that it returned.
fn requests(service: &MemoryKv, store: &dyn LogStore, query: &AuditQuery) -> (u64, usize) {
    let before = service.traffic.requests();
    let page = block_on(store.invocations(query)).unwrap();
    (service.traffic.requests() - before, page.items.len())
}

#[test]
fn r46_an_audit_query_reads_only_the_sessions_of_its_page() {
    let five = AuditQuery { limit: 5, ..AuditQuery::default() };
    let of_one = AuditQuery { session: Some("s30".into()), ..AuditQuery::default() };

    let service = MemoryKv::default();
    let with_commits = store(&service);
    fill(&with_commits, 60);
    // A list, eight heads, and the rows of three sessions; a head and its rows.
    assert_eq!(requests(&service, &with_commits, &five), (1 + 8 + 6, 5));
    assert_eq!(requests(&service, &with_commits, &of_one), (1 + 2, 2));

    let service = plain();
    fill(&write_once(&service, "one"), 60);
    let reader = write_once(&service, "two");
    // A list of the sessions, and of each a list and its append; a list where nothing is new.
    assert_eq!(requests(&service, &reader, &five), (1 + 3 * 2, 5));
    assert_eq!(requests(&service, &reader, &five), (1 + 3, 5));
    assert_eq!(requests(&service, &reader, &of_one), (2, 2));
    assert_eq!(block_on(reader.sessions(None, 0, None)).unwrap().items.len(), 60);
}

/// The requests of all pages of the audit table, the newest rows first, and the number of rows.
fn requests_of_all_pages(service: &MemoryKv, store: &dyn LogStore) -> (u64, usize) {
    let (before, pages) = (service.traffic.requests(), AuditPages::default());
    let (mut query, mut rows) = (AuditQuery { limit: 5, ..AuditQuery::default() }, 0);
    loop {
        let page = block_on(pages.read(store, &query, None)).unwrap();
        rows += page.items.len();
        if page.cursor.is_none() {
            return (service.traffic.requests() - before, rows);
        }
        query.cursor = page.cursor;
    }
}

#[test]
fn r13_r63_all_pages_of_the_audit_table_cost_in_proportion_to_their_rows() {
    let (small, large) = (MemoryKv::default(), MemoryKv::default());
    let [one, two] = [(&small, 60), (&large, 240)].map(|(service, sessions)| {
        let store = store(service);
        fill(&store, sessions);
        let (requests, rows) = requests_of_all_pages(service, &store);
        assert_eq!(rows as u64, sessions * 2);
        requests
    });
    assert!(two < one * 5, "a key-value store: {one} requests, and {two} for four times as many rows");
    let (small, large) = (plain(), plain());
    let [one, two] = [(&small, 60), (&large, 240)].map(|(service, sessions)| {
        let store = write_once(service, "writer");
        fill(&store, sessions);
        let (requests, rows) = requests_of_all_pages(service, &store);
        assert_eq!(rows as u64, sessions * 2);
        requests
    });
    assert!(two < one * 5, "a service without commits: {one} requests, and {two} for four times as many rows");
}
