//! A BroadcastChannel to the other tabs of an origin that have the database open.

use crate::web::trap_cleanup::TrapCleanup;
use wasm_bindgen::prelude::*;

/// An open channel. Messages of other tabs are handled until it is dropped or closed.
pub struct TabChannel {
    channel: web_sys::BroadcastChannel,
    _on_message: Closure<dyn FnMut(web_sys::MessageEvent)>,
    _hold: Option<TrapCleanup>,
}

impl TabChannel {
    /// Opens a channel, or returns none if the platform has no BroadcastChannel.
    pub fn open(name: &str, mut on_message: impl FnMut(&JsValue) + 'static) -> Option<Self> {
        let channel = web_sys::BroadcastChannel::new(name).ok()?;
        let on_message = Closure::new(move |event: web_sys::MessageEvent| on_message(&event.data()));
        channel.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        Some(Self { _hold: TrapCleanup::closing(&channel), channel, _on_message: on_message })
    }

    /// Sends a message to the other tabs.
    pub fn post(&self, value: &JsValue) {
        // Fails only if the channel is closed; then nobody is to be told.
        let _ = self.channel.post_message(value);
    }

    /// Closes the channel.
    pub fn close(&self) {
        self.channel.set_onmessage(None);
        self.channel.close();
    }
}
