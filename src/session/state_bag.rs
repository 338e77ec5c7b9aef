//! The state bag of a session: values of the application, stored with its next append.

use super::open_session::OpenSession;
use crate::json::Json;

impl OpenSession {
    /// Returns the value of a key.
    pub fn state_value(&self, key: &str) -> Option<Json> {
        if let Some(value) = self.state.borrow().get(key) {
            return Some(value.clone());
        }
        let log = self.log.borrow();
        log.head.state.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }

    /// Sets the value of a key.
    pub fn set_state_value(&self, key: String, value: Json) {
        self.state.borrow_mut().insert(key, value);
        self.update_hold();
    }

    /// Returns all keys, sorted.
    pub fn state_keys(&self) -> Vec<String> {
        let (log, unsaved) = (self.log.borrow(), self.state.borrow());
        // Stored values are sorted by key.
        let mut keys: Vec<String> = log.head.state.iter().map(|(key, _)| key.clone()).collect();
        for key in unsaved.keys() {
            if let Err(at) = keys.binary_search(key) {
                keys.insert(at, key.clone());
            }
        }
        keys
    }
}
