//! How an IndexedDB store is opened.

use crate::clock::Ms;

/// When a write counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the operating system has it. It survives the tab and the browser; a power cut may lose the last moments.
    #[default]
    Relaxed,
    /// When the disk has it.
    Strict,
}

impl Durability {
    /// The name in IndexedDB.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Relaxed => "relaxed",
            Self::Strict => "strict",
        }
    }
}

/// Options of an IndexedDB store.
#[derive(Clone, Copy, Debug)]
pub struct IndexedDbOptions {
    /// When a write counts as durable.
    pub durability: Durability,
    /// How long to wait for another tab or for the disk, in milliseconds, before `busy`.
    pub busy_after: Ms,
    /// How long to wait for other tabs to close an old version, in milliseconds, before `upgrade_blocked`.
    pub blocked_after: Ms,
}

impl Default for IndexedDbOptions {
    fn default() -> Self {
        Self { durability: Durability::Relaxed, busy_after: 10_000, blocked_after: 3_000 }
    }
}
