//! The next request's body, without a run.

use super::open_session::OpenSession;
use crate::clock::Ms;
use crate::error::Result;
use crate::finding::{Finding, FindingCode};
use crate::history::{
    HeldConversation, History, Incoming, JoinBase, Origin, ProvidedMessages, check_one_loader, join, join_held,
    join_provided,
};
use crate::owner::StateOwner;
use crate::provider::{StateRefusal, changed_head};
use crate::render::{BodyBuffer, LastRequest, RenderInput, RenderRequest, RenderStep, Rendered};
use crate::replay::{HistoryScope, ReducerReplies};

impl OpenSession {
    /// Writes the body of the next request at the time `now` to `body`. The caller has drawn ids, and read what can be
    /// read of history.
    ///
    /// # Errors Those of the input, of what is provided, and of the request; `closed` if the wait for a function of the
    /// application was ended.
    pub async fn render(
        &self,
        request: &RenderRequest<'_>,
        input: (Vec<Incoming>, Vec<ProvidedMessages>, Ms),
        body: &mut dyn BodyBuffer,
    ) -> Result<Rendered> {
        let (items, provided, now) = input;
        let owner = self.owner()?;
        let live = live_history(self, (items, provided), &owner, now)?;
        let last = self.renderer.borrow().last_request(self.log.borrow().head.last_request());
        let mut progress = ReducerReplies::default();
        let mut restarted = None;
        loop {
            let is_restarted = restarted.is_some();
            let step = {
                let log = self.log.borrow();
                let input = RenderInput {
                    history: &log.history,
                    live: Some(&live),
                    owner: if is_restarted { &StateOwner::Session } else { &owner },
                    begins_chain: is_restarted,
                    handoffs: &[],
                    scope: HistoryScope::Whole,
                    sent: last.as_ref().and_then(|last| last.sent.as_deref()),
                    agent: None,
                    now,
                };
                self.renderer.borrow_mut().step_into(input, request, &progress, body)?
            };
            match step {
                RenderStep::Done(mut rendered) => {
                    rendered.report.extend(restarted.take());
                    if request.lets_service_drop() && !self.log.borrow().head.has_dropped {
                        self.renderer.borrow_mut().note_drop();
                    }
                    if rendered.sent.is_some() || last.is_some() {
                        let (request, log) = (LastRequest { sent: rendered.sent.clone() }, self.log.borrow());
                        self.renderer.borrow_mut().keep_last_request(request, log.head.last_request());
                    }
                    return Ok(rendered);
                }
                RenderStep::HeadChanged => restarted = Some(restart(&owner)?),
                RenderStep::Question(ask) => {
                    let asked = self.context.host.reduce(&ask);
                    let given = self.context.callbacks.answered(asked).await?;
                    self.renderer.borrow_mut().take_reply(ask, given, &mut progress);
                }
            }
        }
    }
}

/// Returns the finding about a chain that the request begins again, since the service keeps other instructions or tools
/// with it.
///
/// # Errors
/// `config_invalid` if the chain did not begin here; `chain_lost` if it may not begin again.
fn restart(owner: &StateOwner) -> Result<Finding> {
    let text = StateRefusal::HeadChanged.restarted().filter(|_| owner.restarts_if_lost());
    let text = text.ok_or_else(|| changed_head(owner))?;
    Ok(Finding::warning(FindingCode::ChainRestarted, text))
}

/// What the request has after the stored history: the messages that providers add, and its input.
fn live_history(
    session: &OpenSession,
    (items, provided): (Vec<Incoming>, Vec<ProvidedMessages>),
    owner: &StateOwner,
    now: Ms,
) -> Result<History> {
    let mut live = History::new(session.context.settings.seed);
    let origin = Origin { at: now, ..Origin::default() };
    if *owner == StateOwner::Caller {
        check_one_loader(&provided, &HeldConversation::split(items.clone()).earlier)?;
    }
    join_provided(&session.log.borrow().history, &mut live, provided, &origin, session.context.ids())?;
    if *owner == StateOwner::Caller {
        join_held(&mut live, items, &origin, session.context.ids());
    } else {
        let late_results = session.log.borrow().history.late_results().unplaced_ids();
        let origin = Origin { late_results, ..origin };
        let joined = join(JoinBase::live(&session.log.borrow().history, &live), items, &origin, session.context.ids());
        joined.entries.into_iter().for_each(|entry| live.apply(entry));
    }
    Ok(live)
}
