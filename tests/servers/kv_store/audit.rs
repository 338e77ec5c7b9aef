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

/// The requests of the pages of a query from its cursor on, `count` at most. The cursor is moved on.
fn requests_of_pages(
    (service, store): (&MemoryKv, &dyn LogStore),
    pages: &AuditPages,
    query: &mut AuditQuery,
    count: usize,
) -> u64 {
    let before = service.traffic.requests();
    for _ in 0..count {
        query.cursor = block_on(pages.read(store, query, None)).unwrap().cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    service.traffic.requests() - before
}

#[test]
fn r13_r63_queries_that_are_paged_by_turns_do_not_read_the_table_again() {
    let service = MemoryKv::default();
    let store = store(&service);
    fill(&store, 60);
    let (of, all) = ((&service, &store as &dyn LogStore), usize::MAX);
    let query = |since: u64| AuditQuery { limit: 10, since: Some(since), ..AuditQuery::default() };
    let alone = requests_of_pages(of, &AuditPages::default(), &mut query(0), all);
    let pages = AuditPages::default();
    let mut queries: Vec<AuditQuery> =
        (0..10).map(|number| AuditQuery { until: Some(1_000_000 + number), ..query(0) }).collect();
    let mut requests = 0;
    for _ in 0..12 {
        requests += queries.iter_mut().map(|query| requests_of_pages(of, &pages, query, 1)).sum::<u64>();
    }
    assert!(queries.iter().all(|query| query.cursor.is_none()));
    assert_eq!(requests, alone * 10);
}

#[test]
fn r13_r63_a_reader_does_not_lose_its_order_when_another_one_has_reached_the_end() {
    let service = MemoryKv::default();
    let store = store(&service);
    fill(&store, 60);
    let (of, all) = ((&service, &store as &dyn LogStore), usize::MAX);
    let (pages, query) = (AuditPages::default(), AuditQuery { limit: 10, ..AuditQuery::default() });
    let mut reader = query.clone();
    requests_of_pages(of, &pages, &mut reader, 1);
    let page = requests_of_pages(of, &pages, &mut reader, 1);
    // All of it, in pages and in one page.
    requests_of_pages(of, &pages, &mut query.clone(), all);
    assert_eq!(requests_of_pages(of, &pages, &mut reader, 1), page);
    requests_of_pages(of, &pages, &mut AuditQuery { limit: 1_000, ..query.clone() }, all);
    assert_eq!(requests_of_pages(of, &pages, &mut reader, 1), page);
    requests_of_pages(of, &pages, &mut reader, all);
    assert_eq!(reader.cursor, None);
}
