//! Stores that fail, simulated: a script of a seed runs on a store whose operations fail before, during or after they
//! are applied, and the invariants I1 to I4 (`simulation/expected.rs`) are checked after each fault. A seed that fails
//! prints itself; `RETHREAD_SEED=<seed> cargo test --features conformance --test native simulation::` runs it alone.

mod drivers;
mod expected;
mod faults;
mod packs;
mod stores;
mod world;

use crate::kv_store::service;
use crate::scripted_host;
use crate::sql_store::sqlite;
use faults::{Fault, Schedule};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use stores::{Backend, Defect};
use world::{AfterError, Simulation, script};

/// Seeds in a usual run, and with `npm test -- --long`.
const SEEDS: (u64, u64) = (200, 10_000);

fn is_long() -> bool {
    std::env::var_os("RETHREAD_LONG").is_some()
}

/// The one seed that is asked for, or all of the mode.
fn seeds() -> Vec<u64> {
    match std::env::var("RETHREAD_SEED") {
        Ok(seed) => vec![seed.parse().expect("RETHREAD_SEED is a number")],
        Err(_) => (0..if is_long() { SEEDS.1 } else { SEEDS.0 }).collect(),
    }
}

/// The simulation of a seed: each has faults of another frequency.
fn of_seed(backend: Backend, seed: u64) -> Simulation {
    let schedule = Schedule::OneIn([4, 8, 20, 60][(seed % 4) as usize]);
    let steps = if backend == Backend::Sqlite { 12 } else { 24 };
    Simulation { backend, seed, steps, schedule, after_error: AfterError::Either }
}

fn run_seeds(backend: Backend) {
    let mut counts = [0; 3];
    let seeds = seeds();
    for seed in &seeds {
        match catch_unwind(AssertUnwindSafe(|| of_seed(backend, *seed).run())) {
            Ok(more) => counts.iter_mut().zip(more).for_each(|(count, more)| *count += more),
            Err(panic) => {
                eprintln!(
                    "{backend:?} fails with RETHREAD_SEED={seed}: {:?}",
                    script(*seed, of_seed(backend, *seed).steps)
                );
                resume_unwind(panic);
            }
        }
    }
    let [operations, faults, merges] = counts;
    println!("{backend:?}: {} seeds, {operations} operations, {faults} faults, {merges} merges", seeds.len());
    assert!(faults > seeds.len() as u64 || seeds.len() == 1, "hardly anything failed");
    // The write-once store does not merge: it cannot swap records.
    let merges_records = backend != Backend::WriteOnce;
    assert!((merges > 0) == merges_records || seeds.len() < 100, "{merges} merges");
}

#[test]
fn r48_random_faults_lose_and_duplicate_nothing_in_memory() {
    run_seeds(Backend::Memory);
}

#[test]
fn r48_random_faults_lose_and_duplicate_nothing_in_sqlite() {
    run_seeds(Backend::Sqlite);
}

#[test]
fn r48_random_faults_lose_and_duplicate_nothing_in_a_key_value_store() {
    run_seeds(Backend::Kv);
}

#[test]
fn r48_random_faults_lose_and_duplicate_nothing_in_a_write_once_store() {
    run_seeds(Backend::WriteOnce);
}

#[test]
fn r48_random_faults_while_appends_are_packed_lose_and_duplicate_nothing() {
    let seeds = if is_long() { 1_000 } else { 30 };
    let (mut faults, mut packs) = (0, 0);
    for seed in 0..seeds {
        let (injected, written) = catch_unwind(|| packs::run(seed)).unwrap_or_else(|panic| {
            eprintln!("packs fail with seed {seed}");
            resume_unwind(panic)
        });
        (faults, packs) = (faults + injected, packs + written);
    }
    println!("{seeds} seeds, {faults} faults, {packs} packs");
    assert!(faults > 40 * seeds && packs as u64 > 3 * seeds, "{faults} faults, {packs} packs");
}

/// What is interrupted in memory is applied or not: there is nothing in between.
fn faults_of(backend: Backend) -> Vec<Fault> {
    let has_halves = matches!(backend, Backend::Sqlite | Backend::WriteOnce);
    Fault::ALL.into_iter().filter(|fault| has_halves || *fault != Fault::During).collect()
}

/// A script in which each operation fails once in each way, and the process retries or dies; in a usual run one of
/// them.
fn fail_at_each_operation(backend: Backend, steps: usize) {
    let simulation = Simulation { backend, seed: 1, steps, schedule: Schedule::Never, after_error: AfterError::Dies };
    let [operations, ..] = simulation.run();
    let mut scripts = 0;
    for number in 0..operations {
        for (at, fault) in faults_of(backend).into_iter().enumerate() {
            for after_error in [AfterError::Retries, AfterError::Dies] {
                if !is_long() && (number + at as u64).is_multiple_of(2) == (after_error == AfterError::Dies) {
                    continue;
                }
                let failing = Simulation { schedule: Schedule::At(number, fault), after_error, ..simulation };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| failing.run())) {
                    eprintln!("{failing:?}: {:?}", script(1, steps));
                    resume_unwind(panic);
                }
                scripts += 1;
            }
        }
    }
    println!("{backend:?}: {operations} operations, {scripts} scripts");
    assert!(operations > steps as u64);
}

#[test]
fn r48_a_fault_at_each_operation_loses_and_duplicates_nothing_in_memory() {
    fail_at_each_operation(Backend::Memory, if is_long() { 120 } else { 20 });
}

#[test]
fn r48_a_fault_at_each_operation_loses_and_duplicates_nothing_in_sqlite() {
    fail_at_each_operation(Backend::Sqlite, if is_long() { 60 } else { 6 });
}

#[test]
fn r48_a_fault_at_each_operation_loses_and_duplicates_nothing_in_a_key_value_store() {
    fail_at_each_operation(Backend::Kv, if is_long() { 60 } else { 8 });
}

#[test]
fn r48_a_fault_at_each_operation_loses_and_duplicates_nothing_in_a_write_once_store() {
    fail_at_each_operation(Backend::WriteOnce, if is_long() { 60 } else { 8 });
}

/// The simulation is worth as much as what it finds.
#[test]
fn the_simulation_detects_defective_stores() {
    for defect in Defect::ALL {
        let finds = |seed: &u64| catch_unwind(|| of_seed(Backend::Broken(defect), *seed).run()).is_err();
        let found = (0..SEEDS.0).find(finds);
        println!("{defect:?}: found with seed {found:?}");
        assert!(found.is_some(), "{defect:?} is not found");
    }
}
