//! Sends a question: at once, or after the runs before it (`whenBusy: "queue"`), in the order in which they were sent.

use super::begin_backoff::BeginBackoff;
use super::host::LockOutcome;
use super::live_run::LiveRun;
use super::new_run::NewRun;
use super::open_session::OpenSession;
use super::queue_begin::QueueBegin;
use super::queued_question::QueuedQuestion;
use super::queued_run::{QueuedRun, refused_for_good};
use super::run_driver::RunDriver;
use super::run_queue::MAX_LOOKS;
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use std::rc::Rc;

/// Time before the next look when a run has just begun elsewhere, in milliseconds.
const SHORT_PAUSE: Ms = 100;

/// An attempt to begin a run.
enum Attempt {
    Begun(Rc<RunDriver>),
    /// Its turn has not come. The id of a run before it, if that is known.
    Blocked(Option<String>),
}

impl RunDriver {
    /// Starts a run of what `read` reads, for the id that it is given. With `waits` it begins after the runs of the
    /// session that are under way in any tab or process, and its question is stored meanwhile.
    ///
    /// # Errors
    /// Those of [`begin`](Self::begin) and [`launch`](Self::launch). Nothing of the question is stored then, except after
    /// `closed`, when [`take_up`](Self::take_up) continues it, after `conflict`, when it was taken over, and after an
    /// error whose outcome is "unknown".
    pub async fn send(
        session: &Rc<OpenSession>,
        waits: bool,
        read: impl FnOnce(String) -> Result<NewRun>,
    ) -> Result<Rc<Self>> {
        if !waits {
            return Box::pin(Self::launch(session, Self::begin(session, read))).await;
        }
        session.context.host.draw_ids();
        let drawn = session.context.ids().new_id();
        let mut new_run = read(drawn)?;
        let order = session.run_queue.sends.enter();
        let question = session.question(&new_run.input, &mut new_run.input_id);
        let place = QueuedQuestion::new(session, question);
        let order = order.start().await;
        session.context.check_open()?;
        if place.is_first()
            && session.try_reserve_run()
            && let Attempt::Begun(run) = Box::pin(Self::attempt(session, &new_run, (&place, None))).await?
        {
            return Ok(run);
        }
        place.show();
        let queued = if session.can_queue(&new_run) {
            Some(Box::pin(QueuedRun::store(session, &place, &mut new_run)).await?)
        } else {
            None
        };
        drop(order);
        let begun = Self::begin_in_turn(session, &new_run, (&place, queued.as_ref())).await;
        if let (Err(error), Some(queued)) = (&begun, &queued)
            && error.code != ErrorCode::Closed
        {
            // The sender is told that it was not sent.
            queued.remove(error).await?;
        }
        begun
    }

    /// Begins a run when nothing before it is under way any more.
    pub(super) async fn begin_in_turn(
        session: &Rc<OpenSession>,
        new_run: &NewRun,
        (place, queued): (&QueuedQuestion<'_>, Option<&QueuedRun>),
    ) -> Result<Rc<Self>> {
        if let Some(queued) = queued {
            place.set_number(queued.number);
        }
        let (mut awaited, mut conflicts) = ((String::new(), 0_u32), 0_u32);
        let mut backoff = BeginBackoff::default();
        loop {
            session.reserve_in_turn((place, queued)).await?;
            match Box::pin(Self::attempt(session, new_run, (place, queued))).await {
                // It is stored, so it waits until the store works again.
                Err(error) if queued.is_some() && may_pass(&error, &mut conflicts) => {
                    let pause = backoff.pause_after(error.code, session.revision(), new_run.provide.is_some());
                    session.pause_in_queue(pause, queued).await?;
                }
                Err(error) => {
                    let is_taken_over = queued.is_some_and(|queued| queued.entry().is_err());
                    return Err(if queued.is_some() && !is_taken_over { refused_for_good(error) } else { error });
                }
                Ok(Attempt::Begun(run)) => return Ok(run),
                Ok(Attempt::Blocked(None)) => session.pause_in_queue(SHORT_PAUSE, queued).await?,
                Ok(Attempt::Blocked(Some(run))) => {
                    awaited = if awaited.0 == run { (run, awaited.1.saturating_add(1)) } else { (run, 0) };
                    session.await_holder((&awaited.0, awaited.1), queued).await?;
                }
            }
        }
    }

    /// Begins a run in the place that is reserved, or frees that.
    async fn attempt(
        session: &Rc<OpenSession>,
        new_run: &NewRun,
        (place, queued): (&QueuedQuestion<'_>, Option<&QueuedRun>),
    ) -> Result<Attempt> {
        // Until the first write of the run, no other one begins in a conversation that a service keeps.
        let (begun, _conversation) = match Box::pin(Self::begin_locked(session, new_run, queued)).await {
            Ok((Attempt::Begun(run), lock)) => (run, lock),
            blocked => {
                session.set_run(None);
                return blocked.map(|(attempt, _)| attempt);
            }
        };
        place.hide_question();
        session.set_run(Some(begun.clone() as Rc<dyn LiveRun>));
        match Box::pin(begun.write_begin()).await {
            Ok(true) => {}
            not_begun => {
                place.show_question();
                return not_begun.map(|_| Attempt::Blocked(None));
            }
        }
        if let Some(queued) = queued {
            queued.give_lock(&begun);
        }
        // The run's events report what could not be written.
        let _ = begun.write_pending().await;
        session.context.check_open()?;
        Ok(Attempt::Begun(begun))
    }

    async fn begin_locked(
        session: &Rc<OpenSession>,
        new_run: &NewRun,
        queued: Option<&QueuedRun>,
    ) -> Result<(Attempt, LockOutcome)> {
        let lock = session.try_lock_queue().await?;
        if matches!(lock, LockOutcome::HeldElsewhere) {
            return Ok((Attempt::Blocked(None), lock));
        }
        Ok((Box::pin(Self::begin_next(session, new_run, queued)).await?, lock))
    }

    /// Makes a run whose turn has come.
    async fn begin_next(session: &Rc<OpenSession>, new_run: &NewRun, queued: Option<&QueuedRun>) -> Result<Attempt> {
        let turn = session.look_for_turn(&new_run.setup.id, queued).await?;
        let (hold, begin) = match (queued, turn) {
            (None, Ok(turn)) => (None, QueueBegin::InTurn(turn)),
            (None, Err(run)) => return Ok(Attempt::Blocked(Some(run))),
            (Some(queued), turn) => {
                let entry = queued.entry()?;
                match turn {
                    // A write whose reply was lost has begun it.
                    _ if !entry.is_queued() => {}
                    Err(run) => return Ok(Attempt::Blocked(Some(run))),
                    Ok(turn) => queued.admit(turn).await?,
                }
                session.show_branch_of(&entry).await?;
                (Some(queued.hold()), QueueBegin::Queued)
            }
        };
        let mut next = new_run.clone();
        session.renew_setup(&mut next.setup)?;
        let run = Box::pin(Self::begin_held(session, (next.setup.id.clone(), hold), next)).await?;
        run.queue_begin.replace(Some(begin));
        Ok(Attempt::Begun(run))
    }
}

/// Returns true for an error of the store after which a question that is stored waits on. One that was taken over is
/// met by the next look; any other `conflict` may repeat.
fn may_pass(error: &Error, conflicts: &mut u32) -> bool {
    match error.code {
        ErrorCode::Busy | ErrorCode::StoreError | ErrorCode::Unavailable => true,
        ErrorCode::Conflict => {
            *conflicts += 1;
            *conflicts < MAX_LOOKS
        }
        _ => false,
    }
}
