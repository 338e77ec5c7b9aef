//! The call that an answer from outside of its run is of (R75).

use super::machine::Run;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{Answerable, CallSearch, History, find_call};
use crate::tool::ToolInvocation;

/// The turn of an unfinished run.
pub struct PendingTurn<'t> {
    /// The run's id.
    pub run: &'t str,
    /// Its input, its answers, and their calls.
    pub turn: &'t History,
    /// The number of records of its journal that the turn has.
    pub records: u64,
    /// Who has it.
    pub holder: RunHolder<'t>,
}

/// Who has an unfinished run.
pub enum RunHolder<'t> {
    /// Nobody, until it is resumed.
    Nobody,
    /// Another tab or process.
    Elsewhere,
    /// This one.
    Here(&'t Run),
}

/// The call that an answer is of.
#[derive(Clone, Debug, PartialEq)]
pub struct AnsweredCall {
    /// The call.
    pub call: ToolInvocation,
    /// The unfinished run that has it.
    pub run: Option<String>,
    /// The number of records of that run's journal, none of which is the result. `None` if the run goes on without the
    /// result.
    pub records: Option<u64>,
    /// True if it takes an answer only because nobody drives that run.
    pub needs_dead_holder: bool,
}

impl AnsweredCall {
    fn new(call: &ToolInvocation, run: Option<&PendingTurn<'_>>) -> Self {
        let own = run.and_then(|run| run.turn.invocation(&call.id));
        let is_dead = run.is_some_and(|run| matches!(run.holder, RunHolder::Nobody));
        let needs_dead_holder = is_dead && own.is_some_and(ToolInvocation::is_answered_by_its_run);
        let is_awaited = own.is_some_and(|own| !own.is_deferred);
        let records = run.filter(|_| is_awaited).map(|run| run.records);
        Self { call: call.clone(), run: run.map(|run| run.run.to_owned()), records, needs_dead_holder }
    }
}

/// Why a call takes no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rejection {
    Answered,
    NotStarted,
    TakenHere,
    TakenElsewhere,
}

impl Rejection {
    fn into_error(self, name: &str) -> Error {
        let sentence = match self {
            Self::Answered => {
                format!("the call \"{name}\" has its result already, or its content is withheld from the store")
            }
            Self::NotStarted => {
                "the tool of this call was not started, so its run takes the result; answer the run's effect, which names the call, with \
                 `Run.answer(effect.id, …)` (of an interrupted run, after `resume`)"
                    .into()
            }
            Self::TakenHere => {
                "the run waits for this tool and takes its result; answer its effect with `Run.answer`".into()
            }
            Self::TakenElsewhere => {
                "another tab or process has the run of this call, which takes its tool's result there; answer the call \
                                     when that run has ended, or declare the tool with `async: true`"
                    .into()
            }
        };
        Error::new(ErrorCode::WrongState, sentence)
    }
}

impl PendingTurn<'_> {
    /// Returns why an answer may not take the place of the result for which the run waits: it would not read the
    /// answer, so there would be two.
    fn rejection(&self, invocation: &str) -> Option<Rejection> {
        let call = self.turn.invocation(invocation)?;
        match self.holder {
            _ if !call.takes_result() => Some(Rejection::Answered),
            // Its tool runs when it is approved, or when the run goes on.
            _ if !has_begun(call) => Some(Rejection::NotStarted),
            RunHolder::Here(run) if run.awaits_tool(call) => Some(Rejection::TakenHere),
            RunHolder::Elsewhere if call.is_answered_by_its_run() => Some(Rejection::TakenElsewhere),
            RunHolder::Nobody | RunHolder::Elsewhere | RunHolder::Here(_) => None,
        }
    }

    /// Judges a call of this turn that history does not have.
    fn judge(&self, call: &ToolInvocation, history: &History) -> Answerable<Rejection> {
        if history.invocation(&call.id).is_some() {
            Answerable::Unseen
        } else if history.early_result(&call.id).is_some() {
            Answerable::No(Rejection::Answered)
        } else {
            self.rejection(&call.id).map_or(Answerable::Yes, Answerable::No)
        }
    }
}

fn has_begun(call: &ToolInvocation) -> bool {
    call.awaits_result() || call.started_at.is_some()
}

/// Returns true if history alone says whether the call of this name takes an answer: no turn of an unfinished run has
/// to be read. The journal of a run that waits for the call may have its result first.
#[must_use]
pub fn is_known_to_history(history: &History, name: &str) -> bool {
    let is_settled = |call: &ToolInvocation| !call.takes_result() || !call.stored_during_run || call.is_deferred;
    history.early_result(name).is_some() || history.invocation(name).is_some_and(is_settled)
}

/// Finds the call that an answer names, by the id of its invocation or by a call id, of which the newest one counts
/// that takes an answer. The calls of `turns`, the newest run first, are newer than those of history.
///
/// # Errors `wrong_state` if every call of this name is answered, was not started, or is of a tool whose result its run
/// takes; `not_found` if there is none.
pub fn find_answered_call(history: &History, turns: &[PendingTurn<'_>], name: &str) -> Result<AnsweredCall> {
    if history.early_result(name).is_some() {
        return Err(Rejection::Answered.into_error(name));
    }
    let mut rejection = None;
    for pending in turns {
        match find_call(pending.turn, name, &|call| pending.judge(call, history)) {
            CallSearch::Open(call) => {
                return Ok(AnsweredCall::new(call, Some(pending)));
            }
            CallSearch::Closed(reason) => _ = rejection.get_or_insert(reason),
            CallSearch::None => {}
        }
    }
    let judge = |call: &ToolInvocation| match turns.iter().find_map(|pending| pending.rejection(&call.id)) {
        _ if !call.takes_result() => Answerable::No(Rejection::Answered),
        Some(reason) => Answerable::No(reason),
        None => Answerable::Yes,
    };
    match find_call(history, name, &judge) {
        CallSearch::Open(call) => {
            Ok(AnsweredCall::new(call, turns.iter().find(|pending| pending.turn.invocation(&call.id).is_some())))
        }
        CallSearch::Closed(reason) => Err(rejection.unwrap_or(reason).into_error(name)),
        CallSearch::None => Err(rejection.map_or_else(|| unknown_call(name), |reason| reason.into_error(name))),
    }
}

fn unknown_call(name: &str) -> Error {
    let sentence =
        format!("no stored call has the id \"{name}\"; answer a call of a run in progress with `Run.answer`");
    Error::new(ErrorCode::NotFound, sentence)
}
