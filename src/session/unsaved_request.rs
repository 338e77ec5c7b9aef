//! What requests of `render` leave for the session's head, which the next append writes: the application sends them,
//! and appends what came of it.

use crate::render::{LastRequest, Renderer};
use crate::session_head::SessionHead;
use crate::store::{Change, HeadEdit};

/// What a change tells the head about requests of `render`.
#[derive(Default)]
pub struct UnsavedRequest {
    /// What the last one contained (R72).
    last: Option<LastRequest>,
    /// True if one let the service drop reasoning (R70).
    drops: bool,
}

impl UnsavedRequest {
    /// Adds to a change of history what `head` lacks of the requests of `render`; returns that. A run writes its own
    /// last request.
    pub fn add_to(change: &mut Change, renderer: &Renderer, head: &SessionHead) -> Self {
        if change.entries.is_empty() {
            return Self::default();
        }
        let last = renderer.unsaved_last_request(head.last_request()).filter(|_| change.journal.is_none());
        let drops = renderer.has_unsaved_drop();
        if last.is_some() || drops {
            let bytes = last.as_ref().map(LastRequest::to_bytes);
            let before = head.last_request().map(<[u8]>::to_vec);
            change.edit = Some(edit_after(change.edit.take(), move |head| {
                if let Some(bytes) = &bytes {
                    head.follow_last_request(before.as_deref(), bytes.as_deref());
                }
                head.has_dropped |= drops;
            }));
        }
        Self { last, drops }
    }

    /// Notes that the head has it.
    pub fn note_saved(&self, renderer: &mut Renderer) {
        if let Some(last) = &self.last {
            renderer.on_last_request_saved(last);
        }
        if self.drops {
            renderer.on_drop_saved();
        }
    }
}

/// Returns an edit that does `first`, then `then`.
pub fn edit_after(first: Option<HeadEdit>, then: impl Fn(&mut SessionHead) + 'static) -> HeadEdit {
    Box::new(move |head| {
        if let Some(first) = &first {
            first(head);
        }
        then(head);
    })
}
