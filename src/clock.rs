//! Time, injected: the core asks a [`Clock`], and only the bindings implement one that reads the real time.

/// Milliseconds since the Unix epoch.
pub type Ms = u64;

/// Tells the time.
pub trait Clock {
    /// The time now. May stand still or go back: order comes from sequence numbers, never from here.
    fn now(&self) -> Ms;
}

/// A clock that a test moves by hand.
#[derive(Debug, Default)]
pub struct ManualClock(std::cell::Cell<Ms>);

impl ManualClock {
    /// Starts at `now`.
    #[must_use]
    pub fn at(now: Ms) -> Self {
        Self(std::cell::Cell::new(now))
    }

    /// Moves on by `ms`.
    pub fn advance(&self, ms: Ms) {
        self.0.set(self.0.get().saturating_add(ms));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Ms {
        self.0.get()
    }
}
