//! Sends a question: at once, or after the runs before it (`whenBusy: "queue"`), in the order in which they were sent.

use super::live_run::LiveRun;
use super::new_run::NewRun;
use super::open_session::OpenSession;
use super::queue_begin::QueueBegin;
use super::queued_question::QueuedQuestion;
use super::queued_run::QueuedRun;
use super::run_driver::RunDriver;
use crate::error::{ErrorCode, Result};
use std::rc::Rc;

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
    /// Those of [`begin`](Self::begin) and [`launch`](Self::launch). If its question waited, it waits no more, except
    /// after `closed`; then [`take_up`](Self::take_up) continues it.
    pub async fn send(
        session: &Rc<OpenSession>,
        waits: bool,
        read: impl FnOnce(String) -> Result<NewRun>,
    ) -> Result<Rc<Self>> {
        if !waits {
            return Box::pin(Self::launch(session, Self::begin(session, read))).await;
        }
        let order = session.run_queue.sends.enter();
        session.context.host.draw_ids();
        let drawn = session.context.ids().new_id();
        let mut new_run = read(drawn)?;
        let question = session.question(&new_run.input, &mut new_run.input_id);
        let place = QueuedQuestion::new(session, question);
        let order = order.start().await;
        session.context.check_open()?;
        if place.is_first()
            && session.try_reserve_run()
            && let Attempt::Begun(run) = Box::pin(Self::attempt(session, &new_run, None)).await?
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
        if let (Err(error), Some(queued)) = (&begun, &queued) {
            // The sender is told that it was not sent. A closed store can be opened again.
            if error.code == ErrorCode::Closed { queued.release().await } else { queued.remove().await }
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
        let mut awaited = (String::new(), 0_u32);
        loop {
            session.reserve_in_turn((place, queued)).await?;
            match Box::pin(Self::attempt(session, new_run, queued)).await? {
                Attempt::Begun(run) => return Ok(run),
                Attempt::Blocked(None) => {}
                Attempt::Blocked(Some(run)) => {
                    awaited = if awaited.0 == run { (run, awaited.1.saturating_add(1)) } else { (run, 0) };
                    session.await_holder((&awaited.0, awaited.1), queued).await?;
                }
            }
        }
    }

    /// Begins a run in the place that is reserved, or frees that.
    async fn attempt(session: &Rc<OpenSession>, new_run: &NewRun, queued: Option<&QueuedRun>) -> Result<Attempt> {
        let begun = match Box::pin(Self::begin_next(session, new_run, queued)).await {
            Ok(Attempt::Begun(run)) => run,
            blocked => {
                session.set_run(None);
                return blocked;
            }
        };
        session.set_run(Some(begun.clone() as Rc<dyn LiveRun>));
        // Given to the providers when the run is over, and not if it is begun again.
        let hook = begun.store_hook.take();
        // The run's events report what could not be written.
        let written = begun.write_pending().await;
        // With `flushMs`, too, the next one in the queue must see this run.
        let _ = begun.flush().await;
        session.context.check_open()?;
        if is_busy(&written) {
            // Nothing was stored of it, and nothing sent.
            session.pending.borrow_mut().retain(|run| run.id != begun.id);
            return Ok(Attempt::Blocked(None));
        }
        begun.store_hook.replace(hook);
        if begun.machine.borrow().status().is_over() {
            // The run's report has a failure.
            let _ = begun.store_in_providers().await;
        }
        Ok(Attempt::Begun(begun))
    }

    /// Makes a run whose turn has come.
    async fn begin_next(session: &Rc<OpenSession>, new_run: &NewRun, queued: Option<&QueuedRun>) -> Result<Attempt> {
        let turn = match session.look_for_turn(&new_run.setup.id, queued).await? {
            Ok(turn) => turn,
            Err(run) => return Ok(Attempt::Blocked(Some(run))),
        };
        let (hold, begin) = match queued {
            None => (None, QueueBegin::InTurn(turn)),
            Some(queued) => {
                let entry = queued.entry()?;
                match queued.admit(turn).await {
                    Err(error) if error.code == ErrorCode::Busy => return Ok(Attempt::Blocked(None)),
                    admitted => admitted?,
                }
                session.show_branch_of(&entry).await?;
                (Some(queued.take_hold()), QueueBegin::Queued)
            }
        };
        let mut next = new_run.clone();
        session.renew_setup(&mut next.setup)?;
        let run = Box::pin(Self::begin_held(session, (next.setup.id.clone(), hold), next)).await?;
        run.queue_begin.replace(Some(begin));
        Ok(Attempt::Begun(run))
    }
}

fn is_busy(written: &Result<()>) -> bool {
    written.as_ref().is_err_and(|error| error.code == ErrorCode::Busy)
}
