//! The session's log and renderer, borrowed for one step of a run.

use super::context::StoreContext;
use super::open_session::OpenSession;
use crate::clock::Ms;
use crate::render::Renderer;
use crate::run::RunContext;
use crate::store::SessionLog;
use std::cell::{Ref, RefMut};

impl OpenSession {
    /// Borrows what a step of a run needs. The callbacks `now` and `newId` are called before, since they may call back.
    pub fn borrow_for_step(&self) -> StepBorrows<'_> {
        let now = self.context.now();
        self.context.host.draw_ids();
        StepBorrows { context: &self.context, now, log: self.log.borrow(), renderer: self.renderer.borrow_mut() }
    }
}

/// What a step of a run borrows.
pub struct StepBorrows<'s> {
    context: &'s StoreContext,
    now: Ms,
    pub log: Ref<'s, SessionLog>,
    renderer: RefMut<'s, Renderer>,
}

impl StepBorrows<'_> {
    pub fn run_context(&mut self) -> RunContext<'_> {
        RunContext {
            history: &self.log.history,
            renderer: &mut self.renderer,
            now: self.now,
            ids: self.context.ids(),
            seed: self.context.settings.seed,
            refused: &self.log.head.refused,
            last_request: self.log.head.last_request(),
            branch: self.log.branch_number(),
        }
    }
}
