//! Answers: the result of a call that comes later, from any tab or process (R75).

use super::append::MAX_JOIN_ATTEMPTS;
use super::open_session::OpenSession;
use super::provider_turns::AppendedContent;
use crate::error::{Error, ErrorCode, Result};
use crate::finding::{Action, Finding, FindingCode};
use crate::history::{HistoryEntry, JoinedEntries, NewResult, Origin, join_results};
use crate::json::{JsonRef, JsonStr};
use crate::replay::Callback;
use crate::run::{PersistQuestion, PersistReply, find_answered_call, is_known_to_history};
use crate::store::ExpectedRun;
use crate::tool::ToolInvocation;
use std::cell::Cell;

/// The call that an answer is of, and the pending run that has it.
struct FoundCall {
    call: ToolInvocation,
    run: Option<ExpectedRun>,
}

/// What `persist` left of a result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Unchanged,
    Replaced,
    Nothing,
}

/// An answer that is checked and not stored yet.
pub struct Answer {
    /// The result.
    pub result: NewResult,
    /// Where it comes from.
    pub origin: Origin,
    /// The revision that the history must have.
    pub expected: Option<u64>,
    /// `persist` of the tools that were passed.
    pub persist: Vec<(String, Callback)>,
}

impl OpenSession {
    /// Stores an answer. Searches its call again if the call's run went on meanwhile.
    ///
    /// # Errors
    /// `not_found` or `wrong_state` if no call takes it; `conflict`; the store's own.
    pub async fn append_answer(&self, answer: Answer) -> Result<(u64, AppendedContent)> {
        self.read_older().await?;
        for _ in 0..MAX_JOIN_ATTEMPTS {
            let mut found = self.answered_call(&answer.result.call).await;
            if found.is_err() {
                // Even if this finds nothing new: another refresh may have read the call meanwhile.
                self.refresh().await?;
                found = self.answered_call(&answer.result.call).await;
            }
            let FoundCall { call, run } = found?;
            let mut result = answer.result.clone();
            let kept = self.ask_persist(&call, &answer.persist, &mut result)?;
            result.call.clone_from(&call.id);
            let has_moved = Cell::new(false);
            let join = || {
                if run.as_ref().is_some_and(|run| self.has_moved(run)) {
                    has_moved.set(true);
                    return Err(Error::new(ErrorCode::Conflict, "the run of the call went on elsewhere; answer again"));
                }
                let mut joined = self.join_answer(&call, &result, &answer.origin)?;
                if let Some(HistoryEntry::Result(entry)) = joined.entries.first_mut() {
                    entry.is_redacted = kept != Kept::Unchanged;
                    entry.result.take_if(|_| kept == Kept::Nothing);
                    let is_unstored = self.log.borrow().history.invocation(&call.id).is_none();
                    entry.run = run.as_ref().filter(|_| is_unstored).map(|run| run.id.clone());
                }
                Ok(joined)
            };
            match self.append_joined(&join, answer.expected, run.as_ref()).await {
                Err(_) if has_moved.get() => {}
                outcome => return outcome,
            }
        }
        Err(Error::new(
            ErrorCode::Busy,
            "the run of the call kept going on while the answer was stored; try again in a moment",
        ))
    }

    /// Returns true if the head shows that a run on which a result depended went on meanwhile.
    pub fn has_moved(&self, run: &ExpectedRun) -> bool {
        run.has_moved(&self.log.borrow().head)
    }

    /// Returns the call that an answer is of.
    async fn answered_call(&self, name: &str) -> Result<FoundCall> {
        if is_known_to_history(&self.log.borrow().history, name) {
            let found = find_answered_call(&self.log.borrow().history, &[], name)?;
            return Ok(FoundCall { call: found.call, run: None });
        }
        let (found, holders) = self.judge_by_turns(&|history, turns| find_answered_call(history, turns, name)).await?;
        let run = self.expected_run(&found, holders.as_ref());
        run.as_ref().map_or(Ok(()), |run| self.check_branch_of(run))?;
        Ok(FoundCall { call: found.call, run })
    }

    /// Joins an answer to its call in history; if history does not have the call yet, the answer waits there for it.
    fn join_answer(&self, call: &ToolInvocation, result: &NewResult, origin: &Origin) -> Result<JoinedEntries> {
        let mut joined = JoinedEntries::default();
        let log = self.log.borrow();
        if log.history.invocation(&call.id).is_some() {
            join_results(&log.history, &mut joined, vec![(result.clone(), None)], origin)?;
        } else if log.history.early_result(&call.id).is_some() {
            let sentence = "the call has its result already: another tab or process has answered it";
            return Err(Error::new(ErrorCode::WrongState, sentence));
        } else {
            let entry = result.clone().answer_to(call.id.clone(), origin);
            joined.entries.push(HistoryEntry::Result(entry));
        }
        Ok(joined)
    }

    /// Lets `persist` of the call's tool decide what is stored of a result (R12), which `answer` then has.
    ///
    /// # Errors
    /// `config_invalid` if the tool has `persist`, and this session does not know it.
    fn ask_persist(&self, call: &ToolInvocation, given: &[(String, Callback)], answer: &mut NewResult) -> Result<Kept> {
        let given = given.iter().find(|(name, _)| *name == call.name).map(|(_, callback)| callback.clone());
        let Some(callback) = given.or_else(|| self.persist_callbacks.borrow().get(&call.name).cloned()) else {
            if !call.has_persist {
                return Ok(Kept::Unchanged);
            }
            return Err(Error::config(format!(
                "the tool \"{}\" has `persist`, which decides what is stored of its results; pass it: `answer(call, result, {{ tools }})`",
                call.name
            )));
        };
        let text = call.arguments.text();
        let text = if text.trim().is_empty() { "{}" } else { &text };
        let question = PersistQuestion {
            callback,
            invocation: call.id.clone(),
            name: call.name.clone(),
            arguments: JsonRef::parse(text).map_or_else(|_| JsonStr::new(text).to_json(), JsonRef::to_owned),
            result: Some(answer.result.content.clone()),
        };
        match self.context.host.persist(&question) {
            PersistReply::Replaced { result, .. } => {
                let replaced = result.filter(|content| *content != answer.result.content);
                let kept = if replaced.is_some() { Kept::Replaced } else { Kept::Unchanged };
                answer.result.content = replaced.unwrap_or_else(|| answer.result.content.clone());
                Ok(kept)
            }
            PersistReply::Nothing => Ok(Kept::Nothing),
            PersistReply::Failed(why) => {
                let text = format!("`persist` of the tool \"{}\" failed; the result is not stored: {why}", call.name);
                self.context.warn(&[Finding::warning(FindingCode::CallbackFailed, text).with_action(Action::Dropped)]);
                Ok(Kept::Nothing)
            }
        }
    }
}
