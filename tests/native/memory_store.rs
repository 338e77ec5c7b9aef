//! The memory store under the suite that every store passes.

use rethread::error::Error;
use rethread::store::conformance::{CHECKS, StoreCheck, both, check_all, check_one, nothing_lost, write_with_retry};
use rethread::store::{
    Appended, AuditQuery, Batch, Capabilities, ListedBy, LogStore, MemoryStore, Page, Query, RecencyQuery, Record,
    SessionRow, StoreFuture, StoredHead, recent_sessions,
};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}

#[test]
fn r46_the_memory_store_conforms() {
    let store = MemoryStore::default();
    block_on(check_all("native", &|| {
        let store: Rc<dyn LogStore> = Rc::new(store.clone());
        Box::pin(async move { Ok(store) })
    }))
    .unwrap();
}

#[test]
fn r46_the_page_of_the_stores_has_the_number_of_checks() {
    let (_, table) = include_str!("../../docs/stores.md").split_once("| store | conformance cases passed |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let counts: Vec<(&str, &str)> = rows
        .map(|row| {
            let mut cells = row.split('|').skip(1).map(str::trim);
            (cells.next().unwrap(), cells.next().unwrap())
        })
        .collect();
    assert!(counts.len() > 5, "{counts:?}");
    let wrong: Vec<_> = counts.iter().filter(|(_, count)| *count != CHECKS.len().to_string()).collect();
    assert!(wrong.is_empty(), "there are {} checks; docs/stores.md: {wrong:?}", CHECKS.len());
}

/// Lets another future go first.
async fn once_round() {
    let mut waited = false;
    poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// What a broken store gets wrong.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    NoCompare,
    TornOnConflict,
    Overwrites,
    NoRepetition,
    LosesTombstone,
    NoLimit,
    IgnoresLastKey,
    MixesSessions,
    DoublesPages,
    ForgetsTheTime,
    SkipsByNumber,
}

/// A store that wants to be durable: another handle has the same data, and every append lets others go first.
struct Flawed(MemoryStore, Flaw);

impl LogStore for Flawed {
    fn capabilities(&self) -> Capabilities {
        Capabilities { durable: true, ..self.0.capabilities() }
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        self.0.head(session)
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        mut batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            once_round().await;
            let is = self.0.head(session).await?.map_or(0, |head| head.revision);
            if self.1 == Flaw::ForgetsTheTime && is > 0 {
                batch.listed_by = ListedBy::default();
            }
            match self.1 {
                Flaw::NoCompare => match self.0.append(session, expected, batch.clone(), operation).await? {
                    Appended::Conflict(is) => self.0.append(session, is, batch, operation).await,
                    done => Ok(done),
                },
                Flaw::TornOnConflict if is != 0 && is != expected => {
                    let head = self.0.head(session).await?.map(|head| head.value).unwrap_or_default();
                    let (put, replace) = (Vec::new(), [batch.put, batch.replace].concat());
                    self.0.append(session, is, Batch { head, put, replace, ..batch }, operation).await?;
                    Ok(Appended::Conflict(is))
                }
                Flaw::Overwrites => {
                    let (put, replace) = (Vec::new(), [batch.put, batch.replace].concat());
                    self.0.append(session, expected, Batch { put, replace, ..batch }, operation).await
                }
                Flaw::NoRepetition => self.0.append(session, expected, batch, &format!("{operation}{is}")).await,
                Flaw::LosesTombstone if is == 0 => match self.0.append(session, 0, batch.clone(), operation).await? {
                    Appended::Conflict(tombstone) if expected == 0 => {
                        self.0.append(session, tombstone, batch, operation).await
                    }
                    outcome => Ok(outcome),
                },
                _ => self.0.append(session, expected, batch, operation).await,
            }
        })
    }

    fn read<'a>(&'a self, session: &'a str, mut query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            if self.1 == Flaw::NoLimit {
                query.limit_bytes = u64::MAX;
            }
            let mut records = self.0.read(session, query).await?;
            if self.1 == Flaw::IgnoresLastKey {
                records.retain(|record| record.key >= query.from);
            }
            if self.1 == Flaw::MixesSessions
                && let Some((stem, _)) = session.split_once('\u{0}')
            {
                records.extend(self.0.read(stem, query).await?);
            }
            Ok(records)
        })
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        Box::pin(async move {
            let mut page = self.0.sessions(cursor, limit, channel).await?;
            if self.1 == Flaw::DoublesPages && page.items.len() > 1 && page.cursor.is_some() {
                page.cursor = page.items.iter().rev().nth(1).map(|row| row.id.clone());
            }
            Ok(page)
        })
    }

    fn recent_sessions<'a>(&'a self, query: &'a RecencyQuery) -> Option<StoreFuture<'a, Page<SessionRow>>> {
        if self.1 != Flaw::SkipsByNumber {
            return self.0.recent_sessions(query);
        }
        Some(Box::pin(async move {
            let skipped: usize = query.cursor.as_deref().map_or(Ok(0), str::parse).map_err(|_| Error::invalid("no"))?;
            let all = RecencyQuery { cursor: None, limit: 10_000, ..query.clone() };
            let rows = recent_sessions(&self.0, &all).await?.items;
            let seen = skipped + query.page_size();
            let cursor = (rows.len() > seen).then(|| seen.to_string());
            Ok(Page { items: rows.into_iter().skip(skipped).take(query.page_size()).collect(), cursor })
        }))
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        self.0.invocations(query)
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        self.0.delete_session(session)
    }
}

fn failing(flaw: Flaw) -> Vec<&'static str> {
    let failed = |(name, check): &(&'static str, StoreCheck)| -> Option<&'static str> {
        let data = MemoryStore::default();
        let open = || -> StoreFuture<'static, Rc<dyn LogStore>> {
            let store: Rc<dyn LogStore> = Rc::new(Flawed(data.clone(), flaw));
            Box::pin(async move { Ok(store) })
        };
        let result = block_on(check_one("flawed", name, *check, &open));
        result.err().map(|_| *name)
    };
    CHECKS.iter().filter_map(failed).collect()
}

#[test]
fn r46_the_suite_detects_broken_stores() {
    assert_eq!(failing(Flaw::None), Vec::<&str>::new());
    let cases = [
        (Flaw::NoCompare, "two_writers_lose_nothing"),
        (Flaw::TornOnConflict, "a_conflict_changes_nothing"),
        (Flaw::Overwrites, "an_append_overwrites_no_record"),
        (Flaw::NoRepetition, "a_repeated_operation_is_done_once"),
        (Flaw::LosesTombstone, "a_deleted_session_stays_deleted"),
        (Flaw::NoLimit, "ranges_and_limits_hold"),
        (Flaw::IgnoresLastKey, "segments_are_found_by_what_they_span"),
        (Flaw::MixesSessions, "no_session_reaches_another"),
        (Flaw::DoublesPages, "sessions_are_listed_once_each"),
        (Flaw::ForgetsTheTime, "a_page_by_recency_stays_right_while_sessions_change"),
        (Flaw::SkipsByNumber, "a_page_by_recency_stays_right_while_sessions_change"),
    ];
    for (flaw, check) in cases {
        let failed = failing(flaw);
        assert!(failed.contains(&check), "{check} passed a store with its flaw; failed: {failed:?}");
    }
}

#[test]
fn r47_two_alternating_writers_lose_nothing() {
    let data = MemoryStore::default();
    let (one, two) = (Flawed(data.clone(), Flaw::None), Flawed(data, Flaw::None));
    let (first, second) = block_on(both(write_with_retry(&one, "s", 0, 100), write_with_retry(&two, "s", 1, 100)));
    let conflicts = first.unwrap() + second.unwrap();
    assert!(conflicts > 50, "the writers hardly met: {conflicts} conflicts");
    block_on(nothing_lost(&one, "s", 100)).unwrap();
}
