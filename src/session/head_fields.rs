//! Fields of the head that were given when a session was opened.

use crate::json::Json;
use crate::session_head::{SessionHead, StoredOwner};

/// Fields of the head that were given when the session was opened. They are written with the next append.
#[derive(Default)]
pub struct HeadFields {
    pub title: Option<String>,
    pub channel: Option<String>,
    pub metadata: Option<Json>,
    pub owner: Option<StoredOwner>,
}

impl HeadFields {
    /// Replaces the fields that `newer` has.
    pub fn replace_with(&mut self, newer: Self) {
        let earlier = std::mem::take(self);
        *self = Self {
            title: newer.title.or(earlier.title),
            channel: newer.channel.or(earlier.channel),
            metadata: newer.metadata.or(earlier.metadata),
            owner: newer.owner.or(earlier.owner),
        };
    }

    /// Writes the fields to a head.
    pub fn apply(&self, head: &mut SessionHead) {
        if self.title.is_some() {
            head.title.clone_from(&self.title);
        }
        if self.channel.is_some() {
            head.channel.clone_from(&self.channel);
        }
        if self.metadata.is_some() {
            head.metadata.clone_from(&self.metadata);
        }
        if let Some(owner) = &self.owner {
            head.owner.clone_from(owner);
        }
    }
}
