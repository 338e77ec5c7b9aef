//! The journal of an unfinished run (R18).

use super::background_answer::BackgroundAnswer;
use super::setup::{Persistence, RunSetup};
use crate::clock::Ms;
use crate::encoding::{TextSource, encode_fields};
use crate::history::{History, ResultEntry};
use crate::json::{Json, ObjectWriter};
use crate::message::{Dialect, Message, Role};
use crate::provider::{ProviderRequest, ReasoningField, Withheld, is_plain_header, withhold};
use crate::replay::ReplaySelection;
use crate::store::{RecordKind, seal_record};
use crate::tool::{Arguments, ToolInvocation};
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
    /// The incomplete answer of a run that failed or was stopped. It is shown; a resumed run calls the model again,
    /// or picks up the answer in the background.
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
    /// The model call failed, or an answer could not be picked up, and that is repeated after a pause.
    #[n(10)]
    Retrying {
        /// The number of the next attempt.
        #[n(0)]
        attempt: u32,
        /// The end of the pause: the model is not called before.
        #[n(1)]
        not_before: Ms,
        /// True if an answer in the background is picked up after the pause: it permits no request.
        #[n(2)]
        #[cbor(skip_if = "is_unset")]
        is_pick_up: bool,
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
        /// True if the service does not continue the chain of responses: the request is sent with the history.
        #[n(1)]
        #[cbor(default)]
        restarts_chain: bool,
    },
    /// The service works on the answer to the newest model call, and goes on when nobody reads it. `None`: it gives none
    /// any more, and the model is called again.
    #[n(17)]
    Background(#[n(0)] Option<Box<BackgroundAnswer>>),
    /// The first entry of a question that waits for the runs before it. Its run begins a journal of its own. An older
    /// build cannot read it, and so does not continue it as a run that had begun.
    #[n(18)]
    Queued(#[n(0)] RunStart),
}

/// Returns true for a flag that is not written, so that an entry without it has the bytes of earlier builds.
fn is_unset(flag: &&bool) -> bool {
    !**flag
}

/// The pause of an unfinished run before the next attempt of its model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPause {
    /// The number of the next attempt.
    pub attempt: u32,
    /// The end of the pause.
    pub not_before: Ms,
    /// True if an answer in the background is picked up after it.
    pub is_pick_up: bool,
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

    /// Returns the sealed entries of a question that waits. A message that comes before it, of history or of a
    /// provider, is not in them.
    #[must_use]
    pub fn of_queued(setup: &RunSetup, at: Ms, question: &History) -> Vec<Bytes> {
        let mut entries = Self::beginning(setup, at, question, question);
        if let Some(first) = entries.first_mut()
            && let Self::Began(start) = first
        {
            *first = Self::Queued(RunStart { base: None, ..start.clone() });
        }
        entries.iter().map(Self::seal).collect()
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
            | Self::Queued(_)
            | Self::Started { .. }
            | Self::Failed { .. }
            | Self::Withheld { .. }
            | Self::ApprovalNeeded { .. }
            | Self::Approved { .. }
            | Self::Retrying { .. }
            | Self::HandedOff { .. }
            | Self::Selected(_)
            | Self::Healed { .. }
            | Self::Background(_)
            | Self::Completed(_) => self.seal(),
        }
    }

    /// Encodes the entry as a record of the `runs` table.
    #[must_use]
    pub fn seal(&self) -> Bytes {
        seal_record(RecordKind::Journal, self)
    }
}

impl StoredProvider {
    /// Writes the member `provider` of a `PendingRun`.
    pub(super) fn write(&self, out: &mut ObjectWriter<'_>) {
        out.object("provider", |out| {
            out.text("dialect", self.dialect.as_str())
                .text("url", &self.url)
                .json("params", self.params.view())
                .bool("stream", self.stream);
            out.object("headers", |out| {
                for (name, value) in &self.headers {
                    out.text(name, value);
                }
            });
            let other: Vec<&str> =
                self.headers.iter().map(|(name, _)| name.as_str()).filter(|name| !is_plain_header(name)).collect();
            if !other.is_empty() {
                out.array("allowHeaders", |names| other.iter().for_each(|name| names.text(name)));
            }
            out.object("compat", |out| {
                if let Some(role) = self.system_role {
                    out.text("systemRole", role.as_str());
                }
                if let Some(field) = &self.reasoning_field {
                    out.text("reasoningField", field);
                }
                if self.no_stream_usage {
                    out.bool("streamUsage", false);
                }
            });
        });
    }
}
