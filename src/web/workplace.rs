//! What a step of a run works on: the session's log and renderer, borrowed until the step is done.

use super::engine::Engine;
use super::session::SessionInner;
use crate::clock::Ms;
use crate::render::Renderer;
use crate::run::RunContext;
use crate::store::SessionLog;
use std::cell::{Ref, RefMut};

impl SessionInner {
    /// What a step of a run works on. The application's clock and ids are asked before anything is borrowed.
    pub fn workplace(&self) -> Workplace<'_> {
        let now = self.engine.now();
        self.engine.ids.draw();
        Workplace { engine: &self.engine, now, log: self.log.borrow(), renderer: self.renderer.borrow_mut() }
    }
}

/// A step's surroundings, borrowed until it is done.
pub struct Workplace<'s> {
    engine: &'s Engine,
    now: Ms,
    pub log: Ref<'s, SessionLog>,
    renderer: RefMut<'s, Renderer>,
}

impl Workplace<'_> {
    pub fn run_context(&mut self) -> RunContext<'_> {
        RunContext {
            history: &self.log.history,
            renderer: &mut self.renderer,
            now: self.now,
            ids: &self.engine.ids,
            seed: self.engine.seed,
        }
    }
}
