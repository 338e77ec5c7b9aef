//! The argument of `Run.handoff`, which `resume` takes in the option `handoffs`.

use super::option_reader::{BoundFunction, OptionEntries};
use super::request_tools::{RequestTools, ToolOptions};
use crate::error::Result;
use crate::run::Handoff;
use serde::Deserialize;

/// A handoff.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HandoffOptions {
    name: String,
    instructions: Option<String>,
    tools: Option<OptionEntries<ToolOptions>>,
    input_filter: Option<BoundFunction>,
    nest_history: Option<bool>,
}

impl HandoffOptions {
    /// Converts the options.
    ///
    /// # Errors
    /// Those of the tools' options.
    pub fn into_handoff(self) -> Result<Handoff> {
        let RequestTools { definitions, tool_settings, persist, approval_callbacks } = RequestTools::read(self.tools)?;
        Ok(Handoff {
            name: self.name,
            instructions: self.instructions,
            tools: definitions,
            tool_settings,
            persist,
            approval_callbacks,
            input_filter: self.input_filter.map(Into::into),
            nests_history: self.nest_history.unwrap_or(false),
        })
    }
}
