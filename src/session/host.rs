//! What an open store needs of the world around it: time, tasks, locks, and whoever is to hear of something.

use super::application::{Application, LocalFuture};
use crate::clock::{Clock, Ms};
use crate::error::Result;
use crate::finding::Finding;
use crate::id::IdSource;
use crate::json::JsonStr;
use crate::message::Message;
use crate::store::NoticeText;
use std::any::Any;
use std::rc::Rc;

/// The world around an open store. A binding implements it, and so do tests, with a clock of their own.
///
/// [`now`](Clock::now) and [`draw_ids`](Self::draw_ids) may call functions of the application: they are called before a
/// step, with nothing borrowed. [`new_id`](IdSource::new_id) calls none.
pub trait Host: Clock + IdSource + Application {
    /// Draws the ids of the next step from the application's source.
    fn draw_ids(&self);

    /// Returns a random id, independent of the application's source. Used where correctness requires a unique id.
    fn random_id(&self) -> String;

    /// Runs work that nobody awaits.
    fn spawn(&self, work: LocalFuture<'static, ()>);

    /// Resolves after `ms` milliseconds, or to false at once on a platform without timers. A process need not stay for
    /// it.
    fn sleep(&self, ms: Ms) -> LocalFuture<'static, bool>;

    /// As [`sleep`](Self::sleep), for the limit of a wait: a process stays for it, until it is dropped.
    fn time_limit(&self, ms: Ms) -> LocalFuture<'static, bool>;

    /// Resolves after a random time of at most `longest` milliseconds.
    fn random_pause(&self, longest: Ms) -> LocalFuture<'static, ()>;

    /// Acquires the locks of a run.
    ///
    /// # Errors
    /// `store_error` if what keeps the locks fails.
    fn lock_run<'h>(&'h self, names: &'h RunLockNames) -> LocalFuture<'h, Result<LockOutcome>>;

    /// Asks which locks are held, in any tab or process; none if nothing but leases tells who is alive.
    fn held_locks(&self) -> LocalFuture<'_, Option<HeldLocks>>;

    /// Resolves when nobody holds the lock of this name, or to false at once if that cannot be waited for.
    fn lock_released<'h>(&'h self, name: &'h str) -> LocalFuture<'h, bool>;

    /// Returns true if a run without a lock has a lease.
    fn has_leases(&self) -> bool;

    /// Begins to hear of the changes of other processes: somebody listens here.
    fn listen(&self);

    /// Announces a change of a session.
    fn announce(&self, change: &SessionChange<'_>, audience: Audience);

    /// Returns what makes the notice of an append by the open store `origin`.
    fn notice_of(&self, session: &str, origin: &str) -> NoticeText;

    /// Tells the other tabs something about the answer of a run that comes in.
    fn send_answer(&self, session: &str, run: &str, news: AnswerNews<'_>);

    /// Reports findings to the application.
    fn warn(&self, findings: &[Finding]);

    /// Makes what shows a session.
    fn surface(&self) -> Rc<dyn SessionSurface>;

    /// Ends the connections to other tabs and processes.
    fn disconnect(&self);

    /// Forgets who listens.
    fn drop_listeners(&self);
}

/// The names of a run's locks.
pub struct RunLockNames {
    /// Of the lock that the run's holder has.
    pub holder: String,
    /// Of the lock by which others wait for the holder's end.
    pub liveness: String,
}

/// Shows that a run's holder is alive, until it is dropped.
pub type RunLock = Box<dyn Any>;

/// Returns true for the name of a lock that is held.
pub type HeldLocks = Box<dyn Fn(&str) -> bool>;

/// The outcome of a request for a lock.
pub enum LockOutcome {
    /// It is held here now.
    Acquired(RunLock),
    /// Somebody else holds it.
    HeldElsewhere,
    /// There are no locks.
    Unsupported,
}

/// A change of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionChange<'s> {
    /// Its id.
    pub session: &'s str,
    /// The revision of its history.
    pub revision: u64,
    /// True if it was deleted.
    pub is_deleted: bool,
}

/// Who hears of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The listeners here, and other tabs and processes.
    Everyone,
    /// The listeners here: others know it already, or hear of it from the store.
    Here,
}

/// What a tab tells others about the answer of a run.
#[derive(Clone, Copy)]
pub enum AnswerNews<'n> {
    /// Whoever drives the run is asked for the answer so far.
    Request,
    /// The answer so far; none if it begins again.
    Whole(Option<&'n Message>),
    /// A text that comes after what was sent of the message.
    Text {
        /// The message's id.
        message: &'n str,
        /// The text.
        text: &'n JsonStr,
        /// True for reasoning.
        is_reasoning: bool,
    },
}

/// What shows a session: the views and listeners of a binding.
pub trait SessionSurface: Any {
    /// Called after each change.
    fn on_change(&self);

    /// Called when the history was replaced by another one.
    fn on_history_replaced(&self);

    /// Returns true while somebody listens.
    fn has_listeners(&self) -> bool;

    /// Forgets who listens.
    fn drop_listeners(&self);
}
