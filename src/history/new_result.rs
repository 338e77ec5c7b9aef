//! Results of calls that were stored without one, in the application's own shape (R57): a form on the page that the user has filled
//! in since, a job that ended after the conversation was imported.

use super::new_message::time;
use super::open_calls::{Choice, OpenCalls};
use super::{Entry, History, Joined, Origin, ResultEntry};
use crate::clock::Ms;
use crate::error::{Code, Error, Result};
use crate::id::IdMap;
use crate::json::JsonRef;
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult};
use std::borrow::Cow;

/// The result of a call that has none yet.
#[derive(Clone, Debug, PartialEq)]
pub struct NewResult {
    /// The call's id as its provider gave it, or its invocation's.
    pub call: String,
    /// What the tool returned.
    pub result: ToolResult,
    /// When it did.
    pub finished_at: Option<Ms>,
}

impl NewResult {
    /// Reads a part `{"type":"tool_result","callId":"c1","result":…}`.
    ///
    /// # Errors
    /// `invalid_input`, naming the member that is missing.
    pub fn read(part: JsonRef<'_>) -> Result<Self> {
        if !part.get("type").is_some_and(|kind| kind.is_text("tool_result")) {
            return Err(Error::invalid("a message of role \"tool\" has parts of type \"tool_result\" only"));
        }
        let call = part.text("callId").filter(|call| !call.is_empty()).map(Cow::into_owned);
        Ok(Self {
            call: call.ok_or_else(|| Error::invalid("a part of type \"tool_result\" has a `callId`"))?,
            result: outcome(part, "result")
                .ok_or_else(|| Error::invalid("a part of type \"tool_result\" has a `result`; null is one"))?,
            finished_at: time(part, "finishedAt")?,
        })
    }

    /// Reads the answer `{"type":"tool_result","content":…}` to the call named `call`.
    ///
    /// # Errors
    /// `invalid_input` for any other answer.
    pub fn read_answer(call: &str, answer: JsonRef<'_>) -> Result<Self> {
        let result = answer.get("type").filter(|kind| kind.is_text("tool_result")).and(outcome(answer, "content"));
        Ok(Self {
            call: call.to_owned(),
            result: result.ok_or_else(|| {
                Error::invalid("the answer is `{ type: \"tool_result\", content, isError?, finishedAt? }`")
            })?,
            finished_at: time(answer, "finishedAt")?,
        })
    }
}

/// A tool's result whose content is the member `key`; none without it.
pub(super) fn outcome(part: JsonRef<'_>, key: &str) -> Option<ToolResult> {
    Some(ToolResult {
        content: part.get(key)?.to_owned(),
        is_error: part.get("isError").and_then(JsonRef::as_bool).unwrap_or(false),
        dialect: None,
        shape: None,
    })
}

/// Gives each result to its call: the one whose invocation has that id, else the newest one of that call id that has no result,
/// in the same append or in `history`. A call that was closed as interrupted takes its real result, too.
///
/// # Errors
/// `not_found` for a call that neither has; `wrong_state` for one that is answered.
pub fn join_results(
    history: &History,
    joined: &mut Joined,
    results: Vec<(NewResult, Option<Ms>)>,
    origin: &Origin,
) -> Result<()> {
    let mut calls = NamedCalls::find(history, joined, &results);
    for (NewResult { call: name, result, finished_at }, sent_at) in results {
        let at = finished_at.or(sent_at).unwrap_or(origin.at);
        let status = if result.is_error { InvocationStatus::Error } else { InvocationStatus::Ok };
        match calls.take(history, joined, &name)? {
            Place::Joined(at_entry) => {
                if let Some(Entry::Invocation(call)) = joined.entries.get_mut(at_entry) {
                    call.status = status;
                    call.finished_at = Some(at);
                    call.result = Some(result);
                }
            }
            Place::Stored(invocation) => joined.entries.push(Entry::Result(ResultEntry {
                invocation,
                status,
                started_at: None,
                finished_at: Some(at),
                freshness: origin.freshness,
                result: Some(result),
            })),
        }
    }
    Ok(())
}

/// Where a call is.
#[derive(Clone)]
enum Place {
    /// Among the entries of this append.
    Joined(usize),
    /// In the history: its invocation's id.
    Stored(String),
}

/// The calls that one name may mean.
#[derive(Default)]
struct Candidates {
    /// Whether there is a call of that name, answered or not.
    known: bool,
    /// Those that have not been looked at.
    places: OpenCalls<Place>,
}

/// The calls that an append answers, by the names it uses.
struct NamedCalls {
    by_name: IdMap<Candidates>,
    /// Stored invocations that this append has answered.
    answered: IdMap<()>,
}

impl NamedCalls {
    fn find(history: &History, joined: &Joined, results: &[(NewResult, Option<Ms>)]) -> Self {
        let mut by_name = IdMap::with_hasher(history.seed());
        for (result, _) in results {
            by_name.get_or_insert(&result.call, Candidates::default());
        }
        let mut calls = Self { by_name, answered: IdMap::with_hasher(history.seed()) };
        if results.is_empty() {
            return calls;
        }
        for call in history.invocations() {
            calls.note(call, &Place::Stored(call.id.clone()));
        }
        for (at, entry) in joined.entries.iter().enumerate() {
            if let Entry::Invocation(call) = entry {
                calls.note(call, &Place::Joined(at));
            }
        }
        calls
    }

    fn note(&mut self, call: &ToolInvocation, place: &Place) {
        for name in [&call.id, &call.call_id] {
            if let Some(candidates) = self.by_name.get_mut(name) {
                candidates.known = true;
                candidates.places.push(&call.message_id, place.clone());
            }
        }
    }

    /// The call of that name that gets the next result: of those without one the first of the newest message.
    fn take(&mut self, history: &History, joined: &Joined, name: &str) -> Result<Place> {
        let answered = &self.answered;
        let is_open = |place: &Place| match place {
            Place::Joined(at) => {
                matches!(joined.entries.get(*at), Some(Entry::Invocation(call)) if call.takes_result())
            }
            Place::Stored(id) => {
                !answered.contains_key(id) && history.invocation(id).is_some_and(ToolInvocation::takes_result)
            }
        };
        let candidates = self.by_name.get_mut(name);
        let known = candidates.as_ref().is_some_and(|candidates| candidates.known);
        let choose = |place: &Place| if is_open(place) { Choice::Take } else { Choice::Drop };
        let place = candidates.and_then(|candidates| candidates.places.take_newest(&choose));
        if let Some(Place::Stored(id)) = &place {
            self.answered.insert(id.clone(), ());
        }
        place.ok_or_else(|| {
            if known {
                Error::new(
                    Code::WrongState,
                    format!("the call \"{name}\" has its result already, or nothing of it is stored"),
                )
            } else {
                Error::new(
                    Code::NotFound,
                    format!(
                        "no stored call has the id \"{name}\"; a call of a run under way is answered by `Run.answer`"
                    ),
                )
            }
        })
    }
}
