//! Where and how the simulation fails, from a seed.

use rethread::error::{Error, ErrorCode};
use std::cell::{Cell, RefCell};

/// A generator of random numbers (SplitMix64). A seed always gives the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// How one operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is applied.
    Before,
    /// The operation is interrupted. An atomic store applies nothing; one that is not applies a part.
    During,
    /// It is applied, and the reply is lost.
    After,
    /// It is delivered twice, and the caller gets the second reply.
    Twice,
}

impl Fault {
    pub const ALL: [Self; 4] = [Self::Before, Self::During, Self::After, Self::Twice];
}

/// Which operations fail.
#[derive(Clone, Copy, Debug)]
pub enum Schedule {
    Never,
    /// The operation of this number, counted from 0.
    At(u64, Fault),
    /// One in so many.
    OneIn(u64),
}

/// Decides of each operation whether it fails. All layers and handles of one simulated store share it.
#[derive(Debug)]
pub struct FaultPlan {
    schedule: Schedule,
    random: RefCell<Random>,
    operations: Cell<u64>,
    injected: Cell<u64>,
    paused: Cell<bool>,
}

impl FaultPlan {
    pub fn new(schedule: Schedule, seed: u64) -> Self {
        Self {
            schedule,
            random: RefCell::new(Random::new(seed)),
            operations: Cell::new(0),
            injected: Cell::new(0),
            paused: Cell::new(false),
        }
    }

    /// Counts an operation, and returns how it fails.
    pub fn next(&self) -> Option<Fault> {
        if self.paused.get() {
            return None;
        }
        let number = self.operations.get();
        self.operations.set(number + 1);
        let fault = match self.schedule {
            Schedule::Never => None,
            Schedule::At(at, fault) => (at == number).then_some(fault),
            Schedule::OneIn(count) => {
                let mut random = self.random.borrow_mut();
                random.one_in(count).then(|| random.pick(&Fault::ALL))
            }
        };
        self.injected.set(self.injected.get() + u64::from(fault.is_some()));
        fault
    }

    /// The error of a fault. Whoever gets `quota_exceeded` or `busy` may rely on nothing having been written.
    pub fn error(&self, fault: Fault) -> Error {
        let code = match fault {
            Fault::Before => {
                self.random.borrow_mut().pick(&[ErrorCode::QuotaExceeded, ErrorCode::Busy, ErrorCode::StoreError])
            }
            Fault::During | Fault::After | Fault::Twice => ErrorCode::StoreError,
        };
        Error::new(code, format!("an injected fault: {fault:?}"))
    }

    /// A number below `end`: where an interrupted operation stops.
    pub fn position(&self, end: usize) -> usize {
        self.random.borrow_mut().below(end.max(1) as u64) as usize
    }

    /// Operations so far, and how many of them failed.
    pub fn counts(&self) -> (u64, u64) {
        (self.operations.get(), self.injected.get())
    }

    /// Ends the outage, or begins it again. Between the two nothing fails.
    pub fn set_paused(&self, is_paused: bool) {
        self.paused.set(is_paused);
    }

    /// Runs without faults and uncounted: how the simulation looks at the store.
    pub fn paused<T>(&self, look: impl FnOnce() -> T) -> T {
        let before = self.paused.replace(true);
        let result = look();
        self.paused.set(before);
        result
    }
}

/// True for an error that a [`FaultPlan`] made.
pub fn is_injected(error: &Error) -> bool {
    error.message.contains("an injected")
}
