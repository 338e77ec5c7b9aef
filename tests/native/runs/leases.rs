//! The lease of a run: renewed by its owner, respected by others, and of no use to an owner that was overtaken.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::scripted_host::*;
use rethread::clock::Ms;
use rethread::error::ErrorCode;
use rethread::run::{RunInput, RunStatus};
use rethread::session_head::RunEntry;
use rethread::store::{Change, JournalChange, JournalStep, MemoryStore, Table, commit, refresh};

/// A time after every lease that the host writes.
const LATER: Ms = 10_000_000_000_000;

/// A run that waits for its first model call.
fn begun(store: &MemoryStore) -> Host<'_> {
    let mut host = Host::open(store, "s", "owner");
    host.start(setup("run", CHAT, false), "Go").unwrap();
    while host.write_one() {}
    host
}

struct LeaseWrite {
    epoch: u32,
    at: Ms,
    lease_until: Ms,
    lease_ended_by: Option<Ms>,
    step: JournalStep,
}

fn renewal(at: Ms, lease_until: Ms) -> LeaseWrite {
    LeaseWrite { epoch: 0, at, lease_until, lease_ended_by: None, step: JournalStep::Renew }
}

fn write(host: &Host<'_>, name: &str, write: LeaseWrite) -> Result<(), ErrorCode> {
    let LeaseWrite { epoch, at, lease_until, lease_ended_by, step } = write;
    let journal = JournalChange { run: "run".into(), epoch, lease_until, lease_ended_by, step };
    let change = Change { operation: name.into(), at, journal: Some(journal), ..Change::default() };
    block_on(commit(host.store, &host.log, &change)).map(drop).map_err(|error| error.code)
}

fn entry(host: &Host<'_>) -> RunEntry {
    host.log.borrow().head.run("run").unwrap().clone()
}

#[test]
fn r18_a_renewal_changes_the_lease_and_nothing_else() {
    let store = MemoryStore::default();
    let owner = begun(&store);
    let watcher = Host::open(&store, "s", "watcher");
    let before = owner.log.borrow().head.clone();
    let records = owner.records(Table::Runs);
    write(&owner, "renew", renewal(LATER, LATER + 30_000)).unwrap();
    assert_eq!(entry(&owner).lease_until, LATER + 30_000);
    assert_eq!(owner.records(Table::Runs), records);
    assert_eq!(owner.log.borrow().head.without_leases(), before.without_leases());
    // Others read it, and nothing that anybody shows has changed.
    assert!(!block_on(refresh(&store, &watcher.log)).unwrap());
    assert_eq!(entry(&watcher).lease_until, LATER + 30_000);
}

#[test]
fn r18_a_run_is_neither_taken_over_nor_discarded_during_its_lease() {
    let store = MemoryStore::default();
    let owner = begun(&store);
    let other = Host::open(&store, "s", "other");
    // `other` does not know of the renewal: its append is prepared again after it.
    write(&owner, "renew", renewal(LATER, LATER + 30_000)).unwrap();
    let attempt = |step, ended_by| LeaseWrite {
        epoch: entry(&other).epoch,
        at: ended_by,
        lease_until: 0,
        lease_ended_by: Some(ended_by),
        step,
    };
    assert_eq!(write(&other, "take early", attempt(JournalStep::Take, LATER + 29_999)), Err(ErrorCode::Busy));
    assert_eq!(write(&other, "discard early", attempt(JournalStep::End, LATER + 29_999)), Err(ErrorCode::Busy));
    assert_eq!(entry(&owner).epoch, 0);
    assert_eq!(write(&other, "take", attempt(JournalStep::Take, LATER + 30_000)), Ok(()));
    assert_eq!(entry(&other).epoch, 1);
}

#[test]
fn r18_a_former_owner_cannot_renew_its_lease_and_its_run_fails() {
    let store = MemoryStore::default();
    let mut old = begun(&store);
    let mut new = Host::open(&store, "s", "new");
    new.resume(setup("run", CHAT, false)).unwrap();
    assert_eq!(write(&old, "late", renewal(LATER, LATER + 30_000)), Err(ErrorCode::Conflict));
    let lost = rethread::error::Error::new(ErrorCode::Conflict, "another holder took the run over");
    old.handle(RunInput::Lost(lost)).unwrap();
    let outcome = old.run.as_ref().unwrap().outcome();
    assert_eq!((outcome.status, outcome.error.unwrap().code), (RunStatus::Failed, ErrorCode::Conflict));
    assert!(old.run.as_ref().unwrap().effects().is_empty());
    assert!(!old.write_one(), "it writes nothing more");
    assert_eq!(new.drive(three_tools).unwrap().status, RunStatus::Finished);
}

#[test]
fn r18_a_failed_run_has_no_lease() {
    let store = MemoryStore::default();
    let mut host = begun(&store);
    write(&host, "renew", renewal(LATER, LATER + 30_000)).unwrap();
    host.cancel().unwrap();
    let failed = host.log.borrow().head.run("run").unwrap().clone();
    assert_eq!((failed.is_stopped(), failed.lease_until), (true, 0));
}

#[test]
fn r18_a_lease_names_who_wrote_it_until_it_ends_or_another_holder_takes_the_run() {
    let store = MemoryStore::default();
    let owner = begun(&store);
    let lease = |name: &str, holder: Option<&str>, epoch, lease_until, step| {
        let journal = JournalChange { run: "run".into(), epoch, lease_until, lease_ended_by: None, step };
        let holder = holder.map(str::to_owned);
        let change = Change { operation: name.into(), at: LATER, journal: Some(journal), holder, ..Change::default() };
        block_on(commit(owner.store, &owner.log, &change)).unwrap();
        entry(&owner)
    };
    let held = lease("one", Some("here"), 0, LATER + 1, JournalStep::Renew);
    assert!(held.is_held_by("here"));
    assert!(!held.is_held_by("her") && !held.is_held_by("") && !held.is_held_by("0:here"));
    assert!(!owner.log.borrow().head.without_leases().run("run").unwrap().is_held_by("here"));
    // A build that does not know the field leaves it as it was.
    let taken = RunEntry { epoch: held.epoch + 1, ..held.clone() };
    assert!(!taken.is_held_by("here"));
    let taken = lease("two", Some("there"), 0, LATER + 1, JournalStep::Take);
    assert!(taken.is_held_by("there") && !taken.is_held_by("here"));
    assert_eq!(lease("three", Some("there"), 1, 0, JournalStep::Renew).holder, None);
    assert_eq!(lease("four", None, 1, LATER + 1, JournalStep::Renew).holder, None);
}
