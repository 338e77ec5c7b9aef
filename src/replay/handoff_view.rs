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
    /// The message that contains the others, from the first request on.
    pub(super) nested: OnceCell<Message>,
}

impl HandoffView {
    /// Creates the view of an agent that sees all messages up to these ends.
    #[must_use]
    pub fn new(live_end: usize, stored_end: u64) -> Self {
        Self { filter: None, nests_history: false, live_end, stored_end, nested: OnceCell::new() }
    }

    /// Returns true for a message before the handoff.
    pub(super) fn covers(&self, item: &DraftMessage<'_>) -> bool {
        match item.origin {
            DraftOrigin::Stored(_) => item.message.seq < self.stored_end,
            DraftOrigin::Live(index) => index < self.live_end,
            // An earlier handoff created it.
            DraftOrigin::Created | DraftOrigin::Summary => true,
        }
    }
}
