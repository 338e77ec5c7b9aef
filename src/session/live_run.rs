//! A run that is live in a session, as the session and what shows it see it.

use super::application::LocalFuture;
use crate::error::{Error, Result};
use crate::history::History;
use crate::message::Message;
use crate::run::Run;
use std::cell::Ref;
use std::rc::Rc;

/// A live run. Implemented by [`RunDriver`](super::RunDriver), which knows its session.
pub trait LiveRun {
    /// Returns the run's id.
    fn id(&self) -> &str;

    /// Returns the state machine.
    fn machine(&self) -> Ref<'_, Run>;

    /// Adds the results that history has of the turn's open calls.
    fn take_stored_results(&self, history: &History);

    /// Returns a copy of the answer that is coming in.
    fn partial(&self) -> Option<Message>;

    /// Cancels the run.
    fn cancel(self: Rc<Self>) -> LocalFuture<'static, Result<()>>;

    /// Sends the answer so far, and from now on each addition, to other tabs.
    fn send_answer(&self);

    /// Writes what was deferred, unless another holder took the run over.
    fn flush_before_read(&self) -> LocalFuture<'_, Result<()>>;

    /// Writes what was deferred and ends the run's lease, because its store is being closed.
    fn write_last(&self) -> LocalFuture<'_, ()>;

    /// Ends the run, because its session was deleted elsewhere or lost by the store.
    fn lose_session(&self, error: Error);

    /// Releases the run's lock and everything that it holds in memory, because its store was closed.
    fn release(&self);
}
