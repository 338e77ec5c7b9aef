//! The options of a repair.

use crate::synthetic_result::NO_RESULT;

/// What a repair does with a call that has no result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dangling {
    /// Adds a synthetic error result, which keeps the evidence that the tool may have run.
    #[default]
    Synthesize,
    /// Removes the call.
    Omit,
}

/// The options of [`repair`](super::repair).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairOptions {
    /// What to do with a call that has no result.
    pub dangling: Dangling,
    /// The text of a synthetic result; [`NO_RESULT`] if absent.
    pub dangling_text: Option<String>,
}

impl RepairOptions {
    /// Returns the text of a synthetic result. It is never blank: some providers reject an error result without
    /// content.
    #[must_use]
    pub fn text(&self) -> &str {
        self.dangling_text.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or(NO_RESULT)
    }
}
