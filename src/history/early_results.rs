//! Results of calls that history does not have yet: a run in mode "run" keeps its turn in its journal until it ends,
//! and its asynchronous calls can be answered before (R75). The result is stored in the log, and waits there for its
//! call. If the run ends without the call, it is set aside.

use super::entry::ResultEntry;
use crate::tool::{InvocationStatus, ToolInvocation};
use std::collections::BTreeMap;

/// Results by the ids of invocations that are not in history.
#[derive(Clone, Debug, Default)]
pub(super) struct EarlyResults(BTreeMap<String, ResultEntry>);

impl EarlyResults {
    /// Keeps the first result of a call.
    pub fn add(&mut self, entry: ResultEntry) {
        let is_result = matches!(entry.status, InvocationStatus::Ok | InvocationStatus::Error);
        if is_result && !entry.is_deferral && !entry.is_replacement {
            self.0.entry(entry.invocation.clone()).or_insert(entry);
        }
    }

    /// Returns the result of a call.
    pub fn get(&self, invocation: &str) -> Option<&ResultEntry> {
        self.0.get(invocation)
    }

    /// Iterates over the results.
    pub fn iter(&self) -> impl Iterator<Item = &ResultEntry> {
        self.0.values()
    }

    /// Takes the result of a call that came into history, or never will.
    pub fn take(&mut self, invocation: &str) -> Option<ResultEntry> {
        self.0.remove(invocation)
    }
}

impl ToolInvocation {
    /// Gives a call without a result the one that was stored before it.
    pub(crate) fn complete_with(&mut self, early: &ResultEntry) {
        self.status = early.status;
        self.finished_at = early.finished_at;
        self.append_freshness = early.freshness.or(self.append_freshness);
        self.has_redacted_result |= early.is_redacted;
        self.result.clone_from(&early.result);
    }
}
