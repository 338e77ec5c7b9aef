//! The journal of an unfinished run, and the run that is recovered from it (R18).

use super::approval::ResumedCalls;
use super::handoff::{Handoff, RecoveredHandoff, handoffs_mismatch};
use super::setup::{Persistence, RunSetup};
use crate::clock::Ms;
use crate::encoding::{TextSource, encode_fields};
use crate::error::{Error, ErrorCode, Result};
use crate::history::{History, HistoryEntry, ResultEntry, stored_result};
use crate::id::Seed;
use crate::json::Json;
use crate::message::{Dialect, Message, Role, Usage};
use crate::provider::{ProviderRequest, ReasoningField, Withheld, first_missing, withhold};
use crate::replay::ReplaySelection;
use crate::session_head::RunEntry;
use crate::store::{RecordKind, open_whole_record, seal_record};
use crate::tool::{Arguments, InvocationStatus, ToolInvocation};
use bytes::Bytes;
use minicbor::{Decode, Encode};

/// One journal entry of an unfinished run.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[allow(clippy::large_enum_variant)] // few are ever in memory
#[cbor(flat, context_bound = "TextSource")]
pub enum JournalEntry {
    /// The run began.
    #[n(0)]
    Began(#[n(0)] RunStart),
    /// The model answered. The call is not repeated after this entry.
    #[n(1)]
    Answered {
        /// The answer.
        #[n(0)]
        message: Message,
        /// The calls in it.
        #[n(1)]
        invocations: Vec<ToolInvocation>,
    },
    /// A tool is about to run; from here on it may have run.
    #[n(2)]
    Started {
        /// The id of the invocation.
        #[n(0)]
        invocation: String,
        /// The time.
        #[n(1)]
        at: Ms,
        /// The number of the attempt, from 1.
        #[n(2)]
        attempt: u32,
    },
    /// A tool has returned.
    #[n(3)]
    Finished(#[n(0)] ResultEntry),
    /// The run failed.
    #[n(4)]
    Failed {
        /// The error's code.
        #[n(0)]
        code: String,
        /// The error's message.
        #[n(1)]
        message: String,
        /// False if a service may have a request whose answer is not stored; a resume in a conversation then needs
        /// `approveUnsafeReplay`.
        #[n(2)]
        #[cbor(default)]
        is_replay_safe: bool,
    },
    /// More of a call was redacted together with its result (R12).
    #[n(5)]
    Redacted {
        /// The id of the invocation.
        #[n(0)]
        invocation: String,
        /// The arguments from now on; `None` if only the existence of the call is stored.
        #[n(1)]
        arguments: Option<Arguments>,
    },
    /// Members of `params` that hold credentials, and so are not in [`Began`]: paths such as `tools[0].authorization`.
    #[n(6)]
    Withheld {
        /// The paths.
        #[n(0)]
        members: Vec<String>,
    },
    /// The incomplete answer of a run that failed or was stopped. It is shown; a resumed run calls the model again.
    #[n(7)]
    Partial(#[n(0)] Message),
    /// A call waits for an approval from here on. A rejection is its result, with the status `rejected`.
    #[n(8)]
    ApprovalNeeded {
        /// The id of the invocation.
        #[n(0)]
        invocation: String,
        /// The time.
        #[n(1)]
        at: Ms,
    },
    /// A call was approved: its tool may run once, with the arguments that are stored.
    #[n(9)]
    Approved {
        /// The id of the invocation.
        #[n(0)]
        invocation: String,
        /// The time.
        #[n(1)]
        at: Ms,
    },
    /// The model call failed, and is repeated after a pause.
    #[n(10)]
    Retrying {
        /// The number of the next attempt.
        #[n(0)]
        attempt: u32,
        /// The end of the pause: the model is not called before.
        #[n(1)]
        not_before: Ms,
    },
    /// The model gave the answer that ends the turn, which history does not have yet; `None` if the answer has no
    /// message. In snapshots: a journal ends with the append to history.
    #[n(11)]
    Completed(#[n(0)] Option<Message>),
    /// The next model call is another agent's.
    #[n(12)]
    HandedOff {
        /// The agent's name.
        #[n(0)]
        agent: String,
        /// The time.
        #[n(1)]
        at: Ms,
    },
    /// What the requests from here on contain of history.
    #[n(13)]
    Selected(#[n(0)] ReplaySelection),
    /// The provider refused a request with a known error. The request is repaired and sent once more.
    #[n(16)]
    Healed {
        /// Marks of what was refused, which later requests do not contain.
        #[n(0)]
        refused: Vec<String>,
    },
}

/// The pause of an unfinished run before the next attempt of its model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPause {
    /// The number of the next attempt.
    pub attempt: u32,
    /// The end of the pause.
    pub not_before: Ms,
}

/// What a run began with, except callbacks, which a resume passes again.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RunStart {
    pub run: String,
    pub at: Ms,
    pub provider: StoredProvider,
    pub input: Vec<Message>,
    pub persistence: Persistence,
    /// The calls of a conversation that the application holds, with their results.
    pub calls: Vec<ToolInvocation>,
    /// The id of the last stored message, empty if there was none. Messages that others append later are not in the
    /// run's requests.
    pub base: Option<String>,
}
encode_fields!(struct RunStart {
    0 => run: required,
    1 => at,
    2 => provider: required,
    3 => input: list,
    4 => persistence,
    5 => calls: list,
    6 => base,
});

/// The provider of a run, for a resume. Contains no credential: [`ProviderRequest::check`] refuses one in the address
/// and in the headers, and of the parameters those that hold one are left out.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct StoredProvider {
    pub dialect: Dialect,
    pub url: String,
    pub params: Json,
    pub stream: bool,
    pub headers: Vec<(String, String)>,
    pub system_role: Option<Role>,
    /// `reasoning_content`, `reasoning` or `drop`.
    pub reasoning_field: Option<String>,
    pub no_stream_usage: bool,
}
encode_fields!(struct StoredProvider {
    0 => dialect: required,
    1 => url: required,
    2 => params: required,
    3 => stream,
    4 => headers: list,
    5 => system_role,
    6 => reasoning_field,
    7 => no_stream_usage,
});

impl StoredProvider {
    /// Returns the storable form of a request; `params` are its parameters without credentials.
    fn new(provider: &ProviderRequest, params: Json) -> Self {
        Self {
            dialect: provider.dialect,
            url: provider.url.clone(),
            params,
            stream: provider.stream,
            headers: provider.headers.clone(),
            system_role: provider.settings.system_role,
            reasoning_field: match provider.settings.reasoning {
                ReasoningField::AsCame => None,
                ReasoningField::Named(name) => Some(name.to_owned()),
                ReasoningField::Drop => Some("drop".to_owned()),
            },
            no_stream_usage: provider.settings.no_stream_usage,
        }
    }
}

impl JournalEntry {
    /// Returns the first entries of a run. Of the input's calls whose tools have `persist`, only the existence is
    /// stored (R12).
    pub(super) fn beginning(setup: &RunSetup, at: Ms, live: &History, history: &History) -> Vec<Self> {
        let Withheld { params, members, .. } = withhold(setup.provider.dialect, &setup.provider.params);
        let provider = StoredProvider::new(&setup.provider, params);
        let mut calls = live.invocations().to_vec();
        calls.iter_mut().filter(|call| setup.persist.contains_key(&call.name)).for_each(ToolInvocation::withhold);
        let input = live.messages().to_vec();
        let base = Some(history.messages().last().map(|last| last.id.clone()).unwrap_or_default());
        let start =
            RunStart { run: setup.id.clone(), at, provider, input, persistence: setup.persistence, calls, base };
        let mut entries = vec![Self::Began(start)];
        if !members.is_empty() {
            entries.push(Self::Withheld { members });
        }
        entries
    }

    /// Returns what tells the entry from the others of its journal, however much of it is redacted. A call's redaction
    /// is stored with its result.
    pub(super) fn identity(&self) -> Bytes {
        match self {
            Self::Answered { message, .. } => format!("answer {}", message.id).into(),
            Self::Finished(ResultEntry { invocation, .. }) | Self::Redacted { invocation, .. } => {
                format!("result {invocation}").into()
            }
            Self::Partial(message) => format!("partial {}", message.id).into(),
            Self::Began(_)
            | Self::Started { .. }
            | Self::Failed { .. }
            | Self::Withheld { .. }
            | Self::ApprovalNeeded { .. }
            | Self::Approved { .. }
            | Self::Retrying { .. }
            | Self::HandedOff { .. }
            | Self::Selected(_)
            | Self::Healed { .. }
            | Self::Completed(_) => self.seal(),
        }
    }

    /// Encodes the entry as a record of the `runs` table.
    #[must_use]
    pub fn seal(&self) -> Bytes {
        seal_record(RecordKind::Journal, self)
    }
}

/// A run as recovered from its journal.
#[derive(Clone, Debug)]
pub struct RecoveredRun {
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
    pub handoffs: Vec<RecoveredHandoff>,
    /// What its requests contain of history, if that is chosen.
    pub selection: Option<ReplaySelection>,
    /// Marks of what the provider refused in this run.
    pub refused: Vec<String>,
    /// The sealed entries of the journal.
    pub records: Vec<Bytes>,
}

impl RecoveredRun {
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

/// Recovers a run from its journal.
///
/// # Errors
/// `corrupt_record` or `unsupported_version` if an entry does not decode: then it is unknown what ran.
pub fn recover(records: &[Bytes], seed: Seed) -> Result<RecoveredRun> {
    let mut entries = records.iter().map(|bytes| open_whole_record::<JournalEntry>(RecordKind::Journal, bytes));
    let missing = || Error::new(ErrorCode::CorruptRecord, "the run's journal has no beginning; discard the run");
    let Some(JournalEntry::Began(began)) = entries.next().transpose()? else { return Err(missing()) };
    let mut run = RecoveredRun::begin(began, seed);
    for entry in entries {
        run.apply(entry?);
    }
    run.records = records.to_vec();
    Ok(run)
}

impl RecoveredRun {
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
    /// As [`recover`]; then the entries before the one that does not decode are applied.
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
        if !given.eq(self.handoffs.iter().map(|recovered| &recovered.agent)) {
            return Err(handoffs_mismatch(&self.handoffs));
        }
        for (recovered, handoff) in self.handoffs.iter_mut().zip(handoffs) {
            handoff.check(setup)?;
            recovered.handoff = Some(handoff);
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
            JournalEntry::Began(_) => {}
            // A save whose reply was lost is repeated, so its entries may occur twice.
            JournalEntry::Answered { message, .. } if self.live.message(&message.id).is_some() => {}
            JournalEntry::Answered { message, invocations } => {
                self.add_answer(message);
                for invocation in invocations {
                    self.live.apply(HistoryEntry::Invocation(invocation));
                }
            }
            JournalEntry::Completed(message) => {
                let is_repeated = std::mem::replace(&mut self.is_complete, true);
                match message.filter(|message| self.live.message(&message.id).is_none()) {
                    Some(message) => self.add_answer(message),
                    None if is_repeated => {}
                    None => self.model_calls += 1,
                }
            }
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
                    self.handoffs.push(RecoveredHandoff { agent, live_end: None, handoff: None });
                }
            }
            JournalEntry::Selected(selection) => self.selection = Some(selection),
            JournalEntry::Healed { mut refused } => self.refused.append(&mut refused),
            JournalEntry::Withheld { members } => self.withheld = members,
            JournalEntry::Partial(message) => self.partial = Some(message),
            JournalEntry::Retrying { attempt, not_before } => self.pause = Some(StoredPause { attempt, not_before }),
        }
    }
}
