//! Services that limit the rate of requests, and services whose reads are old.

use super::service::{MemoryKv, TestTimer, block_on};
use super::{append, batch, connection, keys, plain, put, record, store, write_once};
use rethread::error::ErrorCode;
use rethread::store::{Appended, LogStore, Table};
use std::rc::Rc;

fn limited(service: MemoryKv) -> (MemoryKv, Rc<TestTimer>) {
    let timer = Rc::new(TestTimer::default());
    (MemoryKv { timer: Some(timer.clone()), ..service }, timer)
}

#[test]
fn r48_row_8_a_refused_request_is_repeated_after_growing_waits() {
    let (service, timer) = limited(plain());
    let one = write_once(&service, "one");
    service.refusals.set((4, None));
    assert_eq!(put(&one, 0, 0), Appended::Revision(1));
    let waits = timer.waits.take();
    for (wait, longest) in waits.iter().zip([250, 500, 1_000, 2_000]) {
        assert!((longest / 2..=longest).contains(wait), "{waits:?}");
    }
    assert_eq!((waits.len(), service.refusals.get().0), (4, 0));
    // Two clients do not wait equally long.
    let is_half = |(wait, longest): (&u64, u64)| *wait * 2 == longest;
    assert!(!waits.iter().zip([250, 500, 1_000, 2_000]).all(is_half), "no jitter in {waits:?}");
}

#[test]
fn r48_row_8_the_service_says_how_long_to_wait() {
    let (service, timer) = limited(plain());
    let one = write_once(&service, "one");
    service.refusals.set((1, Some(7_000)));
    assert_eq!(put(&one, 0, 0), Appended::Revision(1));
    assert_eq!(timer.waits.take(), [7_000]);
    // Nobody waits for an hour.
    service.refusals.set((1, Some(3_600_000)));
    let error = block_on(one.head("s")).unwrap_err();
    assert_eq!((error.code, timer.waits.take().len()), (ErrorCode::RateLimited, 0));
    assert!(error.details.is_some());
}

#[test]
fn r48_row_8_in_the_end_it_is_rate_limited_and_nothing_was_written() {
    let (service, timer) = limited(plain());
    let one = write_once(&service, "one");
    assert_eq!(put(&one, 0, 0), Appended::Revision(1));
    service.refusals.set((u32::MAX, None));
    let refused = block_on(one.append("s", 1, batch(b"refused", vec![record(Table::Log, 1, b"v")]), "refused"));
    assert_eq!(refused.unwrap_err().code, ErrorCode::RateLimited);
    assert_eq!(timer.waits.take().len(), 5);
    service.refusals.set((0, None));
    assert_eq!((keys(&one), keys(&write_once(&service, "two"))), (vec![0], vec![0]));
    // The caller tries again, under the same name.
    let again = block_on(one.append("s", 1, batch(b"refused", vec![record(Table::Log, 1, b"v")]), "refused"));
    assert_eq!(again.unwrap(), Appended::Revision(2));
    assert!(block_on(one.branches("s")).unwrap().is_empty());
}

#[test]
fn r48_row_8_a_commit_that_was_refused_is_applied_once() {
    let (service, timer) = limited(MemoryKv::default());
    let one = store(&service);
    service.refusals.set((3, None));
    append(&one, "s", 0, batch(b"h", vec![record(Table::Log, 0, b"v")]));
    assert_eq!((timer.waits.take().len(), block_on(one.head("s")).unwrap().unwrap().revision), (3, 1));
}

#[test]
fn r48_row_8_without_a_timer_it_fails_at_once() {
    let service = plain();
    let one = write_once(&service, "one");
    service.refusals.set((1, None));
    assert_eq!(block_on(one.head("s")).unwrap_err().code, ErrorCode::RateLimited);
}

#[test]
fn r48_row_8_no_append_waits_for_the_manifest() {
    let (service, timer) = limited(plain());
    service.refused_key.replace(Some("manifest:s".into()));
    let one = write_once(&service, "one");
    for revision in 0..200 {
        assert_eq!(put(&one, revision, revision), Appended::Revision(revision + 1));
    }
    assert!(timer.waits.take().is_empty() && !service.keys.borrow().contains_key("manifest:s"));
    service.refused_key.take();
    timer.advance(1_000);
    block_on(one.pack("s")).unwrap();
    assert!(service.keys.borrow().contains_key("manifest:s"));
}

/// A reader whose view of the keys is old, or that was told that keys do not exist, sees a beginning of the session
/// that it has seen before, or is told that its view is stale; never less than it knew, and all of it in the end.
#[test]
fn r48_row_9_a_stale_view_never_shortens_the_history() {
    let (mut shorter, mut stale) = (0, 0);
    for seed in 0..200_u64 {
        let mut random = seed;
        let mut below = |end: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % end
        };
        let service = plain();
        let (far, one) = (connection(&service), write_once(&connection(&service), "one"));
        let mut reader = write_once(&far, "reader");
        let (mut written, mut known) = (0, 0);
        for _ in 0..40 {
            for _ in 0..below(30) {
                assert_eq!(put(&one, written, written), Appended::Revision(written + 1));
                written += 1;
            }
            if below(4) == 0 {
                // Another reader knows nothing yet.
                (reader, known) = (write_once(&far, "reader"), 0);
            }
            let keys_written: Vec<_> = service.keys.borrow().keys().cloned().collect();
            let mut hidden = far.hidden.borrow_mut();
            hidden.clear();
            // The newest keys are not shown yet, or some of them; of any a miss may be remembered.
            let (old, has_holes) = (written.saturating_sub(below(40)), below(3) == 0);
            let is_hidden = |key: &String| {
                let revision = key.split(':').nth(2).and_then(|digits| u64::from_str_radix(digits, 16).ok());
                let newest = key.starts_with("append:") && revision.is_some_and(|revision| revision > old);
                (newest || key.starts_with("pack:") || key.starts_with("manifest:")) && key != "schema"
            };
            let mut chosen = Vec::new();
            for key in keys_written {
                if is_hidden(&key) && (!has_holes || below(2) == 0)
                    || has_holes && below(200) == 0 && key.starts_with("append:")
                {
                    chosen.push(key);
                }
            }
            hidden.extend(chosen);
            drop(hidden);
            match block_on(reader.head("s")) {
                Ok(head) => {
                    let revision = head.map_or(0, |head| head.revision);
                    assert!((known..=written).contains(&revision), "seed {seed}: {revision}, and {known} was known");
                    assert_eq!(keys(&reader), (0..revision).collect::<Vec<_>>(), "seed {seed}");
                    shorter += u64::from(revision < written);
                    known = revision;
                }
                Err(error) => {
                    assert_eq!(error.code, ErrorCode::MaybeStale, "seed {seed}: {error}");
                    stale += 1;
                }
            }
        }
        far.hidden.borrow_mut().clear();
        // Older appends are looked for when a session is opened.
        let whole = write_once(&far, "whole");
        assert_eq!((keys(&whole).len() as u64, keys(&reader).len() as u64), (written, written), "seed {seed}");
        assert!(block_on(reader.branches("s")).unwrap().is_empty());
    }
    println!("{shorter} old views, {stale} stale ones");
    assert!(shorter > 1_000 && stale > 100, "{shorter} {stale}");
}
