//! Every failure, with a code that stays the same over versions.

use crate::json::{Json, ObjectWriter};

/// A failure: a stable code for programs, a sentence for people.
///
/// One pointer wide: every `?` moves it, and a wide one is a fifth of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<ErrorInner>);

/// What an [`Error`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorInner {
    /// What kind of failure.
    pub code: Code,
    /// What happened and what to do about it. Never holds a credential.
    pub message: String,
    /// Facts for programs, as a JSON object.
    pub details: Option<Json>,
}

/// The result of anything that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// The stable codes. The same strings stand in the TypeScript types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Code {
    // Misuse: the call was wrong, nothing changed.
    NotInitialized,
    NotFound,
    Closed,
    InvalidInput,
    ConfigInvalid,
    UnknownEffect,
    WrongState,
    // Another writer.
    Conflict,
    Busy,
    // The store.
    QuotaExceeded,
    UpgradeBlocked,
    UnsupportedVersion,
    CorruptRecord,
    TooLarge,
    Evicted,
    /// Any other failure of the store; the outcome may be unknown.
    StoreError,
    // The run.
    ModelError,
    CallbackFailed,
    MaxTurns,
    Aborted,
    Internal,
}

impl Code {
    /// The string that programs compare.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotInitialized => "not_initialized",
            Self::NotFound => "not_found",
            Self::Closed => "closed",
            Self::InvalidInput => "invalid_input",
            Self::ConfigInvalid => "config_invalid",
            Self::UnknownEffect => "unknown_effect",
            Self::WrongState => "wrong_state",
            Self::Conflict => "conflict",
            Self::Busy => "busy",
            Self::QuotaExceeded => "quota_exceeded",
            Self::UpgradeBlocked => "upgrade_blocked",
            Self::UnsupportedVersion => "unsupported_version",
            Self::CorruptRecord => "corrupt_record",
            Self::TooLarge => "too_large",
            Self::Evicted => "evicted",
            Self::StoreError => "store_error",
            Self::ModelError => "model_error",
            Self::CallbackFailed => "callback_failed",
            Self::MaxTurns => "max_turns",
            Self::Aborted => "aborted",
            Self::Internal => "internal",
        }
    }
}

impl Error {
    /// A failure without further facts.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorInner { code, message: message.into(), details: None }))
    }

    /// Bad input: says what to give instead.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidInput, message)
    }

    /// A setting that cannot be meant.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(Code::ConfigInvalid, message)
    }

    /// The sentence alone.
    #[must_use]
    pub fn into_message(self) -> String {
        self.0.message
    }

    /// Adds facts for programs.
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
