//! The writes of a run: journal entries and, at its end, one append of the whole turn (R15).

use super::effect::{Save, SaveKind};
use super::journal::JournalEntry;
use super::stored_turn::{StoredTurn, result_of};
use crate::clock::Ms;
use crate::error::Result;
use crate::history::{History, HistoryEntry};
use crate::message::{Message, MessageStatus, PartBody};
use crate::render::LastRequest;
use crate::store::{Change, HeadEdit, JournalChange, JournalStep};
use crate::tool::{InvocationStatus, ToolInvocation};

/// Returns what history lacks of a turn that ended early: the last message has `status`, and running calls are aborted.
pub fn stopped_entries(
    live: &History,
    history: &History,
    partial: Option<Message>,
    status: MessageStatus,
) -> Vec<HistoryEntry> {
    let mut entries = unstored_of_stopped_turn(&mut StoredTurn::from_history(live, history), live, partial, status);
    // Results of calls that another writer answered first: the store sets them aside.
    let was_answered_first = |call: &&ToolInvocation| {
        let has_own = call.result.is_some() && !call.is_deferred && call.status != InvocationStatus::Interrupted;
        has_own && history.invocation(&call.id).is_some_and(|stored| stored.result.is_some())
    };
    entries.extend(live.invocations().iter().filter(was_answered_first).map(result_of).map(HistoryEntry::Result));
    entries
}

/// Returns what history lacks of a discarded turn of which it has a part: the note that calls were interrupted.
pub fn discarded_entries(live: &History, history: &History) -> Vec<HistoryEntry> {
    StoredTurn::from_history(live, history).mark_started_calls(live, InvocationStatus::Interrupted)
}

/// As [`stopped_entries`], of a turn that was stored so far.
pub(super) fn unstored_of_stopped_turn(
    stored: &mut StoredTurn,
    live: &History,
    partial: Option<Message>,
    status: MessageStatus,
) -> Vec<HistoryEntry> {
    let mut entries = stored.mark_started_calls(live, InvocationStatus::Aborted);
    entries.extend(stored.take_unstored(live, false));
    match partial {
        Some(mut message) => {
            drop_calls(&mut message);
            message.status = status;
            entries.push(HistoryEntry::Message(message));
        }
        None => {
            if let Some(HistoryEntry::Message(last)) =
                entries.iter_mut().rev().find(|entry| matches!(entry, HistoryEntry::Message(_)))
            {
                last.status = status;
            }
        }
    }
    for entry in &mut entries {
        if let HistoryEntry::Invocation(call) = entry
            && call.result.is_none()
            && !call.is_deferred
            && call.started_at.is_some()
        {
            call.status = InvocationStatus::Aborted;
        }
    }
    entries
}

/// Removes the results of the last answer's calls, which no model call has seen.
pub(super) fn trim_last_results(entries: &mut Vec<HistoryEntry>, live: &History) {
    let Some(answer) = live.last_answer() else { return };
    let is_last = |invocation: &str| live.invocation(invocation).is_some_and(|call| call.message_id == answer.id);
    entries.retain(|entry| !matches!(entry, HistoryEntry::Result(result) if is_last(&result.invocation)));
    for entry in entries {
        if let HistoryEntry::Invocation(call) = entry
            && call.message_id == answer.id
        {
            call.status = InvocationStatus::Pending;
            call.finished_at = None;
            call.result = None;
        }
    }
}

/// Removes the calls of an incomplete answer: they never run and are not stored.
fn drop_calls(message: &mut Message) {
    message.parts.retain(|part| !matches!(part.body, PartBody::ToolCall { .. }));
}

/// Returns an incomplete answer without its calls, or `None` if it has no other content.
pub fn without_calls(mut message: Message) -> Option<Message> {
    drop_calls(&mut message);
    Some(message).filter(|message| !message.parts.is_empty())
}

/// Sets the status of the calls of an abandoned turn that were started and have no result.
pub fn mark_open_calls(live: &mut History, status: InvocationStatus) {
    let started = |call: &&ToolInvocation| call.result.is_none() && call.started_at.is_some() && !call.is_deferred;
    let ids: Vec<String> = live.open_calls().filter(started).map(|call| call.id.clone()).collect();
    for id in ids {
        if let Some(call) = live.invocation_mut(&id) {
            call.status = status;
        }
    }
}

/// Identifies the holder of a run in its writes.
#[derive(Clone, Copy, Debug)]
pub struct RunWriter<'w> {
    /// The run's id.
    pub run: &'w str,
    /// Prefix of the names of this holder's appends. Unique over all runs, holders and processes.
    pub name: &'w str,
    /// Counts the run's holders.
    pub epoch: u32,
    /// The current time.
    pub now: Ms,
    /// End of the lease: until then other tabs treat the holder as alive.
    pub lease_until: Ms,
}

/// Returns the store's change for a [`Save`].
///
/// # Errors
/// `internal`, never in practice.
pub fn change_for(save: &Save, writer: &RunWriter<'_>) -> Result<Change> {
    let &RunWriter { run, name, epoch, now, lease_until } = writer;
    let mut change = Change {
        operation: format!("{name}.{}", save.id),
        run: Some(run.to_owned()),
        at: now,
        sources: save.sources,
        approvals: Some(save.approvals),
        edit: head_edit(save),
        ..Change::default()
    };
    let step = match &save.kind {
        SaveKind::Begin(entries) => JournalStep::Begin(entries.iter().map(JournalEntry::seal).collect()),
        SaveKind::Write(entries) => JournalStep::Write(entries.iter().map(JournalEntry::seal).collect()),
        SaveKind::Store { journal, history } => {
            change.entries = history.clone();
            change.caller_ids = history.iter().filter_map(own_id).cloned().collect();
            change.run_continues = true;
            JournalStep::Write(journal.iter().map(JournalEntry::seal).collect())
        }
        SaveKind::Fail(entry) => {
            let why = match &**entry {
                JournalEntry::Failed { code, message, .. } => (code.clone(), message.clone()),
                _ => (String::new(), String::new()),
            };
            JournalStep::Fail { entries: vec![entry.seal()], why }
        }
        SaveKind::Append(entries) => {
            change.entries = entries.clone();
            JournalStep::End
        }
    };
    // Whoever wants to resume a failed run need not wait for the lease of the holder that failed.
    let lease_until = if matches!(step, JournalStep::Fail { .. }) { 0 } else { lease_until };
    change.journal = Some(JournalChange { run: run.to_owned(), epoch, lease_until, lease_ended_by: None, step });
    Ok(change)
}

/// Returns the edit of the head that belongs to a save: the run's new owner, what a provider refused, what the last
/// request contained, and whether the service may drop reasoning.
fn head_edit(save: &Save) -> Option<HeadEdit> {
    let refused: Vec<String> = match &save.kind {
        SaveKind::Write(entries) => {
            let marks = entries.iter().filter_map(|entry| match entry {
                JournalEntry::Healed { refused, .. } => Some(refused),
                _ => None,
            });
            marks.flatten().cloned().collect()
        }
        _ => Vec::new(),
    };
    let (owner, has_dropped) = (save.owner.clone(), save.has_dropped);
    let last_request = save.last_request.as_ref().map(LastRequest::to_bytes);
    if owner.is_none() && refused.is_empty() && last_request.is_none() && !has_dropped {
        return None;
    }
    Some(Box::new(move |head| {
        if let Some(owner) = &owner {
            head.owner.clone_from(owner);
        }
        if let Some(last_request) = &last_request {
            head.last_request = last_request.clone().map(Into::into);
        }
        head.remember_refused(&refused);
        head.has_dropped |= has_dropped;
    }))
}

/// Returns the id of a message or a call. Later entries of the run refer to it, so it must not be replaced.
pub(super) fn own_id(entry: &HistoryEntry) -> Option<&String> {
    match entry {
        HistoryEntry::Message(message) => Some(&message.id),
        HistoryEntry::Invocation(call) => Some(&call.id),
        HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => None,
    }
}
