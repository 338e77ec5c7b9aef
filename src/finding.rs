//! A finding: what was noticed or done, with its reason. The report of a render, a repair or a run is a list of them.

use crate::json::ObjectWriter;
use std::borrow::Cow;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A note.
    Info,
    /// Accepted, yet fragile.
    Warning,
    /// The provider refuses it.
    Error,
}

/// What was done about it.
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

/// One finding. `code` comes from the closed list in the TypeScript types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding(Box<Noticed>);

/// What a [`Finding`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noticed {
    /// How bad.
    pub severity: Severity,
    /// Stable code, such as `dangling_call`.
    pub code: &'static str,
    /// JSON pointer into the body that was given.
    pub path: Option<String>,
    /// The stored message it is about.
    pub message_id: Option<String>,
    /// The call it is about.
    pub call_id: Option<String>,
    /// What was done.
    pub action: Option<Action>,
    /// A sentence for people.
    pub message: Cow<'static, str>,
}

impl std::ops::Deref for Finding {
    type Target = Noticed;

    fn deref(&self) -> &Noticed {
        &self.0
    }
}

impl std::ops::DerefMut for Finding {
    fn deref_mut(&mut self) -> &mut Noticed {
        &mut self.0
    }
}

/// Findings in the order in which they were made.
pub type Report = Vec<Finding>;

impl Finding {
    /// A finding with neither place nor action yet.
    pub fn new(severity: Severity, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Noticed {
            severity,
            code,
            path: None,
            message_id: None,
            call_id: None,
            action: None,
            message: message.into(),
        }))
    }

    /// An error: the provider refuses the body.
    pub fn error(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A warning.
    pub fn warning(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// A note.
    pub fn info(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Severity::Info, code, message)
    }

    /// What was noticed, taken out.
    #[must_use]
    pub fn into_noticed(self) -> Noticed {
        *self.0
    }

    /// The same, of another severity.
    #[must_use]
    pub fn as_severe(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The same without a place: the body it is about is not the one that was given.
    #[must_use]
    pub fn nowhere(mut self) -> Self {
        self.path = None;
        self
    }

    /// Where in the body, as a JSON pointer.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Which stored message.
    #[must_use]
    pub fn of_message(mut self, id: &str) -> Self {
        self.message_id = Some(id.to_owned());
        self
    }

    /// Which call.
    #[must_use]
    pub fn of_call(mut self, id: &str) -> Self {
        self.call_id = Some(id.to_owned());
        self
    }

    /// What was done.
    #[must_use]
    pub fn did(mut self, action: Action) -> Self {
        self.action = Some(action);
        self
    }

    /// Writes it in the shape of the TypeScript `Finding`.
    pub fn write(&self, out: &mut ObjectWriter<'_>) {
        out.text(
            "severity",
            match self.severity {
                Severity::Info => "info",
                Severity::Warning => "warning",
                Severity::Error => "error",
            },
        );
        out.text("code", self.code);
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
        out.text("message", &self.message);
    }
}
