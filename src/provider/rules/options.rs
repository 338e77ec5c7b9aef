//! The options of a repair.

/// What a repair does with a call that has no result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dangling {
    /// Adds a synthetic error result, which keeps the evidence that the tool may have run.
    #[default]
    Synthesize,
    /// Removes the call.
    Omit,
}

/// The text of a synthetic result.
pub const INTERRUPTED: &str = "Interrupted: this call has no recorded result; it may or may not have run.";

/// The options of [`repair`](super::repair).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairOptions {
    /// What to do with a call that has no result.
    pub dangling: Dangling,
    /// The text of a synthetic result; [`INTERRUPTED`] if absent.
    pub dangling_text: Option<String>,
}

impl RepairOptions {
    /// Returns the text of a synthetic result. It is never blank: some providers reject an error result without content.
    #[must_use]
    pub fn text(&self) -> &str {
        self.dangling_text.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or(INTERRUPTED)
    }
}
