//! What a run borrows for one step.

use crate::clock::Ms;
use crate::history::History;
use crate::id::{IdSource, Seed};
use crate::render::Renderer;

/// What a run works with, lent for one step.
pub struct RunContext<'d> {
    /// The session's history.
    pub history: &'d History,
    /// The session's renderer.
    pub renderer: &'d mut Renderer,
    /// The current time.
    pub now: Ms,
    /// The source of new ids.
    pub ids: &'d dyn IdSource,
    /// The hash seed of the live turn's maps.
    pub seed: Seed,
    /// The session's marks of what providers refused:
    /// [`SessionHead::refused`](crate::session_head::SessionHead::refused).
    pub refused: &'d [String],
    /// The session's last request: [`SessionHead::last_request`](crate::session_head::SessionHead::last_request).
    pub last_request: Option<&'d [u8]>,
    /// The number of the branch that the history is of.
    pub branch: u64,
}
