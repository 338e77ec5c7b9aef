//! The tool choice of a request, in the neutral form.

use std::borrow::Cow;

/// The member of `params` that holds the tool choice in the form of any dialect.
pub const TOOL_CHOICE: &str = "tool_choice";

/// Which tool the model must call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    /// The model decides.
    Auto,
    /// No tool.
    None,
    /// At least one, of any name.
    Any,
    /// The tool of this name.
    Named(Cow<'a, str>),
    /// Only these tools; at least one of them if `required`.
    Among {
        /// The names, at least one.
        names: Vec<String>,
        /// True if the model must call one.
        required: bool,
    },
}
