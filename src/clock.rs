//! Time is injected: the core asks a [`Clock`]; only the bindings implement one that reads the real time.

/// Milliseconds since the Unix epoch, or a duration in milliseconds.
pub type Ms = u64;

/// A source of the current time.
pub trait Clock {
    /// Returns the current time. It may stand still or go back: order comes from sequence numbers, never from a clock.
    fn now(&self) -> Ms;
}

/// A clock that a test advances by hand.
#[derive(Debug, Default)]
pub struct ManualClock(std::cell::Cell<Ms>);

impl ManualClock {
    /// Creates a clock that shows `now`.
    #[must_use]
    pub fn at(now: Ms) -> Self {
        Self(std::cell::Cell::new(now))
    }

    /// Advances the clock by `ms`.
    pub fn advance(&self, ms: Ms) {
        self.0.set(self.0.get().saturating_add(ms));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Ms {
        self.0.get()
    }
}
