//! What shows a session to JavaScript: its listeners and its view.

use super::listeners::Listeners;
use super::view_state::ViewState;
use crate::session::{LiveRun, OpenSession, SessionSurface};
use js_sys::{Function, Promise};
use std::any::Any;
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use wasm_bindgen::prelude::*;

/// The listeners of a session, and what its view keeps.
#[derive(Default)]
pub struct WebSurface {
    pub view: RefCell<ViewState>,
    listeners: Listeners,
    /// The function `run.cancel` of the view's snapshot, and its run.
    cancel: RefCell<Option<(Weak<dyn LiveRun>, JsValue)>>,
}

impl SessionSurface for WebSurface {
    fn on_change(&self) {
        self.view.borrow_mut().invalidate();
        self.listeners.call(&JsValue::UNDEFINED);
    }

    fn on_history_replaced(&self) {
        self.view.borrow_mut().clear();
    }

    fn has_listeners(&self) -> bool {
        !self.listeners.is_empty()
    }

    fn drop_listeners(&self) {
        self.listeners.clear();
    }
}

impl WebSurface {
    /// Returns the function that cancels a run, the same one at each call.
    pub fn cancel_function(&self, run: &Rc<dyn LiveRun>) -> JsValue {
        let mut kept = self.cancel.borrow_mut();
        let run = Rc::downgrade(run);
        if let Some((of, cancel)) = &*kept
            && of.ptr_eq(&run)
        {
            return cancel.clone();
        }
        let cancelled = run.clone();
        let cancel = Closure::<dyn FnMut() -> Promise>::new(move || match cancelled.upgrade() {
            Some(run) => crate::web::promise::done(run.cancel()),
            None => Promise::resolve(&JsValue::UNDEFINED),
        })
        .into_js_value();
        kept.insert((run, cancel)).1.clone()
    }
}

impl OpenSession {
    /// Returns what shows the session. Each is made by [`WebHost`](super::web_host::WebHost), so the default is never used.
    pub fn web_surface(&self) -> Rc<WebSurface> {
        let surface: Rc<dyn Any> = self.surface.clone();
        surface.downcast().unwrap_or_default()
    }

    /// Adds a listener to changes; returns the function that removes it.
    pub fn subscribe(&self, listener: Function) -> Function {
        self.context.host.listen();
        let session = self.weak_self.clone();
        let removed = move || {
            if let Some(session) = session.upgrade() {
                session.update_hold();
            }
        };
        let remove = self.web_surface().listeners.add(listener, Box::new(removed));
        self.update_hold();
        remove
    }
}
