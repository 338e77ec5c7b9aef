//! [`Cut`]: where what was sent before is decided anew (R72).

/// Why what was sent before is decided anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The last request is longer ago than the provider's cache lives.
    Idle,
    /// Another provider gets the request.
    Provider,
    /// Another model gets it.
    Model,
    /// The instructions are others.
    Instructions,
    /// The tools are others.
    Tools,
    /// A compaction was made, or does not apply any more.
    Compaction,
    /// The request would be larger than a `token_budget`.
    Budget,
    /// What the last request contained is not known here: the store has too little of it, or must not have it.
    NotStored,
    /// Messages of the last request are not in history any more, or what replaced messages in it does not say what is
    /// known of them by now.
    History,
}

impl Cut {
    /// Every value.
    pub const ALL: &'static [Self] = &[
        Self::Idle,
        Self::Provider,
        Self::Model,
        Self::Instructions,
        Self::Tools,
        Self::Compaction,
        Self::Budget,
        Self::NotStored,
        Self::History,
    ];

    /// Returns the stable name in the public types.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Provider => "provider",
            Self::Model => "model",
            Self::Instructions => "instructions",
            Self::Tools => "tools",
            Self::Compaction => "compaction",
            Self::Budget => "budget",
            Self::NotStored => "not_stored",
            Self::History => "history",
        }
    }
}
