//! Takes up a question that waited when its tab or process ended: it waits here, in the place that it had.

use super::new_run::NewRun;
use super::open_session::OpenSession;
use super::queued_question::QueuedQuestion;
use super::resume::{ResumeRequest, lock_queued_run};
use super::run_driver::RunDriver;
use crate::error::{ErrorCode, Result};
use crate::history::{Incoming, IncomingMessage, IncomingPart};
use crate::message::Message;
use crate::replay::Callback;
use crate::run::{RunSetup, StoredRun};
use std::rc::Rc;

impl OpenSession {
    /// Returns true if a run is a question that waits.
    ///
    /// # Errors
    /// The store's own.
    pub async fn is_queued(&self, run: &str) -> Result<bool> {
        self.refresh().await?;
        Ok(self.log.borrow().head.run(run).is_some_and(|entry| entry.is_queued()))
    }
}

impl RunDriver {
    /// Takes up a question that waits and that nobody holds, and starts its run when its turn has come. `provide` and
    /// `store` call the history providers.
    ///
    /// # Errors
    /// `busy` if it waits in a tab or process, `not_found` if it waits no more; those of [`begin`](Self::begin). The
    /// question waits on then.
    pub async fn take_up(
        session: &Rc<OpenSession>,
        request: ResumeRequest,
        (provide, store): (Option<Callback>, Option<Callback>),
    ) -> Result<Rc<Self>> {
        let ResumeRequest { mut setup, persistence, handoffs } = request;
        setup.provider.check()?;
        let (queued, mut stored) = Box::pin(lock_queued_run(session, &setup.id)).await?;
        let begun = Box::pin(async {
            stored.check_credentials(&setup.provider)?;
            stored.attach_handoffs(handoffs, &setup)?;
            setup.persistence = persistence.unwrap_or(stored.began.persistence);
            setup.check()?;
            let place = QueuedQuestion::new(session, Rc::new(stored.live.clone()));
            place.show();
            let new_run = new_run_of(stored, setup, (provide, store));
            Self::begin_in_turn(session, &new_run, (&place, Some(&queued))).await
        });
        let begun = begun.await;
        match &begun {
            // It was cancelled while it began.
            Err(error) if error.code == ErrorCode::Aborted => queued.remove(error).await?,
            Err(_) => queued.release().await,
            Ok(_) => {}
        }
        begun
    }
}

fn new_run_of(stored: StoredRun, setup: RunSetup, (provide, store): (Option<Callback>, Option<Callback>)) -> NewRun {
    let input_id = stored.began.input.first().map(|message| message.id.clone());
    let input = stored.began.input.into_iter().map(incoming).collect();
    NewRun { setup, input, input_id, branch: None, replace: None, provide, store }
}

fn incoming(message: Message) -> Incoming {
    let Message { role, parts, dialect, template, .. } = message;
    let parts = parts.into_iter().map(IncomingPart::Part).collect();
    Incoming::Message(IncomingMessage { role, parts, dialect, template })
}
