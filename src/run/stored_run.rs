//! An unfinished run, as its journal has it (R18).

use super::approval::ResumedCalls;
use super::background_answer::BackgroundAnswer;
use super::handoff::{Handoff, StoredHandoff, handoffs_mismatch};
use super::journal::{JournalEntry, RunStart, StoredPause};
use super::setup::RunSetup;
use crate::error::{Error, ErrorCode, Result};
use crate::history::{
    History, HistoryEntry, MessageFormat, MessageWriter, NO_ALTERNATIVES, ResultEntry, stored_result,
};
use crate::id::Seed;
use crate::json::{JsonRef, ObjectWriter};
use crate::message::{Message, PartBody, Role, Usage};
use crate::provider::{ProviderRequest, first_missing};
use crate::replay::ReplaySelection;
use crate::session_head::RunEntry;
use crate::store::{RecordKind, open_whole_record};
use crate::tool::{Arguments, InvocationStatus, ToolInvocation};
use bytes::Bytes;

/// An unfinished run, as its journal has it.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// What it began with.
    pub began: RunStart,
    /// The turn so far: input, answers, and calls with their known results.
    pub live: History,
    /// The number of answered model calls.
    pub model_calls: u32,
    /// The token usage of these calls.
    pub usage: Option<Usage>,
    /// The started and the approved calls. Those that wait for an approval are marked in `live`.
    pub calls: ResumedCalls,
    /// The code and the message of the error, if it failed.
    pub failed: Option<(String, String)>,
    /// The incomplete answer of a run that failed or was stopped.
    pub partial: Option<Message>,
    /// Members of `params` that hold credentials and were not stored.
    pub withheld: Vec<String>,
    /// The pause that its model call waits for.
    pub pause: Option<StoredPause>,
    /// True if it failed, and the service has no request whose answer is not stored.
    pub is_replay_safe: bool,
    /// True if the turn is complete and only its append to history is missing.
    pub is_complete: bool,
    /// The handoffs, in their order. The last one has no answer yet if its `live_end` is `None`.
    pub handoffs: Vec<StoredHandoff>,
    /// What its requests contain of history, if that is chosen.
    pub selection: Option<ReplaySelection>,
    /// Marks of what the provider refused in this run.
    pub refused: Vec<String>,
    /// True if its next request restarts a chain of responses, which the service does not continue any more.
    pub restarts_chain: bool,
    /// The answer on which the service works in the background, if it is that of the newest model call.
    background: Option<Box<BackgroundAnswer>>,
    /// The sealed entries of the journal.
    pub records: Vec<Bytes>,
}

impl StoredRun {
    /// Checks that the user did not cancel the run: that ends it, and withdraws the approvals that were not used.
    ///
    /// # Errors
    /// `conflict`.
    pub fn check_not_cancelled(&self) -> Result<()> {
        match &self.failed {
            Some((code, _)) if code == ErrorCode::Aborted.as_str() => Err(RunEntry::cancelled_error()),
            _ => Ok(()),
        }
    }

    /// Takes the answer to the newest model call, if a service works on it in the background.
    pub(super) fn take_background(&mut self) -> Option<Box<BackgroundAnswer>> {
        let calls = self.model_calls;
        self.background.take().filter(|answer| answer.call == calls)
    }

    /// Checks that a resume passes the run's credentials again. Another dialect has other credentials.
    ///
    /// # Errors
    /// `config_invalid`, which names the missing member.
    pub fn check_credentials(&self, provider: &ProviderRequest) -> Result<()> {
        if provider.dialect != self.began.provider.dialect {
            return Ok(());
        }
        match first_missing(provider.dialect, &self.withheld, &provider.params) {
            Some(member) => Err(Error::config(format!(
                "`params.{member}` held a credential when the run began, so it was not stored; give it again in `provider.params` to resume \
                 the run, or discard the run"
            ))),
            None => Ok(()),
        }
    }
}

impl StoredRun {
    /// Reads a run from the entries of its journal.
    ///
    /// # Errors
    /// `corrupt_record` or `unsupported_version` if an entry does not decode: then it is unknown what ran.
    pub fn read(records: &[Bytes], seed: Seed) -> Result<Self> {
        let mut entries = records.iter().map(|bytes| open_whole_record::<JournalEntry>(RecordKind::Journal, bytes));
        let missing = || Error::new(ErrorCode::CorruptRecord, "the run's journal has no beginning; discard the run");
        let Some(JournalEntry::Began(began) | JournalEntry::Queued(began)) = entries.next().transpose()? else {
            return Err(missing());
        };
        let mut run = Self::begin(began, seed);
        for entry in entries {
            run.apply(entry?);
        }
        run.records = records.to_vec();
        Ok(run)
    }

    /// Creates the run of a first entry.
    fn begin(began: RunStart, seed: Seed) -> Self {
        let mut live = History::new(seed);
        for message in &began.input {
            live.apply(HistoryEntry::Message(message.clone()));
        }
        for call in &began.calls {
            live.apply(HistoryEntry::Invocation(call.clone()));
        }
        Self {
            began,
            live,
            model_calls: 0,
            usage: None,
            calls: ResumedCalls::default(),
            failed: None,
            partial: None,
            withheld: Vec::new(),
            pause: None,
            is_replay_safe: false,
            is_complete: false,
            handoffs: Vec::new(),
            selection: None,
            refused: Vec::new(),
            restarts_chain: false,
            background: None,
            records: Vec::new(),
        }
    }

    /// Returns true if the run has nothing to do before a person decides about a call.
    #[must_use]
    pub fn waits_for_approval(&self) -> bool {
        let Some(last) = self.live.messages().last().filter(|_| self.failed.is_none()) else { return false };
        let is_open = |call: &&ToolInvocation| {
            call.result.is_none() && call.status == InvocationStatus::Pending && !call.is_deferred
        };
        let mut open = self.live.calls_of(last).filter(is_open).peekable();
        open.peek().is_some() && open.all(|call| self.live.awaits_approval(&call.id))
    }

    /// Adds the results that history has of the turn's open calls, to show them. A resumed run takes them itself.
    /// Returns true if there are any.
    pub fn take_stored_results(&mut self, history: &History) -> bool {
        let open = self.live.open_calls();
        let results: Vec<ResultEntry> = open.filter_map(|call| stored_result(history, &call.id)).collect();
        let has_results = !results.is_empty();
        results.into_iter().for_each(|result| self.live.apply(HistoryEntry::Result(result)));
        has_results
    }

    /// Applies the entries that follow.
    ///
    /// # Errors
    /// As [`StoredRun::read`]; then the entries before the one that does not decode are applied.
    pub fn extend(&mut self, records: &[Bytes]) -> Result<()> {
        for bytes in records {
            self.apply(open_whole_record(RecordKind::Journal, bytes)?);
            self.records.push(bytes.clone());
        }
        Ok(())
    }

    /// Adds the handoffs that a resume with this setup received to those of the journal.
    ///
    /// # Errors
    /// `config_invalid` if their names or their order differ; those of [`Handoff::check`].
    pub fn attach_handoffs(&mut self, handoffs: Vec<Handoff>, setup: &RunSetup) -> Result<()> {
        let given = handoffs.iter().map(|handoff| &handoff.name);
        if !given.eq(self.handoffs.iter().map(|stored| &stored.agent)) {
            return Err(handoffs_mismatch(&self.handoffs));
        }
        for (stored, handoff) in self.handoffs.iter_mut().zip(handoffs) {
            handoff.check(setup)?;
            stored.handoff = Some(handoff);
        }
        Ok(())
    }

    /// Records the end of the messages before the newest handoff, at the first answer of its agent.
    fn set_handoff_position(&mut self) {
        let live_end = self.live.messages().len();
        if let Some(newest) = self.handoffs.last_mut() {
            newest.live_end.get_or_insert(live_end);
        }
    }

    fn add_answer(&mut self, message: Message) {
        self.model_calls += 1;
        self.set_handoff_position();
        self.restarts_chain &= message.answer.as_ref().is_some_and(|answer| answer.response_id.is_none());
        if let Some(usage) = message.answer.as_ref().and_then(|answer| answer.usage) {
            self.usage = Some(self.usage.map_or(usage, |sum| sum.plus(usage)));
        }
        self.live.apply(HistoryEntry::Message(message));
    }

    fn redact(&mut self, invocation: &str, arguments: Option<Arguments>) {
        let Some(call) = self.live.invocation_mut(invocation) else { return };
        call.redacted = true;
        match arguments {
            Some(arguments) => call.arguments = arguments,
            None => call.withhold(),
        }
    }

    fn apply(&mut self, entry: JournalEntry) {
        if !matches!(entry, JournalEntry::Failed { .. } | JournalEntry::Partial(_)) {
            // An entry after a failure means that the run was resumed.
            (self.failed, self.partial, self.is_replay_safe) = (None, None, false);
        }
        self.pause = None;
        match entry {
            JournalEntry::Began(_) | JournalEntry::Queued(_) => {}
            // A save whose reply was lost is repeated, so its entries may occur twice.
            JournalEntry::Answered { message, .. } if self.live.message(&message.id).is_some() => {}
            JournalEntry::Answered { message, invocations } => {
                self.add_answer(message);
                for invocation in invocations {
                    self.live.apply(HistoryEntry::Invocation(invocation));
                }
            }
            JournalEntry::Completed(message) => self.complete(message),
            JournalEntry::Started { invocation, at, attempt } => {
                self.calls.attempts.insert(invocation.clone(), attempt);
                // An approval is for one attempt.
                self.calls.approved.remove(&invocation);
                if let Some(invocation) = self.live.invocation_mut(&invocation) {
                    invocation.started_at = Some(at);
                }
            }
            JournalEntry::Finished(result) => self.live.apply(HistoryEntry::Result(result)),
            JournalEntry::Redacted { invocation, arguments } => self.redact(&invocation, arguments),
            JournalEntry::ApprovalNeeded { invocation, .. } => {
                // A redacted call never runs, since the stored arguments are not those of the model (R12).
                let can_run = self.live.invocation(&invocation).is_some_and(|call| !call.redacted);
                self.live.set_awaits_approval(&invocation, can_run);
            }
            JournalEntry::Approved { invocation, .. } => {
                self.live.set_awaits_approval(&invocation, false);
                self.calls.approved.insert(invocation);
            }
            JournalEntry::Failed { code, message, is_replay_safe } => {
                (self.failed, self.is_replay_safe) = (Some((code, message)), is_replay_safe);
            }
            JournalEntry::HandedOff { agent, .. } => {
                let is_repeated = self.handoffs.last().is_some_and(|newest| newest.live_end.is_none());
                if !is_repeated {
                    self.handoffs.push(StoredHandoff { agent, live_end: None, handoff: None });
                }
            }
            JournalEntry::Selected(selection) => self.selection = Some(selection),
            JournalEntry::Healed { mut refused, restarts_chain } => {
                self.refused.append(&mut refused);
                self.restarts_chain |= restarts_chain;
            }
            JournalEntry::Background(answer) => self.background = answer,
            JournalEntry::Withheld { members } => self.withheld = members,
            JournalEntry::Partial(message) => self.partial = Some(message),
            JournalEntry::Retrying { attempt, not_before, is_pick_up } => {
                self.pause = Some(StoredPause { attempt, not_before, is_pick_up });
            }
        }
    }

    /// Ends the turn with its last answer; none if that has no content.
    fn complete(&mut self, answer: Option<Message>) {
        let is_repeated = std::mem::replace(&mut self.is_complete, true);
        match answer {
            Some(answer) if self.live.message(&answer.id).is_none() => self.add_answer(answer),
            // The last part of an answer that nothing continues is truncated.
            Some(answer) => self.live.set_status(&answer.id, answer.status),
            None if is_repeated => {}
            None => self.model_calls += 1,
        }
    }
}

impl StoredRun {
    /// Writes the members of a `PendingRun`; `state` is `live`, `queued`, `interrupted`, `waiting_approval` or `failed`.
    pub fn write(&self, out: &mut ObjectWriter<'_>, session: &str, state: &str) {
        out.text("id", &self.began.run)
            .text("session", session)
            .number("startedAt", self.began.at)
            .number("turn", u64::from(self.model_calls))
            .text("state", state);
        if let Some(pause) = self.pause.filter(|pause| pause.not_before > 0) {
            out.number("notBefore", pause.not_before);
        }
        self.began.provider.write(out);
        out.array("withheld", |paths| self.withheld.iter().for_each(|path| paths.text(&format!("params.{path}"))));
        out.array("input", |input| {
            for message in self.began.input.iter().filter(|message| !message.source.is_of_provider()) {
                let writer = MessageWriter {
                    history: &self.live,
                    session,
                    format: MessageFormat::Stored,
                    alternatives: &NO_ALTERNATIVES,
                };
                input.object(|out| writer.write(out, message, None));
            }
        });
        out.array("handoffs", |names| self.handoffs.iter().for_each(|handoff| names.text(&handoff.agent)));
        self.write_text(out);
        if let Some((code, message)) = &self.failed {
            out.object("error", |out| {
                out.text("code", code).text("message", message);
            });
        }
        self.write_open_calls(out);
    }

    /// Writes the text of all answers, as one JSON string.
    fn write_text(&self, out: &mut ObjectWriter<'_>) {
        let mut text = String::from("\"");
        let mut separator = "";
        let answers = self.live.messages().iter().filter(|message| message.role == Role::Assistant);
        for message in answers.chain(&self.partial) {
            for part in &message.parts {
                if let PartBody::Text(part_text) = &part.body {
                    text.push_str(separator);
                    text.push_str(part_text.inside());
                    separator = "\\n\\n";
                }
            }
            if message.is_unfinished() {
                separator = "";
            }
        }
        text.push('"');
        out.raw("text", &text);
    }

    fn write_open_calls(&self, out: &mut ObjectWriter<'_>) {
        out.array("openCalls", |calls| {
            let Some(last) = self.live.last_answer() else { return };
            for call in self.live.calls_of(last) {
                let answered = call.result.is_some() || call.status != InvocationStatus::Pending;
                let state = if call.awaits_result() {
                    "awaiting_result"
                } else if answered {
                    "answered"
                } else if self.live.awaits_approval(&call.id) {
                    "awaiting_approval"
                } else if self.calls.attempts.contains_key(&call.id) {
                    "started"
                } else {
                    "not_started"
                };
                calls.object(|out| {
                    out.text("callId", call.wire_id()).text("invocationId", &call.id).text("name", &call.name);
                    let text = call.arguments.text();
                    match JsonRef::parse(&text) {
                        Ok(value) => out.json("arguments", value),
                        Err(_) => out.text("arguments", &text),
                    };
                    out.text("state", state);
                });
            }
        });
    }
}
