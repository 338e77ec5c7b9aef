//! Converts findings, dialects and errors to the types of the WIT.

use super::bindings::exports::rethread::history::types as wit;
use crate::finding::{Action, Finding, Report, Severity};
use crate::message::{Dialect, Usage};

/// Returns the dialect of this name.
///
/// # Errors
/// `config_invalid`.
pub fn dialect(name: &str) -> Result<Dialect, wit::Error> {
    Dialect::read(name).map_err(Into::into)
}

impl From<Finding> for wit::Finding {
    fn from(finding: Finding) -> Self {
        let finding = finding.into_data();
        Self {
            severity: match finding.severity {
                Severity::Info => wit::Severity::Info,
                Severity::Warning => wit::Severity::Warning,
                Severity::Error => wit::Severity::Error,
            },
            code: finding.code.as_str().to_owned(),
            path: finding.path,
            message_id: finding.message_id,
            call_id: finding.call_id,
            action: finding.action.map(|action| match action {
                Action::Dropped => wit::Action::Dropped,
                Action::Moved => wit::Action::Moved,
                Action::Renamed => wit::Action::Renamed,
                Action::Synthesized => wit::Action::Synthesized,
                Action::Rewritten => wit::Action::Rewritten,
                Action::Merged => wit::Action::Merged,
                Action::Kept => wit::Action::Kept,
            }),
            message: finding.message.into_owned(),
        }
    }
}

/// Converts a report.
pub fn report(report: Report) -> Vec<wit::Finding> {
    report.into_iter().map(Into::into).collect()
}

impl From<crate::Error> for wit::Error {
    fn from(error: crate::Error) -> Self {
        Self { code: error.code.as_str().to_owned(), message: error.into_message() }
    }
}

impl From<Usage> for wit::Usage {
    fn from(usage: Usage) -> Self {
        let Usage { input, output, cached_input, cache_write, reasoning } = usage;
        Self { input, output, cached_input, cache_write, reasoning }
    }
}
