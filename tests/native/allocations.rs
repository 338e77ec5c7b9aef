//! The tests that count what is allocated, as one program.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::disallowed_methods, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, unsafe_code)]

mod growth;
mod hostile_bodies;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What a thread has allocated.
#[derive(Clone, Copy, Debug, Default)]
struct Allocations {
    /// How often.
    count: usize,
    /// The bytes, freed ones too.
    bytes: usize,
    /// The bytes that are not freed. Of a thread that frees what another one allocated, it is below zero.
    live: isize,
    /// The most that were not freed.
    peak: isize,
}

thread_local! {
    static ALLOCATIONS: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0, live: 0, peak: 0 }) };
}

/// Counts what a thread allocates.
struct Counting;

impl Counting {
    fn note(bytes: usize, freed: usize) {
        // A thread that ends has no counter any more.
        let _ = ALLOCATIONS.try_with(|sum| {
            let Allocations { count, bytes: all, live, peak } = sum.get();
            let live = live + bytes.cast_signed() - freed.cast_signed();
            let count = count + usize::from(bytes > 0);
            sum.set(Allocations { count, bytes: all + bytes, live, peak: peak.max(live) });
        });
    }
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size(), 0);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        Self::note(0, layout.size());
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::note(size, layout.size());
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Returns what a piece of work allocates.
fn allocated(work: impl FnOnce()) -> Allocations {
    ALLOCATIONS.set(Allocations::default());
    work();
    ALLOCATIONS.get()
}
