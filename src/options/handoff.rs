//! The argument of `Run.handoff`, which `resume` takes in the option `handoffs`.

use super::option_types::OptionTypes;
use super::tools::{RequestTools, ToolOptions};
use super::values::OptionEntries;
use crate::error::Result;
use crate::run::Handoff;
use serde::Deserialize;

/// A handoff.
#[derive(Deserialize)]
#[serde(bound = "", deny_unknown_fields, rename_all = "camelCase")]
pub struct HandoffOptions<T: OptionTypes> {
    name: String,
    instructions: Option<String>,
    tools: Option<OptionEntries<ToolOptions<T>>>,
    input_filter: Option<T::Function>,
    nest_history: Option<bool>,
}

impl<T: OptionTypes> HandoffOptions<T> {
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
