//! Results of calls that were stored without one, in the neutral format (R57). Examples: a form that the user filled in
//! later, a job that ended after the conversation was imported.

use super::entry::{HistoryEntry, ResultEntry};
use super::fold::History;
use super::join::{JoinedEntries, Origin};
use super::open_call_index::StoredCalls;
use super::open_calls::{OpenCalls, Selection};
use crate::clock::Ms;
use crate::error::{Error, ErrorCode, Result};
use crate::id::IdMap;
use crate::json::JsonRef;
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult};
use std::borrow::Cow;
use std::collections::VecDeque;

/// A result for a call that was stored without one.
#[derive(Clone, Debug, PartialEq)]
pub struct NewResult {
    /// The provider's id of the call, or the id of its invocation.
    pub call: String,
    /// What the tool returned.
    pub result: ToolResult,
    /// When the tool finished.
    pub finished_at: Option<Ms>,
}

/// The members of an answer to a call.
const MEMBERS: [&str; 4] = ["type", "content", "isError", "finishedAt"];

impl NewResult {
    /// Reads a part `{"type":"tool_result","callId":"c1","result":…}`.
    ///
    /// # Errors
    /// `invalid_input` with the name of the missing member.
    pub fn read(part: JsonRef<'_>) -> Result<Self> {
        if !part.get("type").is_some_and(|kind| kind.is_text("tool_result")) {
            return Err(Error::invalid("a message of role \"tool\" may have parts of type \"tool_result\" only"));
        }
        let call = part.text("callId").filter(|call| !call.is_empty()).map(Cow::into_owned);
        Ok(Self {
            call: call.ok_or_else(|| Error::invalid("a part of type \"tool_result\" needs a `callId`"))?,
            result: read_result(part, "result")
                .ok_or_else(|| Error::invalid("a part of type \"tool_result\" needs a `result`, which may be null"))?,
            finished_at: read_time(part, "finishedAt")?,
        })
    }

    /// Reads the answer `{"type":"tool_result","content":…}` to the call named `call`.
    ///
    /// # Errors
    /// `invalid_input` for any other answer.
    pub fn read_answer(call: &str, answer: JsonRef<'_>) -> Result<Self> {
        let is_known = |key: JsonRef<'_>| MEMBERS.iter().any(|member| key.is_text(member));
        let is_flag = answer.find("isError").is_none_or(|flag| flag.as_bool().is_some());
        let is_answer = is_flag && answer.entries().all(|(key, _)| is_known(key));
        let kind = answer.get("type").filter(|kind| is_answer && kind.is_text("tool_result"));
        Ok(Self {
            call: call.to_owned(),
            result: kind.and(read_result(answer, "content")).ok_or_else(|| {
                Error::invalid(
                    "the answer must be `{ type: \"tool_result\", content, isError?, finishedAt? }`, with true or false as `isError`",
                )
            })?,
            finished_at: read_time(answer, "finishedAt")?,
        })
    }

    /// Returns the entry that answers a call that is stored, or will be.
    #[must_use]
    pub fn answer_to(self, invocation: String, origin: &Origin) -> ResultEntry {
        ResultEntry {
            invocation,
            status: if self.result.is_error { InvocationStatus::Error } else { InvocationStatus::Ok },
            started_at: None,
            finished_at: Some(self.finished_at.unwrap_or(origin.at)),
            freshness: origin.freshness,
            result: Some(self.result),
            ..ResultEntry::default()
        }
    }
}

/// Reads a tool's result whose content is the member `key`; returns `None` if there is no such member.
pub(super) fn read_result(part: JsonRef<'_>, key: &str) -> Option<ToolResult> {
    Some(ToolResult {
        content: part.get(key)?.to_owned(),
        is_error: part.get("isError").and_then(JsonRef::as_bool).unwrap_or(false),
        dialect: None,
        template: None,
    })
}

/// Reads a time stamp in milliseconds since the Unix epoch.
pub(super) fn read_time(object: JsonRef<'_>, key: &str) -> Result<Option<Ms>> {
    match object.find(key) {
        None => Ok(None),
        Some(value) => value
            .as_u64()
            .map(Some)
            .ok_or_else(|| Error::invalid(format!("`{key}` must be whole milliseconds since the Unix epoch"))),
    }
}

/// A result of an append.
pub(super) struct AppendedResult {
    pub result: NewResult,
    /// The time of its message.
    pub sent_at: Option<Ms>,
    /// Number of calls of the append that precede it.
    pub preceding_calls: usize,
}

/// Pairs each result with a call of `history`, by the id of an invocation or by a call id, as the results of an append
/// without calls.
///
/// # Errors
/// `not_found` for an unknown call; `wrong_state` for a call that has its result.
pub fn join_results(
    history: &History,
    joined: &mut JoinedEntries,
    results: Vec<(NewResult, Option<Ms>)>,
    origin: &Origin,
) -> Result<()> {
    let appended = |(result, sent_at)| AppendedResult { result, sent_at, preceding_calls: 0 };
    join_appended_results(history, joined, results.into_iter().map(appended).collect(), origin)
}

/// Pairs each result with a call that precedes it, of the same append or of `history`: by the id of an invocation or by
/// a call id. Of several open calls it takes the first one of the newest message. A call that was closed as interrupted
/// is open for its real result. A result before its only call answers that.
///
/// # Errors
/// As [`join_results`].
pub(super) fn join_appended_results(
    history: &History,
    joined: &mut JoinedEntries,
    results: Vec<AppendedResult>,
    origin: &Origin,
) -> Result<()> {
    let mut calls = CandidateCalls::find(history, joined, &results);
    for AppendedResult { result, sent_at, preceding_calls } in results {
        let NewResult { call: name, result, finished_at } = result;
        let at = finished_at.or(sent_at).unwrap_or(origin.at);
        let status = if result.is_error { InvocationStatus::Error } else { InvocationStatus::Ok };
        match calls.take(history, joined, &name, preceding_calls)? {
            CallLocation::Joined(at_entry) => {
                if let Some(HistoryEntry::Invocation(call)) = joined.entries.get_mut(at_entry) {
                    call.status = status;
                    call.finished_at = Some(at);
                    call.result = Some(result);
                }
            }
            CallLocation::Stored(invocation) => {
                let answer = NewResult { call: name, result, finished_at: Some(at) };
                joined.entries.push(HistoryEntry::Result(answer.answer_to(invocation, origin)));
            }
        }
    }
    Ok(())
}

/// The location of a call.
enum CallLocation {
    /// In this append: the index of its entry.
    Joined(usize),
    /// In the history: the id of its invocation.
    Stored(String),
}

/// The calls that have one id.
#[derive(Default)]
struct Candidates {
    /// Those of the same append, as indexes of their entries.
    joined: OpenCalls<usize>,
    is_joined: bool,
    stored: StoredCalls,
}

/// The calls that the results of an append may answer, by the id in the result.
struct CandidateCalls {
    by_id: IdMap<Candidates>,
    /// The indexes of the append's calls that are no candidates yet, in order.
    later: VecDeque<usize>,
    /// Number of the append's calls that are candidates.
    added: usize,
    /// Stored invocations that this append has answered.
    answered: IdMap<()>,
}

impl CandidateCalls {
    fn find(history: &History, joined: &JoinedEntries, results: &[AppendedResult]) -> Self {
        let mut by_id: IdMap<Candidates> = IdMap::with_seed(history.seed());
        for AppendedResult { result, .. } in results {
            by_id.get_or_insert(&result.call, Candidates::default());
        }
        let is_call = |at: &usize| matches!(joined.entries.get(*at), Some(HistoryEntry::Invocation(_)));
        let later = (0..joined.entries.len()).filter(|_| !results.is_empty()).filter(is_call).collect();
        Self { by_id, later, added: 0, answered: IdMap::with_seed(history.seed()) }
    }

    /// Makes the first `count` calls of the append candidates.
    fn add(&mut self, joined: &JoinedEntries, count: usize) {
        while self.added < count
            && let Some(at) = self.later.pop_front()
        {
            self.added += 1;
            let Some(HistoryEntry::Invocation(call)) = joined.entries.get(at) else { continue };
            for id in [&call.id, &call.call_id] {
                if let Some(candidates) = self.by_id.get_mut(id) {
                    candidates.is_joined = true;
                    candidates.joined.push(&call.message_id, at);
                }
            }
        }
    }

    /// Takes a call of the append that is a candidate.
    fn take_joined(&mut self, joined: &JoinedEntries, name: &str) -> Option<CallLocation> {
        let is_open = |at: &usize| match joined.entries.get(*at) {
            Some(HistoryEntry::Invocation(call)) if call.takes_result() => Selection::Take,
            _ => Selection::Discard,
        };
        let candidates = self.by_id.get_or_insert(name, Candidates::default());
        candidates.joined.take_newest(&is_open).map(CallLocation::Joined)
    }

    /// Takes the call for the next result with the id `name`: of the open ones, the first of the newest message.
    /// `preceding`: the number of calls of the append that precede the result.
    fn take(
        &mut self,
        history: &History,
        joined: &JoinedEntries,
        name: &str,
        preceding: usize,
    ) -> Result<CallLocation> {
        self.add(joined, preceding);
        if let Some(call) = self.take_joined(joined, name) {
            return Ok(call);
        }
        let candidates = self.by_id.get_or_insert(name, Candidates::default());
        let answered = &self.answered;
        let is_open = |call: &ToolInvocation| call.takes_result() && !answered.contains_key(&call.id);
        let by_invocation = history.invocation(name).filter(|call| is_open(call));
        let select = |call: &ToolInvocation| if is_open(call) { Selection::Take } else { Selection::Discard };
        if let Some(call) =
            by_invocation.or_else(|| candidates.stored.take_newest(history.open_call_index(), name, &select))
        {
            self.answered.insert(call.id.clone(), ());
            return Ok(CallLocation::Stored(call.id.clone()));
        }
        self.add(joined, usize::MAX);
        if let Some(call) = self.take_joined(joined, name) {
            return Ok(call);
        }
        let is_joined = self.by_id.get_mut(name).is_some_and(|candidates| candidates.is_joined);
        let exists = is_joined || history.invocation(name).is_some() || history.call_id_uses(name) > 0;
        Err(if exists { has_result(name) } else { unknown_call(name) })
    }
}

fn has_result(name: &str) -> Error {
    Error::new(
        ErrorCode::WrongState,
        format!("the call \"{name}\" has its result already, or its content is withheld from the store"),
    )
}

fn unknown_call(name: &str) -> Error {
    Error::new(
        ErrorCode::NotFound,
        format!("no stored call has the id \"{name}\"; answer a call of a run in progress with `Run.answer`"),
    )
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn r75_an_answer_with_another_member_or_another_kind_of_value_is_invalid() {
        let read = |text: &str| NewResult::read_answer("c", JsonRef::parse(text).unwrap());
        for good in [
            r#"{"type":"tool_result","content":null}"#,
            r#"{"type":"tool_result","content":1,"isError":true,"finishedAt":5}"#,
            r#"{"type":"tool_result","content":1,"isError":null,"finishedAt":null}"#,
        ] {
            assert!(read(good).is_ok(), "{good}");
        }
        for bad in [
            "null",
            r#"{"content":1}"#,
            r#"{"type":"tool_result"}"#,
            r#"{"type":"tool_result","content":1,"iserror":true}"#,
            r#"{"type":"tool_result","content":1,"isError":"false"}"#,
            r#"{"type":"tool_result","content":1,"isError":0}"#,
            r#"{"type":"tool_result","content":1,"finishedAt":"now"}"#,
        ] {
            assert_eq!(read(bad).unwrap_err().code, ErrorCode::InvalidInput, "{bad}");
        }
    }
}
