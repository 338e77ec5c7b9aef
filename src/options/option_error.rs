//! Why an option cannot be used, with its path.

use crate::error::{Error, ErrorCode};
use serde::de;
use std::fmt::{self, Display, Formatter};

/// Why an option cannot be used.
#[derive(Debug)]
pub struct OptionError {
    code: ErrorCode,
    /// The path inside of the argument, as in `replay.reducers[0].turns`; empty for the argument itself.
    path: String,
    /// The rest of the sentence that begins with the path.
    message: String,
}

impl OptionError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::ConfigInvalid, path: String::new(), message: message.into() }
    }

    /// Puts the name of a member, or `[index]`, before the path.
    pub fn within(mut self, step: &str) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{separator}{}", self.path);
        self
    }

    pub fn into_error(self, what: &str) -> Error {
        let Self { code, path, message } = self;
        match (path.is_empty(), code) {
            (true, ErrorCode::ConfigInvalid) => Error::invalid(format!("{what} {message}")),
            (true, _) => Error::new(code, format!("{what}: {message}")),
            (false, ErrorCode::ConfigInvalid) => Error::new(code, format!("`{path}` {message}")),
            (false, _) => Error::new(code, format!("`{path}`: {message}")),
        }
    }
}

impl From<Error> for OptionError {
    fn from(error: Error) -> Self {
        Self { code: error.code, path: String::new(), message: error.into_message() }
    }
}

impl Display for OptionError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` {}", self.path, self.message)
    }
}

impl std::error::Error for OptionError {}

impl de::Error for OptionError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(format!("is wrong: {message}"))
    }

    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format!("must be {expected}"))
    }

    fn invalid_value(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format!("must be {expected}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let variant: String = variant.chars().take(100).collect();
        Self::new(format!("must be {}, not \"{variant}\"", quoted(expected)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.join("`, `");
        let message = format!("is not an option of this version; known here: `{known}`");
        Self::new(message).within(field)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("is missing").within(field)
    }
}

/// Joins words for a sentence.
pub fn quoted(words: &[&str]) -> String {
    format!("\"{}\"", words.join("\" or \""))
}
