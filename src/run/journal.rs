//! The journal of an unfinished run, and the run that it tells of (R18).

use crate::clock::Ms;
use crate::error::{Error, Result};
use crate::history::{History, HistoryEntry, ResultEntry};
use crate::id::Seed;
use crate::json::Json;
use crate::message::{Dialect, Message, Role, Usage};
use crate::provider::{ProviderRequest, ReasoningField, Withheld, first_missing, withhold};
use crate::sorted::Sorted;
use crate::store::{RecordKind, open_record, seal_record};
use crate::stored::stored;
use crate::tool::{Arguments, ToolInvocation};

/// One step of an unfinished run.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // few are ever in memory
pub enum JournalEntry {
    /// It began.
    Began(RunStart),
    /// The model answered, and the answer is acknowledged: it is never asked for again.
    Answered {
        /// The answer.
        message: Message,
        /// The calls in it.
        invocations: Vec<ToolInvocation>,
    },
    /// A tool is about to run: from here on it may have.
    Started {
        /// Which call.
        invocation: String,
        /// When.
        at: Ms,
        /// Which try, from 1.
        attempt: u32,
    },
    /// A tool has returned.
    Finished(ResultEntry),
    /// The run failed.
    Failed {
        /// The error's code.
        code: String,
        /// Its sentence.
        message: String,
    },
    /// With its result, more of a call was redacted (R12).
    Redacted {
        /// Which call.
        invocation: String,
        /// Its arguments from now on; none where nothing is stored but that it was called.
        arguments: Option<Arguments>,
    },
    /// Members of `params` that hold credentials, and so are not in [`Began`]: paths such as `tools[0].authorization`.
    Withheld {
        /// The paths.
        members: Vec<String>,
    },
    /// The answer that was coming in when the run failed or was stopped. It is shown, and asked for again when the run is resumed.
    Partial(Message),
}
stored!(enum JournalEntry {
    0 => Began(value),
    1 => Answered { message, invocations },
    2 => Started { invocation, at, attempt },
    3 => Finished(value),
    4 => Failed { code, message },
    5 => Redacted { invocation, arguments },
    6 => Withheld { members },
    7 => Partial(value),
});

/// What a run began with. Callbacks are not here: they are given again.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RunStart {
    pub run: String,
    pub at: Ms,
    pub provider: StoredProvider,
    pub input: Vec<Message>,
}
stored!(struct RunStart { run, at, provider, input });

/// Where a run called, for who resumes it. Holds no credential: [`ProviderRequest::check`] refuses one in the address and in the headers,
/// and of the parameters those that hold one are left out.
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
stored!(struct StoredProvider {
    dialect, url, params, stream, headers, system_role, reasoning_field, no_stream_usage,
});

impl StoredProvider {
    /// The request as it may be stored; `params` are its own without credentials.
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
    /// The first entries of a run.
    pub(super) fn beginning(run: &str, at: Ms, provider: &ProviderRequest, input: Vec<Message>) -> Vec<Self> {
        let Withheld { params, members, .. } = withhold(provider.dialect, &provider.params);
        let provider = StoredProvider::new(provider, params);
        let mut entries = vec![Self::Began(RunStart { run: run.to_owned(), at, provider, input })];
        if !members.is_empty() {
            entries.push(Self::Withheld { members });
        }
        entries
    }

    /// As a record of the `runs` table.
    #[must_use]
    pub fn seal(&self) -> Vec<u8> {
        seal_record(RecordKind::Journal, self)
    }
}

/// A run as its journal tells of it.
#[derive(Clone, Debug)]
pub struct RecoveredRun {
    /// What it began with.
    pub began: RunStart,
    /// Its turn so far: input, answers, calls with what is known of them.
    pub live: History,
    /// How many model calls were answered.
    pub turns: u32,
    /// What they cost.
    pub usage: Option<Usage>,
    /// Calls that were started, with the number of tries.
    pub attempts: Sorted<String, u32>,
    /// Why it failed, if it did.
    pub failed: Option<(String, String)>,
    /// The answer that was coming in when it failed or was stopped.
    pub partial: Option<Message>,
    /// Members of `params` that hold credentials and were not stored.
    pub withheld: Vec<String>,
}

impl RecoveredRun {
    /// Checks that who resumes the run gives its credentials again. Another dialect has its own.
    ///
    /// # Errors
    /// `config_invalid`, which names what is missing.
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

/// Folds a journal.
///
/// # Errors
/// `corrupt_record` or `unsupported_version` when an entry does not decode: then nobody knows what ran.
pub fn recover(records: &[Vec<u8>], seed: Seed) -> Result<RecoveredRun> {
    let mut entries = records.iter().map(|bytes| open_record::<JournalEntry>(RecordKind::Journal, bytes));
    let missing =
        || Error::new(crate::error::Code::CorruptRecord, "the run's journal has no beginning; discard the run");
    let Some(JournalEntry::Began(began)) = entries.next().transpose()? else { return Err(missing()) };
    let mut run = RecoveredRun::begin(began, seed);
    for entry in entries {
        run.apply(entry?);
    }
    Ok(run)
}

impl RecoveredRun {
    /// A run of which the first entry is known.
    fn begin(began: RunStart, seed: Seed) -> Self {
        let mut live = History::new(seed);
        for message in &began.input {
            live.apply(HistoryEntry::Message(message.clone()));
        }
        Self {
            began,
            live,
            turns: 0,
            usage: None,
            attempts: Sorted::new(),
            failed: None,
            partial: None,
            withheld: Vec::new(),
        }
    }

    /// Folds the entries that follow.
    ///
    /// # Errors
    /// As [`recover`]; then the entries before the one that does not decode are folded.
    pub fn extend(&mut self, records: &[Vec<u8>]) -> Result<()> {
        for bytes in records {
            self.apply(open_record(RecordKind::Journal, bytes)?);
        }
        Ok(())
    }

    fn apply(&mut self, entry: JournalEntry) {
        if !matches!(entry, JournalEntry::Failed { .. } | JournalEntry::Partial(_)) {
            // It was resumed.
            (self.failed, self.partial) = (None, None);
        }
        match entry {
            JournalEntry::Began(_) => {}
            // A write whose reply was lost is there twice.
            JournalEntry::Answered { message, .. } if self.live.message(&message.id).is_some() => {}
            JournalEntry::Answered { message, invocations } => {
                self.turns += 1;
                if let Some(usage) = message.answer.as_ref().and_then(|answer| answer.usage) {
                    self.usage = Some(self.usage.map_or(usage, |sum| sum.plus(usage)));
                }
                self.live.apply(HistoryEntry::Message(message));
                for invocation in invocations {
                    self.live.apply(HistoryEntry::Invocation(invocation));
                }
            }
            JournalEntry::Started { invocation, at, attempt } => {
                self.attempts.insert(invocation.clone(), attempt);
                if let Some(invocation) = self.live.invocation_mut(&invocation) {
                    invocation.started_at = Some(at);
                }
            }
            JournalEntry::Finished(result) => self.live.apply(HistoryEntry::Result(result)),
            JournalEntry::Redacted { invocation, arguments } => {
                if let Some(call) = self.live.invocation_mut(&invocation) {
                    call.redacted = true;
                    match arguments {
                        Some(arguments) => call.arguments = arguments,
                        None => call.withhold(),
                    }
                }
            }
            JournalEntry::Failed { code, message } => self.failed = Some((code, message)),
            JournalEntry::Withheld { members } => self.withheld = members,
            JournalEntry::Partial(message) => self.partial = Some(message),
        }
    }
}
