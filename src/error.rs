//! Errors: a stable code for programs, a sentence for people.

use crate::json::{Json, ObjectWriter};

/// An error with a stable code.
///
/// It is one pointer wide, because every `?` moves it: as a struct of three fields it made the wasm a fifth larger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<ErrorInner>);

/// The fields of an [`Error`], which dereferences to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorInner {
    /// The kind of error.
    pub code: ErrorCode,
    /// Says what is wrong and what to do. Never contains a credential.
    pub message: String,
    /// Machine-readable details, a JSON object.
    pub details: Option<Json>,
}

/// The result of a fallible operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Declares [`ErrorCode`] with its strings, so that [`ErrorCode::ALL`] cannot miss one.
macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $text:literal,)*) => {
        /// The stable error codes. `ErrorCode` in the TypeScript types lists the same strings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* $code,)*
        }

        impl ErrorCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// Returns the string that programs compare.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $text,)*
                }
            }
        }
    };
}

codes! {
    /// The wasm module is not loaded yet. Reported by the JavaScript package.
    NotInitialized = "not_initialized",
    /// There is no session, message, run or call of that name.
    NotFound = "not_found",
    /// The object was closed before the call.
    Closed = "closed",
    /// An argument is wrong; nothing changed.
    InvalidInput = "invalid_input",
    /// An option is wrong; nothing changed.
    ConfigInvalid = "config_invalid",
    /// The run never offered an effect with that id.
    UnknownEffect = "unknown_effect",
    /// The call is not allowed in the current state; nothing changed.
    WrongState = "wrong_state",
    /// Another writer changed the session first.
    Conflict = "conflict",
    /// Another holder has what the call needs, for example a running run.
    Busy = "busy",
    /// The store has no space left.
    QuotaExceeded = "quota_exceeded",
    /// Another tab keeps the database open with an older version.
    UpgradeBlocked = "upgrade_blocked",
    /// A newer version of this library wrote the data.
    UnsupportedVersion = "unsupported_version",
    /// A stored record does not decode.
    CorruptRecord = "corrupt_record",
    /// The data is encrypted, and with another key than the application's.
    WrongKey = "wrong_key",
    /// A value is larger than a limit, or than the memory.
    TooLarge = "too_large",
    /// The store cannot be reached; it may be reached later. `details.outcome` is `none` if nothing was written, else
    /// `unknown`.
    Unavailable = "unavailable",
    /// The store's service limits the rate of requests, and repetitions were rejected too. The rejected request wrote
    /// nothing.
    RateLimited = "rate_limited",
    /// The store shows less than was written; reading again later may show it.
    MaybeStale = "maybe_stale",
    /// The platform deleted the database.
    Evicted = "evicted",
    /// Another error of the store; whether it wrote may be unknown.
    StoreError = "store_error",
    /// The conversation's state would have two owners.
    StateOwnerConflict = "state_owner_conflict",
    /// The service keeps the conversation, or another one, although the session's owner says otherwise.
    ConversationConflict = "conversation_conflict",
    /// The service does not continue the chain of responses, and the owner's `onLost` lets it not begin again.
    ChainLost = "chain_lost",
    /// The model could not be called, or gave no complete answer.
    ModelError = "model_error",
    /// A function of the application threw or returned something unexpected.
    CallbackFailed = "callback_failed",
    /// A request failed that the service may have processed, and that it might process twice if it were sent again.
    ReplayUnsafe = "replay_unsafe",
    /// Two sources load the history of one session.
    TwoLoaders = "two_loaders",
    /// Two history providers have one key of the state bag.
    StateKeyConflict = "state_key_conflict",
    /// A handoff has a filter, and a service keeps the conversation.
    HandoffFilterNotSupported = "handoff_filter_not_supported",
    /// The run made as many model calls as `maxTurns` allows.
    MaxTurns = "max_turns",
    /// The user stopped the run.
    Aborted = "aborted",
    /// A bug in this library.
    Internal = "internal",
}

impl Error {
    /// Creates an error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorInner { code, message: message.into(), details: None }))
    }

    /// Creates an `invalid_input` error. The message says what to pass instead.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidInput, message)
    }

    /// Creates a `config_invalid` error. The message names the option.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::ConfigInvalid, message)
    }

    /// Creates an `unavailable` error. `may_have_written` is true if the request may have reached the store.
    pub fn unavailable(message: impl Into<String>, may_have_written: bool) -> Self {
        Self::new(ErrorCode::Unavailable, message).with(|details| {
            details.text("outcome", if may_have_written { "unknown" } else { "none" });
        })
    }

    /// Creates the `store_error` of a store that did not answer in time. `may_write`: it may have written what it was
    /// asked to, or may do so later.
    pub fn unanswered(message: impl Into<String>, may_write: bool) -> Self {
        Self::new(ErrorCode::StoreError, message).with(|details| {
            details.text("outcome", if may_write { "unknown" } else { "none" });
        })
    }

    /// Returns what is known of a write whose store did not answer or could not be reached.
    fn outcome(&self) -> Option<String> {
        let details =
            self.details.as_ref().filter(|_| matches!(self.code, ErrorCode::Unavailable | ErrorCode::StoreError));
        details.and_then(|details| details.view().text("outcome")).map(|text| text.to_string())
    }

    /// Returns true if the store did not answer or could not be reached: another call would meet the same.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.outcome().is_some()
    }

    /// Returns true if the store may have written what it was asked to: its reply was lost or did not come in time.
    #[must_use]
    pub fn may_have_written(&self) -> bool {
        self.outcome().as_deref() == Some("unknown")
    }

    /// Returns the message without the code.
    #[must_use]
    pub fn into_message(self) -> String {
        self.0.message
    }

    /// Replaces the message; the code and the details stay.
    #[must_use]
    pub fn with_message(mut self, message: String) -> Self {
        self.0.message = message;
        self
    }

    /// Replaces the code; the message and the details stay.
    #[must_use]
    pub fn with_code(mut self, code: ErrorCode) -> Self {
        self.0.code = code;
        self
    }

    /// Adds details; `fill` writes the members of their JSON object.
    #[must_use]
    pub fn with(mut self, fill: impl FnOnce(&mut ObjectWriter<'_>)) -> Self {
        self.0.details = Some(ObjectWriter::build(fill));
        self
    }
}

impl std::ops::Deref for Error {
    type Target = ErrorInner;

    fn deref(&self) -> &ErrorInner {
        &self.0
    }
}

impl std::ops::DerefMut for Error {
    fn deref_mut(&mut self) -> &mut ErrorInner {
        &mut self.0
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

impl std::error::Error for Error {}
