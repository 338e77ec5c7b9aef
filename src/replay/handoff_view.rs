//! [`HandoffView`]: what an agent sees of the conversation before a run was handed off to it (R31).

use super::reduce::Callback;
use super::request_draft::{DraftMessage, DraftOrigin};
use crate::message::Message;
use std::cell::OnceCell;

/// What an agent sees of the messages before the run was handed off to it.
#[derive(Clone, Debug)]
pub struct HandoffView {
    /// The function that selects messages.
    pub filter: Option<Callback>,
    /// True if the messages are sent as one.
    pub nests_history: bool,
    /// The number of messages of the live turn before the handoff.
    pub live_end: usize,
    /// The `seq` after the last stored message before the handoff.
    pub stored_end: u64,
    /// The nested history: written with the first request, then repeated unchanged.
    pub(super) nested: OnceCell<Message>,
}

impl HandoffView {
    /// Creates a view without a filter and without nesting, of a handoff at these positions.
    #[must_use]
    pub fn new(live_end: usize, stored_end: u64) -> Self {
        Self { filter: None, nests_history: false, live_end, stored_end, nested: OnceCell::new() }
    }

    /// Returns true for a message before the handoff.
    pub(super) fn covers(&self, item: &DraftMessage<'_>) -> bool {
        match item.origin {
            DraftOrigin::Stored(_) | DraftOrigin::LateResult => item.message.seq < self.stored_end,
            DraftOrigin::Live(index) => index < self.live_end,
            // Compactions and earlier handoffs create messages at the beginning only.
            DraftOrigin::Created | DraftOrigin::Replacement => true,
        }
    }
}
