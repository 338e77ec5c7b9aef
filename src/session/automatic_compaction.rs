//! The compaction that a session makes by itself: when the newest request of a run has reached a number of tokens, and
//! the run is over (R78).

use super::compaction::{has_reached, resolve_mode};
use super::open_session::OpenSession;

impl OpenSession {
    /// Requests the compaction of the option `compaction`, if the newest request was large enough. Nothing is requested
    /// that the owner or the provider does not allow: the fallback shortens requests then. While one is under way, no
    /// other is asked for.
    pub fn request_automatic_compaction(&self) {
        let Some(request) = self.compaction.automatic.borrow().as_ref().map(|option| option.request.clone()) else {
            return;
        };
        if !self.compaction.is_under_way.get()
            && resolve_mode(self, &request).is_ok()
            && has_reached(self, &request)
            && !self.compaction.overtaken.leaves_out_run()
        {
            // One that the application asked for may wait already.
            let mut deferred = self.compaction.deferred.borrow_mut();
            deferred.take_if(|waiting| waiting.is_conditional() && !has_reached(self, waiting));
            deferred.get_or_insert(request);
            drop(deferred);
            self.update_hold();
        }
    }
}
