//! Findings: what validation, repair, rendering or a run found wrong or changed, and why.

mod limited_report;

use crate::json::ObjectWriter;
pub use limited_report::MAX_FINDINGS;
pub(crate) use limited_report::{LimitedReport, limit_report};
use std::borrow::Cow;

/// Declares [`FindingCode`] with the name of each code in the public types.
macro_rules! finding_codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The closed list of finding codes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FindingCode {
            $($(#[$doc])* $variant,)*
        }

        impl FindingCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the code's stable name, such as `dangling_call`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

finding_codes! {
    /// A call has no result.
    DanglingCall = "dangling_call",
    /// A call has no result, and other calls of its message have one.
    MissingParallelResult = "missing_parallel_result",
    /// A result names no call.
    OrphanResult = "orphan_result",
    /// A call has a second result.
    DuplicateResult = "duplicate_result",
    /// A result stands before its call.
    ResultBeforeCall = "result_before_call",
    /// A message stands between a call and its result.
    InterposedMessage = "interposed_message",
    /// Two calls have one id.
    DuplicateCallId = "duplicate_call_id",
    /// The id of a call or a result is missing, or has a form that the provider rejects.
    InvalidCallId = "invalid_call_id",
    /// The arguments of a call are not a JSON object.
    InvalidArguments = "invalid_arguments",
    /// The list of a message's calls is empty.
    EmptyToolCalls = "empty_tool_calls",
    /// Reasoning without the message or the call that it belongs to.
    OrphanReasoning = "orphan_reasoning",
    /// An answer with calls lacks the reasoning that the model wants back.
    MissingReasoning = "missing_reasoning",
    /// Reasoning without the signature that the provider requires.
    UnsignedThinking = "unsigned_thinking",
    /// The role is unknown, or may not stand in this place.
    RoleOrder = "role_order",
    /// A message or a block without content.
    EmptyContent = "empty_content",
    /// A value has another type than the provider requires.
    Malformed = "malformed",
    /// An image, a file or another part that the dialect does not have.
    UnsupportedPart = "unsupported_part",
    /// A parameter that the dialect does not have, or a value of it that the model does not accept.
    UnsupportedKey = "unsupported_key",
    /// A converted body names a model of another provider.
    ForeignModel = "foreign_model",
    /// An item is not of the dialect.
    UnknownShape = "unknown_shape",
    /// A result is older than its freshness window.
    Stale = "stale",
    /// The built-in freshness window removed something; reported once a session.
    StaleDefault = "stale_default",
    /// A result has a timestamp in the future.
    Future = "future",
    /// A reducer removed, shortened or summarized something.
    Reduced = "reduced",
    /// A call is not sent because its payload was not stored.
    Redacted = "redacted",
    /// Reasoning is left out, since what precedes it is not what it was when the reasoning was made.
    ReasoningUnbound = "reasoning_unbound",
    /// The provider left reasoning of the request out, or would have.
    ReasoningDropped = "reasoning_dropped",
    /// Reasoning, signatures or encrypted content are left out, which another host of the dialect has made, or another
    /// model where none is bound to its prefix.
    ReasoningForeign = "reasoning_foreign",
    /// Sources that the answer does not cite are left out.
    Uncited = "uncited",
    /// A run was interrupted while a tool ran.
    Interrupted = "interrupted",
    /// The result of a call comes later (R75).
    PendingCall = "pending_call",
    /// A callback of the application failed.
    CallbackFailed = "callback_failed",
    /// A deferred compaction failed, and not because of a callback: the store, for example.
    CompactionFailed = "compaction_failed",
    /// A service keeps the conversation, and its history is kept here too.
    ConversationConflict = "conversation_conflict",
    /// The owner changed, and something of the conversation is with the earlier owner only.
    NotTransferred = "not_transferred",
    /// The service does not have the chain of responses any more; the request contained the history instead.
    ChainRestarted = "chain_restarted",
    /// The provider refused a request with a known sentence; what it refused was repaired or left out.
    Healed = "healed",
    /// Two writers appended to a session at once, in a store that cannot exclude it; both sides are kept.
    SecondWriter = "second_writer",
    /// The store failed to read a part of a session; the rest is shown, and the next call tries again (R7).
    ReadFailed = "read_failed",
    /// A run is over and its journal could not be removed.
    JournalKept = "journal_kept",
    /// A session of a backup was not restored (R59).
    NotRestored = "not_restored",
    /// A session of a backup was restored under another id, since one of its id exists.
    RestoredAsCopy = "restored_as_copy",
    /// A loop of the application ended without a checkpoint, although its mode requires them.
    NoCheckpoint = "no_checkpoint",
    /// There are more findings than a report lists.
    FindingsOmitted = "findings_omitted",
    /// A body would need more edits than a repair makes; it is unchanged.
    TooManyEdits = "too_many_edits",
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information only.
    Info,
    /// The provider accepts it, but it may fail later or elsewhere.
    Warning,
    /// The provider rejects the request.
    Error,
}

/// What was done about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Action {
    Dropped,
    Moved,
    Renamed,
    Synthesized,
    Rewritten,
    Merged,
    Kept,
}

/// Declares [`PrefixChange`] with the name of each value in the public types.
macro_rules! prefix_changes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $text:literal;)*) => {
        /// What changed a request's beginning, which an earlier request had too (R70, R72).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum PrefixChange {
            $($(#[$doc])* $variant,)*
        }

        impl PrefixChange {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the stable name in the public types.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the beginning of a sentence that says what changed.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

prefix_changes! {
    /// A result became too old.
    Freshness = "freshness", "a result before it is too old to be sent";
    /// A reducer dropped, shortened or summarized messages.
    Reducer = "reducer", "a reducer changed what precedes it";
    /// A compaction replaces messages.
    Compaction = "compaction", "a compaction replaces what preceded it";
    /// Sources that no answer cites are left out.
    Citation = "citation", "sources before it that no answer cites are left out";
    /// `persist` stored something else than what was sent.
    Redaction = "redaction", "a call before it is stored redacted";
    /// `inputFilter` changed the body.
    Filter = "filter", "`inputFilter` changed what precedes it";
    /// A history provider adds other messages.
    HistoryProvider = "history_provider", "history providers add other messages before it";
    /// Another agent has the conversation.
    Handoff = "handoff", "a handoff changed what precedes it";
    /// The messages before it are others: another tab stored some, they were edited, or they are of another branch.
    Branch = "branch", "other messages precede it";
    /// A rule of the provider changed the body.
    Repair = "repair", "what precedes it had to be repaired";
    /// The instructions are others.
    Instructions = "instructions", "the instructions are others";
    /// The tools are others.
    Tools = "tools", "the tools are others";
    /// The model is another one.
    Model = "model", "another model made it";
    /// The provider is another one.
    Provider = "provider", "another provider made it (`replay.sameMakers` names hosts that serve the same models)";
}

/// One finding. Boxed, since it travels in results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding(Box<FindingData>);

/// The members of a [`Finding`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingData {
    /// How severe it is.
    pub severity: Severity,
    /// What was found.
    pub code: FindingCode,
    /// The JSON pointer of the value it is about, in the body that was passed in.
    pub path: Option<String>,
    /// The id of the stored message it is about.
    pub message_id: Option<String>,
    /// The id of the call it is about.
    pub call_id: Option<String>,
    /// What was done about it.
    pub action: Option<Action>,
    /// What changed the request before the reasoning that it is about.
    pub changed_by: Option<PrefixChange>,
    /// Why the provider did it, in its own word.
    pub reason: Option<String>,
    /// A sentence for developers: what is wrong and what was done.
    pub message: Cow<'static, str>,
}

impl std::ops::Deref for Finding {
    type Target = FindingData;

    fn deref(&self) -> &FindingData {
        &self.0
    }
}

impl std::ops::DerefMut for Finding {
    fn deref_mut(&mut self) -> &mut FindingData {
        &mut self.0
    }
}

/// Findings in the order in which they were reported.
pub type Report = Vec<Finding>;

impl Finding {
    /// Creates a finding without path, ids and action.
    pub fn new(severity: Severity, code: FindingCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(FindingData {
            severity,
            code,
            path: None,
            message_id: None,
            call_id: None,
            action: None,
            changed_by: None,
            reason: None,
            message: message.into(),
        }))
    }

    /// Creates an error: the provider rejects the body.
    pub fn error(code: FindingCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// Creates a warning.
    pub fn warning(code: FindingCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// Creates a note.
    pub fn info(code: FindingCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Severity::Info, code, message)
    }

    /// Unboxes the members.
    #[must_use]
    pub fn into_data(self) -> FindingData {
        *self.0
    }

    /// Replaces the severity.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Removes the path: the finding is about a body that the caller never saw.
    #[must_use]
    pub fn without_path(mut self) -> Self {
        self.path = None;
        self
    }

    /// Sets the JSON pointer.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets the message.
    #[must_use]
    pub fn of_message(mut self, id: &str) -> Self {
        self.message_id = Some(id.to_owned());
        self
    }

    /// Sets the call.
    #[must_use]
    pub fn of_call(mut self, id: &str) -> Self {
        self.call_id = Some(id.to_owned());
        self
    }

    /// Sets what was done.
    #[must_use]
    pub fn with_action(mut self, action: Action) -> Self {
        self.action = Some(action);
        self
    }

    /// Sets what changed the request.
    #[must_use]
    pub fn changed_by(mut self, change: PrefixChange) -> Self {
        self.changed_by = Some(change);
        self
    }

    /// Writes the members of the public type `Finding`.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        out.text(
            "severity",
            match self.severity {
                Severity::Info => "info",
                Severity::Warning => "warning",
                Severity::Error => "error",
            },
        );
        out.text("code", self.code.as_str());
        for (key, value) in [("path", &self.path), ("messageId", &self.message_id), ("callId", &self.call_id)] {
            if let Some(value) = value {
                out.text(key, value);
            }
        }
        if let Some(action) = self.action {
            out.text(
                "action",
                match action {
                    Action::Dropped => "dropped",
                    Action::Moved => "moved",
                    Action::Renamed => "renamed",
                    Action::Synthesized => "synthesized",
                    Action::Rewritten => "rewritten",
                    Action::Merged => "merged",
                    Action::Kept => "kept",
                },
            );
        }
        if let Some(change) = self.changed_by {
            out.text("changedBy", change.as_str());
        }
        if let Some(reason) = &self.reason {
            out.text("reason", reason);
        }
        out.text("message", &self.message);
    }
}
